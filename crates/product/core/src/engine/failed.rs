//! Failures of the device: the transfer is tried again, then in another place, and finally the page is given up.

use crate::command::Command;
use crate::fault::flights::Flight;
use crate::fault::held::move_held;
use crate::fault::turn::Turn;
use crate::ids::{BlockId, PageId, SlotId, Ticket};
use crate::page_state::PageState;

/// How often a transfer is tried before the page is given up.
pub const TRIES: u8 = 3;

pub(super) fn load_failed(turn: &mut Turn<'_>, ticket: Ticket) {
    turn.counts.failures += 1;
    let flight = turn.flights.get_mut(ticket);
    let Flight { task, page, buffer, frame, tries, .. } = *flight;
    let into = buffer.expect("a load has a buffer");
    if tries < TRIES {
        flight.tries += 1;
        turn.counts.page_loads += 1;
        return turn.issue(Command::Load { ticket, page, from: turn.backing.slot_of(page), into });
    }
    turn.flights.end(ticket);
    turn.buffers.give_back(into);
    if let Some(frame) = frame {
        turn.ram.frames.release(frame);
    }
    // A later load of another task may succeed; this task cannot continue.
    turn.pages.set(page, PageState::Absent);
    if let Some(task) = task {
        turn.halt(task, page);
    }
}

pub(super) fn write_failed(turn: &mut Turn<'_>, page: PageId) {
    let PageState::Writing { tries, released } = turn.pages.get(page) else { unreachable!("not accepted") };
    turn.counts.failures += 1;
    let state = match (released, tries < TRIES) {
        (true, _) => PageState::Untouched,
        (false, false) => PageState::Lost,
        (false, true) => {
            turn.backing.failed(page);
            let to = turn.slot_for(page);
            turn.issue(Command::Write { page, from: None, to });
            PageState::Writing { tries: tries + 1, released }
        }
    };
    turn.pages.set(page, state);
}

pub(super) fn erase_failed(turn: &mut Turn<'_>, block: BlockId) {
    turn.counts.failures += 1;
    turn.backing.erase_failed(block);
}

/// A copy within the swap area failed, and the page's old slot is gone. The machine has kept the bytes: they go
/// to another slot, and finally to the home slot. If that fails, too, only RAM can still have the page.
pub(super) fn copy_failed(turn: &mut Turn<'_>, page: PageId, to: SlotId) {
    turn.counts.failures += 1;
    if !turn.backing.copy_failed(page, to) {
        return;
    }
    if to != page.home() {
        let to = turn.slot_for(page);
        return turn.issue(Command::CopySlot { page, from: None, to });
    }
    match turn.pages.get(page) {
        PageState::Resident(frame) => turn.ram.soil(frame),
        PageState::Held(buffer) if turn.ram.has_frame_to_give() => {
            let frame = move_held(turn, (page, buffer), false);
            turn.ram.soil(frame);
        }
        PageState::Held(_) => {
            turn.issue(Command::Unmap { page });
            turn.buffers.forget(page);
            turn.pages.set(page, PageState::Lost);
        }
        PageState::Absent => turn.pages.set(page, PageState::Lost),
        // A load of this page will fail, and its task stops; a write of this page has newer bytes.
        _ => {}
    }
}
