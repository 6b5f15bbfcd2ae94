//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once where the machine wants that.
//!
//! It finds one without fail: the engine lets no more faults in than there are frames, so either a frame is free or the policy
//! holds one.

use super::Fault;
use crate::command::{Command, Stage};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::page_state::PageState;

pub(super) fn get_freeframe(fault: &mut Fault<'_>) {
    with_policy(fault);
    let frame = match fault.engine.frames.reserve() {
        Some(frame) => frame,
        None => evict_batch(fault),
    };
    fault.in_flight().frame = Some(frame);
    fault.mark(Stage::GetFreeframe);
}

fn with_policy(fault: &mut Fault<'_>) {
    let Fault { engine, machine, work, .. } = fault;
    let (policy, mut residents) = engine.policy_and_residents(*machine, work);
    policy.true_fault(&mut residents);
}

/// The first victim's frame is the fault's; those of the others are free.
fn evict_batch(fault: &mut Fault<'_>) -> FrameId {
    let frame = evict(fault);
    fault.engine.frames.hand_over(frame);
    for _ in 1..fault.engine.config.evict_batch {
        if fault.engine.policy.is_empty() {
            break;
        }
        let other = evict(fault);
        fault.engine.frames.release(other);
    }
    frame
}

fn evict(fault: &mut Fault<'_>) -> FrameId {
    let Fault { engine, machine, work, .. } = fault;
    let (policy, mut residents) = engine.policy_and_residents(*machine, work);
    let victim = policy.victim(&mut residents);
    let page = residents.page(victim.frame);
    let backing = &mut engine.backing;
    let mut residents = Residents { frames: &mut engine.frames, machine: *machine, caps: engine.config.caps, work };
    let dirty = residents.evict(victim.frame, |page, machine| {
        let to = backing.slot_for(page, machine);
        Command::Write { page, from: Some(victim.frame), to }
    });
    work.walk += victim.walk;
    let state = if dirty { PageState::Writing { tries: 1, released: false } } else { PageState::Absent };
    engine.pages.set(page, state);
    let counts = &mut engine.counts;
    counts.evictions += 1;
    counts.dirty_evictions += u64::from(dirty);
    counts.forced_evictions += u64::from(victim.forced);
    counts.walk_sum += victim.walk;
    counts.walk_max = counts.walk_max.max(victim.walk);
    victim.frame
}
