//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once where the machine wants that.
//!
//! It finds one without fail: the engine lets no more faults in than there are frames, so either a frame is free or the policy
//! holds one.

use super::low_memory::relieve;
use super::Fault;
use crate::command::{Command, Work};
use crate::engine::Engine;
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::machine::Machine;
use crate::page_state::PageState;
use crate::policy::Victim;

pub(super) fn get_freeframe(fault: &mut Fault<'_>) {
    let frame = fault.find_frame();
    fault.in_flight().frame = Some(frame);
}

/// A frame that is nobody else's, promised to the caller.
pub(super) fn find_frame(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let (policy, mut residents) = engine.policy_and_residents(machine, work);
    policy.true_fault(&mut residents);
    relieve(engine, machine);
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

/// The policy's victim, passing over pages that have nowhere to go. If no page has, the first of them leaves: to its home slot.
fn choose(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> Victim {
    let mut others = engine.policy.len() - 1;
    loop {
        let Engine { policy, frames, backing, config, .. } = engine;
        let mut residents = Residents { frames, machine, caps: config.caps, work };
        let victim = policy.victim(&mut residents);
        if others == 0 || backing.has_room_for(residents.page(victim.frame)) {
            return victim;
        }
        others -= 1;
        policy.insert(victim.frame, &mut residents);
        residents.work.walk += victim.walk;
    }
}

fn evict(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let victim = choose(engine, machine, work);
    let page = engine.frames.page(victim.frame);
    let backing = &mut engine.backing;
    let mut residents = Residents { frames: &mut engine.frames, machine, caps: engine.config.caps, work };
    let dirty = residents.evict(victim.frame, |page, machine| {
        let to = backing.slot_for(page, machine);
        Command::Write { page, from: Some(victim.frame), to }
    });
    work.walk += victim.walk;
    let state = if dirty { PageState::Writing { tries: 1, released: false } } else { PageState::Absent };
    engine.pages.set(page, state);
    engine.backing.left(page);
    let in_slots = engine.backing.in_slots(page).is_some();
    let homeless = dirty && !in_slots && engine.backing.wants_slot(page);
    let counts = &mut engine.counts;
    counts.evictions += 1;
    counts.dirty_evictions += u64::from(dirty);
    counts.homeless += u64::from(homeless);
    counts.swap_outs += u64::from(in_slots);
    counts.forced_evictions += u64::from(victim.forced);
    counts.walk_sum += victim.walk;
    counts.walk_max = counts.walk_max.max(victim.walk);
    victim.frame
}
