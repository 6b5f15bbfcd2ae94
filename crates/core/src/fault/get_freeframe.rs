//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once where the machine wants that.
//!
//! It finds one without fail: the engine lets no more faults in than there are frames, so either a frame is free or the policy
//! holds one. A prefetch that must not push out pages of the running slice seeks its frame before anything else, since it may find none.

use super::low_memory::relieve;
use crate::command::{Command, Stage};
use crate::ids::{FrameId, Ticket};
use crate::page_state::PageState;
use crate::policy::Victim;
use crate::turn::Turn;

pub(super) fn get_freeframe(turn: &mut Turn<'_>, ticket: Ticket) {
    if turn.flights.get(ticket).frame.is_none() {
        let frame = find_frame(turn);
        turn.flights.get_mut(ticket).frame = Some(frame);
    }
}

/// A frame that is nobody else's, promised to the caller.
pub(super) fn find_frame(turn: &mut Turn<'_>) -> FrameId {
    let (policy, mut residents) = turn.policy_and_residents();
    policy.true_fault(&mut residents);
    relieve(turn);
    let frame = turn.ram.take_free().unwrap_or_else(|| evict_batch(turn));
    turn.mark(Stage::GetFreeframe);
    frame
}

/// The first victim's frame is the fault's; those of the others are free.
fn evict_batch(turn: &mut Turn<'_>) -> FrameId {
    let frame = evict_one(turn);
    turn.ram.keep(frame);
    for _ in 1..turn.config.evict_batch {
        if turn.ram.choices() == 0 {
            break;
        }
        let other = evict_one(turn);
        turn.ram.give_back(other);
    }
    frame
}

/// The policy's victim, passing over pages that have nowhere to go. If no page has, the first of them leaves: to its home slot.
fn choose(turn: &mut Turn<'_>) -> Victim {
    let Turn { ram, backing, machine, work, .. } = turn;
    let mut others = ram.choices() - 1;
    let (policy, mut residents) = ram.policy_and_residents(*machine, work);
    loop {
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
pub(crate) fn frame_behind_slice(turn: &mut Turn<'_>) -> Option<FrameId> {
    if let Some(frame) = turn.ram.take_free() {
        return Some(frame);
    }
    let (policy, mut residents) = turn.policy_and_residents();
    let victim = policy.victim_behind_slice(&mut residents)?;
    evict(turn, victim);
    turn.ram.keep(victim.frame);
    turn.mark(Stage::GetFreeframe);
    Some(victim.frame)
}

fn evict_one(turn: &mut Turn<'_>) -> FrameId {
    let victim = choose(turn);
    evict(turn, victim);
    victim.frame
}

fn evict(turn: &mut Turn<'_>, victim: Victim) {
    let Turn { pages, ram, backing, counts, machine, work, .. } = turn;
    let page = ram.frames().page(victim.frame);
    let (_, mut residents) = ram.policy_and_residents(*machine, work);
    let dirty = residents.evict(victim.frame, |page, machine| {
        let to = backing.slot_for(page, pages, machine);
        Command::Write { page, from: Some(victim.frame), to }
    });
    work.walk += victim.walk;
    pages.set(page, if dirty { PageState::Writing { tries: 1, released: false } } else { PageState::Absent });
    backing.left(page);
    let in_area = dirty && backing.in_area(page).is_some();
    let homeless = dirty && !in_area && backing.wants_slot(page);
    counts.evictions += 1;
    counts.dirty_evictions += u64::from(dirty);
    counts.homeless += u64::from(homeless);
    counts.swap_outs += u64::from(in_area);
    counts.forced_evictions += u64::from(victim.forced);
    counts.walk_sum += victim.walk;
    counts.walk_max = counts.walk_max.max(victim.walk);
}
