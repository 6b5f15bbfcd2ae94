//! Evictions: the policy's victim is written or dropped, and its frame is free.

use crate::command::Command;
use crate::fault::turn::Turn;
use crate::ids::FrameId;
use crate::page_state::PageState;
use crate::policy::Victim;

/// Evicts a page; `None` if there is none, or if the search has found one already (`another`) and its budget is spent.
pub(super) fn evict_one(turn: &mut Turn<'_>, another: bool) -> Option<FrameId> {
    let victim = choose(turn, another)?;
    evict(turn, victim);
    Some(victim.frame)
}

/// The policy's victim. Pages that have no place to go are passed over. If no page has a place, the first of them is
/// evicted to its home slot.
fn choose(turn: &mut Turn<'_>, another: bool) -> Option<Victim> {
    let Turn { ram, backing, machine, work, .. } = turn;
    let mut others = ram.choices().checked_sub(1)?;
    let (policy, mut residents) = ram.policy_and_residents(*machine, work);
    loop {
        let victim = match another {
            true => policy.another_victim(&mut residents)?,
            false => policy.victim(&mut residents),
        };
        if others == 0 || backing.has_room_for(residents.page(victim.frame)) {
            return Some(victim);
        }
        others -= 1;
        policy.insert(victim.frame, &mut residents);
        residents.work.walk += victim.walk;
    }
}

pub(super) fn evict(turn: &mut Turn<'_>, victim: Victim) {
    let Turn { pages, ram, backing, counts, machine, work, .. } = turn;
    let (page, from) = (ram.frames.page(victim.frame), victim.frame);
    let (_, mut residents) = ram.policy_and_residents(*machine, work);
    let dirty = residents.evict(from, |machine| Command::Write {
        page,
        from: Some(from),
        to: backing.slot_for(page, pages, machine),
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
}
