//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once where the machine wants that.
//!
//! It finds one without fail: the engine lets no more faults in than there are frames, so either a frame is free or the policy
//! holds one.

use super::Fault;
use crate::command::{Command, Work};
use crate::engine::Engine;
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::machine::Machine;
use crate::page_state::PageState;

pub(super) fn get_freeframe(fault: &mut Fault<'_>) {
    let frame = fault.find_frame();
    fault.in_flight().frame = Some(frame);
}

/// A frame that is nobody else's, promised to the caller.
pub(super) fn find_frame(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let (policy, mut residents) = engine.policy_and_residents(machine, work);
    policy.true_fault(&mut residents);
    match engine.frames.reserve() {
        Some(frame) => frame,
        None => evict_batch(engine, machine, work),
    }
}

/// The first victim's frame is the fault's; those of the others are free.
fn evict_batch(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let frame = evict(engine, machine, work);
    engine.frames.hand_over(frame);
    for _ in 1..engine.config.evict_batch {
        if engine.policy.is_empty() {
            break;
        }
        let other = evict(engine, machine, work);
        engine.frames.release(other);
    }
    frame
}

fn evict(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let (policy, mut residents) = engine.policy_and_residents(machine, work);
    let victim = policy.victim(&mut residents);
    let page = residents.page(victim.frame);
    let backing = &mut engine.backing;
    let mut residents = Residents { frames: &mut engine.frames, machine, caps: engine.config.caps, work };
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
