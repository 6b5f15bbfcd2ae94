//! Carries out the engine's commands for its swap area: sends pages to slots, copies pages between slots, and erases
//! blocks. Everything but the arrival of bytes happens under the engine's lock. So only one thread moves pages, and a
//! page without bytes in transfer stays in place meanwhile.

use coldframe_core::engine::TRIES;
use coldframe_core::{BlockId, SlotId};

use super::segments::{Inside, Refused};
use super::{Location, Log, FILE_SHIFT};
use crate::page::pages::Pages;
use crate::stats::Stats;
use crate::sys::{self, Signals};
use crate::PAGE;

impl Log {
    /// The page's bytes in RAM are on their way to the slot. Until they arrive, the page has no place.
    pub fn send(&self, page: usize, to: SlotId, pages: &Pages) {
        if self.places {
            return;
        }
        let mut state = self.state.lock();
        let old = pages.set_slot(page, None);
        self.free_slot(&mut state, old);
        if let Some(blocks) = &mut state.blocks {
            blocks.send(page as u32, to.0);
        }
    }

    /// The bytes of a sent page are final. Returns false if they are zeros, which need not be written.
    pub(super) fn take_sent(
        &self,
        state: &mut Inside,
        from: usize,
        sum: u128,
        page: u32,
        pages: &Pages,
    ) -> Result<bool, Refused> {
        let zero = sum == self.summer.zero();
        if !zero {
            self.put(state, from, page, pages)?;
            pages.set_sum(page as usize, sum);
        }
        if let Some(blocks) = &mut state.blocks {
            blocks.arrived(page);
        }
        Ok(!zero)
    }

    /// Puts the bytes into the page's new place. Its old slot is free.
    pub(super) fn put(&self, state: &mut Inside, from: usize, page: u32, pages: &Pages) -> Result<(), Refused> {
        let (slot, into) = state.place(page)?;
        // SAFETY: a page of the caller's, and a page of the buffer, which is not read before the page has its slot.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, into as *mut u8, PAGE) };
        let old = pages.set_slot(page as usize, Some(self.own_number() << FILE_SHIFT | slot as u64));
        self.free_slot(state, old);
        Ok(())
    }

    /// Copies the page to another slot, through `scratch`. A page that cannot be read stays in place. Its segment
    /// then belongs to no block but is not free, and a later load of the page reports the error.
    pub fn copy(&self, page: usize, to: SlotId, scratch: usize, pages: &Pages, stats: &Stats) {
        let mut state = self.state.lock();
        let Some(blocks) = &mut state.blocks else { return };
        if blocks.redirect(page as u32, to.0) {
            return;
        }
        drop(state);
        if !self.fetch(page, scratch, pages, stats) {
            return;
        }
        let (state, ()) = self.with_room(self.state.lock(), |state| self.put(state, scratch, page as u32, pages));
        self.unlock(state);
    }

    /// Loads the page's bytes into `into`. Returns false if it has none, or if they cannot be read.
    fn fetch(&self, page: usize, into: usize, pages: &Pages, stats: &Stats) -> bool {
        for _ in 0..TRIES {
            let slot = match self.find(pages, page, into) {
                Location::Zeros => return false,
                Location::Memory => return true,
                Location::Device(slot) => slot,
            };
            Stats::add(&stats.device_reads, 1);
            // SAFETY: the caller's page, which no other thread has.
            if unsafe { self.read(slot, into).is_ok() && self.verify(pages, page, into) } {
                Stats::add(&stats.device_bytes_read, PAGE as u64);
                return true;
            }
            Stats::add(&stats.failures, 1);
            sys::give_way();
        }
        false
    }

    /// Erases a block: this only changes the tables, and cannot fail.
    pub fn erase(&self, block: BlockId) {
        let mut state = self.state.lock();
        state.erase(block.index());
        self.unlock(state);
    }

    pub fn forget(&self, page: usize, slot: Option<u64>) {
        let mut state = self.state.lock();
        self.free_slot(&mut state, slot);
        if let Some(blocks) = &mut state.blocks {
            blocks.forget(page as u32);
        }
    }

    /// Whether the engine keeps a slot of its swap area for the page, even for zeros.
    pub fn has_slot(&self, page: usize) -> bool {
        if self.places {
            return false;
        }
        let _signals = Signals::block();
        self.state.lock().blocks.as_ref().is_some_and(|blocks| blocks.slot_of(page as u32).is_some())
    }

    /// Whether the engine may look for the page there.
    #[cfg(debug_assertions)]
    pub fn lies_in(&self, page: usize, slot: SlotId) -> bool {
        self.state.lock().blocks.as_ref().is_none_or(|blocks| blocks.lies_in(page as u32, slot.0))
    }

    /// Whether the page was moved since it was found in this slot.
    pub fn has_moved(&self, page: usize, slot: u64, pages: &Pages) -> bool {
        !self.places && pages.slot(page) != Some(slot)
    }
}
