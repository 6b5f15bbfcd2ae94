//! Failures of the device: the transfer is tried again, then in another place, and finally the page is given up.

use crate::command::Command;
use crate::fault::held::move_held;
use crate::flights::Flight;
use crate::ids::{BlockId, PageId, SlotId, Ticket};
use crate::page_state::PageState;
use crate::turn::Turn;

/// How often a transfer is tried before the page is given up.
pub const TRIES: u8 = 3;

impl Turn<'_> {
    pub(super) fn load_failed(&mut self, ticket: Ticket) {
        self.counts.failures += 1;
        let flight = self.flights.get_mut(ticket);
        let Flight { task, page, buffer, frame, tries, .. } = *flight;
        let into = buffer.expect("a load has a buffer");
        if tries < TRIES {
            flight.tries += 1;
            self.counts.page_loads += 1;
            return self.issue(Command::Load { ticket, page, from: self.backing.slot_of(page), into });
        }
        self.flights.end(ticket);
        self.buffers.give_back(into);
        if let Some(frame) = frame {
            self.ram.frames.release(frame);
        }
        // A later load of another task may succeed; this task cannot continue.
        self.pages.set(page, PageState::Absent);
        if let Some(task) = task {
            self.halt(task, page);
        }
    }

    pub(super) fn write_failed(&mut self, page: PageId) {
        let PageState::Writing { tries, released } = self.pages.get(page) else { unreachable!("not accepted") };
        self.counts.failures += 1;
        let state = match (released, tries < TRIES) {
            (true, _) => PageState::Untouched,
            (false, false) => PageState::Lost,
            (false, true) => {
                self.backing.failed(page);
                let to = self.slot_for(page);
                self.issue(Command::Write { page, from: None, to });
                PageState::Writing { tries: tries + 1, released }
            }
        };
        self.pages.set(page, state);
    }

    pub(super) fn erase_failed(&mut self, block: BlockId) {
        self.counts.failures += 1;
        self.backing.erase_failed(block);
    }

    /// A copy within the swap area failed, and the page's old slot is gone. The machine has kept the bytes: they go
    /// to another slot, and finally to the home slot. If that fails, too, only RAM can still have the page.
    pub(super) fn copy_failed(&mut self, page: PageId, to: SlotId) {
        self.counts.failures += 1;
        if !self.backing.copy_failed(page, to) {
            return;
        }
        if to != page.home() {
            let to = self.slot_for(page);
            return self.issue(Command::CopySlot { page, from: None, to });
        }
        match self.pages.get(page) {
            PageState::Resident(frame) => self.ram.soil(frame),
            PageState::Held(buffer) if self.ram.has_frame_to_give() => {
                let frame = move_held(self, (page, buffer), false);
                self.ram.soil(frame);
            }
            PageState::Held(_) => {
                self.issue(Command::Unmap { page });
                self.buffers.forget(page);
                self.pages.set(page, PageState::Lost);
            }
            PageState::Absent => self.pages.set(page, PageState::Lost),
            // A load of this page will fail, and its task stops; a write of this page has newer bytes.
            _ => {}
        }
    }
}
