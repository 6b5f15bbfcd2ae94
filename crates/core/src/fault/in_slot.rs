//! Direct read: a swapped page is mapped where it lies, read-only, and nothing is copied (DR.Swap, TCAD 2016, section III.B).
//!
//! `PageState::InSlot` is the paper's sixth bit of a page table entry. Such a page has no frame, so no policy knows it and it costs no RAM. A
//! write to it faults, takes the mapping away, and then goes the way of any true fault: copied to DRAM, mapped read-write, slot given back.

use super::{mark, InFlight};
use crate::command::{Command, Stage, Work};
use crate::engine::Engine;
use crate::ids::{PageId, SlotId, TaskId};
use crate::machine::Machine;
use crate::page_state::PageState;
use crate::place::Place;

/// Answers a read of a page that lies in a slot of the area.
pub(crate) fn read_in_slot(engine: &mut Engine, machine: &mut dyn Machine, task: TaskId, page: PageId, slot: SlotId) {
    let mut work = Work::default();
    mark(machine, Stage::PreProcess, &mut work);
    engine.counts.direct_reads += 1;
    engine.pages.set(page, PageState::InSlot(slot));
    let place = Place::Slot(engine.backing.slot_of(page));
    machine.issue(Command::Map { page, place, writable: false, referenced: true });
    mark(machine, Stage::UpdateMMU, &mut work);
    mark(machine, Stage::PostProcess, &mut work);
    machine.issue(Command::Resume { task });
}

/// The page is read in its slot so often that a copy pays: it goes to a frame as any swapped page does, but nobody waits for it. Without a
/// ticket it stays where it is, which is no harm.
pub(crate) fn copy_often_read(engine: &mut Engine, machine: &mut dyn Machine, page: PageId) {
    let Some(ticket) = engine.tickets.pop() else { return };
    engine.counts.read_often += 1;
    engine.pages.set(page, PageState::Absent);
    machine.issue(Command::Unmap { page });
    engine.load(ticket, InFlight { task: None, page, writing: false, buffer: None, frame: None, tries: 1 }, machine);
}

/// A task wants to write to a page that is mapped in its slot: from now on it is a swapped page like any other.
pub(crate) fn leave_slot(engine: &mut Engine, machine: &mut dyn Machine, page: PageId) {
    engine.counts.write_faults += 1;
    engine.pages.set(page, PageState::Absent);
    machine.issue(Command::Unmap { page });
}
