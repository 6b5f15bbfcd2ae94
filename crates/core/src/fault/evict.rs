//! Evictions: the policy's victim is written, compressed or dropped, and its frame is free.

use crate::command::Command;
use crate::ids::FrameId;
use crate::page_state::{PageState, COMPRESSING};
use crate::policy::Victim;
use crate::pool_op::PoolOp;
use crate::turn::Turn;

pub(super) fn evict_one(turn: &mut Turn<'_>) -> FrameId {
    let victim = choose(turn);
    evict(turn, victim);
    victim.frame
}

/// The policy's victim. Pages that have no place to go are passed over. If no page has a place, the first of them is
/// evicted to its home slot.
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

pub(super) fn evict(turn: &mut Turn<'_>, victim: Victim) {
    let Turn { pages, ram, backing, tier, counts, machine, work, .. } = turn;
    let (page, from) = (ram.frames().page(victim.frame), victim.frame);
    let (_, mut residents) = ram.policy_and_residents(*machine, work);
    let compress = tier.as_mut().is_some_and(|tier| tier.leaves(page));
    let dirty = residents.evict(from, |dirty, machine| match (compress, dirty) {
        (true, dirty) => Some(Command::Pool(PoolOp::Compress { page, from, dirty })),
        (false, true) => Some(Command::Write { page, from: Some(from), to: backing.slot_for(page, pages, machine) }),
        (false, false) => None,
    });
    work.walk += victim.walk;
    let tries = if compress { COMPRESSING } else { 1 };
    pages.set(page, if dirty || compress { PageState::Writing { tries, released: false } } else { PageState::Absent });
    if let Some(tier) = tier.as_mut().filter(|_| compress) {
        tier.compresses(page, dirty);
    }
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
