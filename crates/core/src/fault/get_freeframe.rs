//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once where the machine wants that.
//!
//! It finds one without fail: the engine lets no more faults in than there are frames, so either a frame is free or the policy
//! holds one. A prefetch that must not push out pages of the running slice seeks its frame before anything else, since it may find none.

use super::low_memory::relieve;
use super::{mark, Fault};
use crate::command::{Command, Stage, Work};
use crate::engine::Engine;
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::machine::Machine;
use crate::page_state::PageState;
use crate::policy::Victim;

pub(super) fn get_freeframe(fault: &mut Fault<'_>) {
    if fault.in_flight().frame.is_some() {
        return;
    }
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
    let frame = evict_one(engine, machine, work);
    engine.frames.hand_over(frame);
    for _ in 1..engine.config.evict_batch {
        if engine.policy.is_empty() {
            break;
        }
        let other = evict_one(engine, machine, work);
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

/// A free frame, or that of a page which the running slice has not touched; `None` if there is none.
pub(crate) fn frame_behind_slice(engine: &mut Engine, machine: &mut dyn Machine) -> Option<FrameId> {
    if let Some(frame) = engine.frames.reserve() {
        return Some(frame);
    }
    let mut work = Work::default();
    let (policy, mut residents) = engine.policy_and_residents(machine, &mut work);
    let victim = policy.victim_behind_slice(&mut residents)?;
    evict(engine, machine, &mut work, victim);
    engine.frames.hand_over(victim.frame);
    mark(machine, Stage::GetFreeframe, &mut work);
    Some(victim.frame)
}

fn evict_one(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work) -> FrameId {
    let victim = choose(engine, machine, work);
    evict(engine, machine, work, victim);
    victim.frame
}

fn evict(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work, victim: Victim) {
    let page = engine.frames.page(victim.frame);
    let (backing, pages) = (&mut engine.backing, &mut engine.pages);
    let mut residents = Residents { frames: &mut engine.frames, machine, caps: engine.config.caps, work };
    let dirty = residents.evict(victim.frame, |page, machine| {
        let to = backing.slot_for(page, pages, machine);
        Command::Write { page, from: Some(victim.frame), to }
    });
    work.walk += victim.walk;
    let state = if dirty { PageState::Writing { tries: 1, released: false } } else { PageState::Absent };
    engine.pages.set(page, state);
    engine.backing.left(page);
    let in_area = dirty && engine.backing.in_area(page).is_some();
    let homeless = dirty && !in_area && engine.backing.wants_slot(page);
    let counts = &mut engine.counts;
    counts.evictions += 1;
    counts.dirty_evictions += u64::from(dirty);
    counts.homeless += u64::from(homeless);
    counts.swap_outs += u64::from(in_area);
    counts.forced_evictions += u64::from(victim.forced);
    counts.walk_sum += victim.walk;
    counts.walk_max = counts.walk_max.max(victim.walk);
}
