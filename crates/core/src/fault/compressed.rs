//! The compressed tier during a fault: the pool gets or returns frames before a frame is sought, and compressed pages
//! get their place.
//!
//! ```text
//!   GetFreeframe   pool short: its next bin of four frames, by evictions          pool long: a bin is cleared and comes back
//!   Compressed     Store  ── no room: the oldest leave (TakeOut) ── too large: Write, or Forget if its slot
//!                            has the same
//!   Loaded         Keep: pages that lie in the same slot
//! ```

use super::evict::evict_one;
use crate::command::Command;
use crate::ids::{FrameId, PageId, Ticket};
use crate::page_state::PageState;
use crate::pool_op::PoolOp;
use crate::tier::{Leaver, Tier, BIN_FRAMES, STAY};
use crate::turn::Turn;

/// One bin is lent for each 16 pages that leave together. A page then takes a quarter of a frame, or somewhat more.
const BATCH_OF_BIN: usize = 16;

/// Moves frames between RAM and the pool if needed, before a frame is sought. `leaves`: a page is about to leave RAM.
pub(super) fn balance(turn: &mut Turn<'_>, leaves: bool) {
    let leaving = turn.config.evict_batch;
    let Some(tier) = turn.tier.as_ref() else { return };
    if tier.wants_table() && may_give_table(turn) {
        return give_table(turn);
    }
    if tier.is_long(leaving) {
        return shrink(turn);
    }
    if !leaves {
        return;
    }
    // More than one bin at a time, so that a young pool keeps up with batches.
    for _ in 0..leaving.div_ceil(BATCH_OF_BIN) {
        let short = turn.tier.as_ref().is_some_and(|tier| tier.is_short(leaving));
        if !short || turn.ram.choices() < BIN_FRAMES + STAY {
            return;
        }
        grow(turn);
    }
}

/// Tables never return a frame, so each load in flight must still find one beside the pinned pages. Tables without a
/// frame take RAM besides the frames.
fn may_give_table(turn: &Turn<'_>) -> bool {
    let tables = turn.tier.as_ref().map_or(0, Tier::tables);
    let left = turn.config.frames.saturating_sub(tables + turn.ram.frames().pinned());
    let used = turn.config.caps.buffers as usize + turn.config.evict_batch;
    turn.ram.choices() >= BIN_FRAMES + STAY && left > used + BIN_FRAMES + STAY
}

/// The tables get one frame more. If the pool has too many, it first returns a bin.
fn give_table(turn: &mut Turn<'_>) {
    if !turn.tier.as_ref().is_some_and(Tier::has_table_room) {
        shrink(turn);
    }
    if turn.tier.as_ref().is_some_and(Tier::has_table_room) {
        lend_one(turn);
        turn.tier.as_mut().into_iter().for_each(Tier::take_table);
    }
}

/// Lends a frame: a free one, or that of a victim.
fn lend_one(turn: &mut Turn<'_>) -> FrameId {
    let frame = turn.ram.take_free().unwrap_or_else(|| {
        let victim = evict_one(turn);
        turn.ram.keep(victim);
        victim
    });
    turn.ram.lend(frame);
    frame
}

fn grow(turn: &mut Turn<'_>) {
    let mut frames = [FrameId(0); BIN_FRAMES];
    frames.iter_mut().for_each(|frame| *frame = lend_one(turn));
    let Some(tier) = turn.tier.as_mut() else { return };
    let bin = tier.lend(frames);
    say_lent(turn, frames, bin, true);
}

fn say_lent(turn: &mut Turn<'_>, frames: [FrameId; BIN_FRAMES], bin: usize, lent: bool) {
    for (i, frame) in frames.into_iter().enumerate() {
        turn.issue(Command::Pool(PoolOp::Lend { frame, part: (bin * BIN_FRAMES + i) as u32, lent }));
    }
}

/// Takes a bin back from the pool, if there is one. Its pages move to other bins; pages that fit nowhere leave the
/// pool.
pub(super) fn shrink(turn: &mut Turn<'_>) {
    let Some(bin) = turn.tier.as_mut().and_then(Tier::close_bin) else { return };
    while let Some(cleared) = turn.tier.as_mut().and_then(|tier| tier.clear_bin(bin, turn.machine)) {
        if let Some(leaver) = cleared {
            leave(turn, leaver);
        }
    }
    let Some(tier) = turn.tier.as_mut() else { return };
    let frames = tier.return_bin(bin);
    frames.into_iter().for_each(|frame| turn.ram.give_back(frame));
    say_lent(turn, frames, bin, false);
}

/// A page leaves the pool. It is written unless its slot has the same bytes.
fn leave(turn: &mut Turn<'_>, Leaver { page, at, size, stale }: Leaver) {
    if !stale {
        return;
    }
    let opens = !turn.backing.packs().is_some_and(|packs| packs.takes(size));
    let to = turn.backing.pack(page, size);
    if let Some(tier) = turn.tier.as_mut() {
        tier.counts.packed += u64::from(opens);
    }
    turn.issue(Command::Pool(PoolOp::TakeOut { page, at, size, to }));
    turn.pages.set(page, PageState::Writing { tries: 1, released: false });
}

/// The oldest pages fill the slot that the page that had to leave has opened.
fn fill_slot(turn: &mut Turn<'_>) {
    loop {
        let Some(packs) = turn.backing.packs() else { return };
        let leaver = turn.tier.as_mut().and_then(|tier| tier.old_one_out(|size| packs.takes(size)));
        let Some(leaver) = leaver else { return };
        leave(turn, leaver);
    }
}

/// A packed slot has been loaded into the buffer of the flight. The other pages of the slot go to the pool, if such
/// pages were needed lately.
pub(crate) fn keep_beside(turn: &mut Turn<'_>, ticket: Ticket) {
    let flight = turn.flights.get(ticket);
    let (Some(from), Some(tier), Some(packs)) = (flight.buffer, turn.tier.as_mut(), turn.backing.packs()) else {
        return;
    };
    if !flight.packed || !tier.wants_beside() {
        return;
    }
    let (mut page, mut size) = packs.after(flight.page);
    while page != flight.page {
        if turn.pages.get(page) == PageState::Absent && !tier.has(page) {
            let Some(at) = tier.keep(page, size, turn.machine) else { return };
            turn.machine.issue(Command::Pool(PoolOp::Keep { page, from, at, size }));
        }
        (page, size) = packs.after(page);
    }
}

/// Writes the bytes that the machine has kept to the page's own slot.
fn write(turn: &mut Turn<'_>, page: PageId) {
    let to = turn.slot_for(page);
    turn.issue(Command::Write { page, from: None, to });
    turn.pages.set(page, PageState::Writing { tries: 1, released: false });
}

/// The machine reports the compressed size of a page that has left its frame.
pub(crate) fn compressed(turn: &mut Turn<'_>, page: PageId, size: u32, same: bool) {
    let PageState::Writing { released, .. } = turn.pages.get(page) else { unreachable!("not accepted") };
    let Some(tier) = turn.tier.as_mut() else { unreachable!("not accepted") };
    if same {
        tier.written(page);
    }
    if released {
        turn.pages.set(page, PageState::Untouched);
        return turn.issue(Command::Pool(PoolOp::Forget { page }));
    }
    if store(turn, page, size) {
        return turn.pages.set(page, PageState::Absent);
    }
    let Some(tier) = turn.tier.as_mut() else { unreachable!("not accepted") };
    tier.refuse();
    if tier.is_stale(page) {
        return write(turn, page);
    }
    turn.issue(Command::Pool(PoolOp::Forget { page }));
    turn.pages.set(page, PageState::Absent);
}

/// Puts the page into the pool. Returns false if there is no room.
fn store(turn: &mut Turn<'_>, page: PageId, size: u32) -> bool {
    for _ in 0..=Tier::LEAVE_MAX {
        let Some(tier) = turn.tier.as_mut() else { return false };
        if !tier.takes(page, size) {
            return false;
        }
        if let Some(at) = tier.store(page, size, turn.machine) {
            turn.issue(Command::Pool(PoolOp::Store { page, at, size }));
            return true;
        }
        let Some(leaver) = tier.oldest_out() else { return false };
        leave(turn, leaver);
        fill_slot(turn);
    }
    false
}
