//! Direct read: a swapped page is mapped in its slot, read-only, and is not copied (DR.Swap, TCAD 2016, section III.B).
//!
//! `PageState::InSlot` is the paper's sixth bit of a page table entry. Such a page has no frame, so no policy knows
//! it and it costs no RAM. A write to it faults and removes the mapping. Then the page is handled like any true
//! fault: it is copied to DRAM and mapped read-write, and its slot is free.
//!
//! Where home slots are the area, a page is mapped in its slot as soon as its bytes are there, which spares the fault
//! of the next read. The paper's swap waits for that fault.

use crate::command::{Command, Stage};
use crate::fault::turn::Turn;
use crate::ids::{PageId, SlotId, TaskId};
use crate::page_state::PageState;
use crate::place::Place;

/// Answers a read of a page that is in a slot of the area.
pub(crate) fn read_in_slot(turn: &mut Turn<'_>, task: TaskId, page: PageId, slot: SlotId) {
    turn.mark(Stage::PreProcess);
    turn.counts.direct_reads += 1;
    map_in_slot(turn, page, slot, true);
    turn.mark(Stage::UpdateMMU);
    turn.mark(Stage::PostProcess);
    turn.issue(Command::Resume { task });
}

/// Maps a page where it is; `referenced`: it is being read.
pub(crate) fn map_in_slot(turn: &mut Turn<'_>, page: PageId, slot: SlotId, referenced: bool) {
    turn.pages.set(page, PageState::InSlot(slot));
    let place = Place::Slot(turn.backing.slot_of(page));
    turn.issue(Command::Map { page, place, writable: false, referenced });
}

/// The page will be copied: from now on it is an ordinary swapped page.
pub(crate) fn leave_slot(turn: &mut Turn<'_>, page: PageId) {
    turn.pages.set(page, PageState::Absent);
    turn.issue(Command::Unmap { page });
}
