//! What a persistent area holds after a power cut.
//!
//! Every program carries its page and a sequence number; of several copies of a page, the one with the highest number
//! is valid. So each page is found as it was when `swap_out` last returned, and a program that the power cut
//! interrupted is ignored. A release is a hint, as TRIM is: it writes nothing. So a released page may come back, and
//! the owner of the list of pages must release it again. A volatile area is not recovered: it starts with `Swap::new`
//! once its blocks are erased.

use super::blocks::{Blocks, Use};
use super::{AreaConfig, Swap, SwapError};
use crate::ids::{BlockId, PageId, SlotId};

/// What a scan finds in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Not programmed since the erase.
    Erased,
    /// An interrupted program or erase: the bytes cannot be trusted.
    Torn,
    /// A page.
    Page {
        /// Which.
        page: PageId,
        /// The number that `Flash` was given.
        sequence: u64,
    },
}

impl Swap {
    /// Areas as found on flash. `scan` gives the contents of each slot; `health` gives the number of erases of each
    /// block, or `None` if it is bad. A block that is partly programmed is closed. Ages start anew at the sequence
    /// numbers found.
    ///
    /// # Errors
    /// As [`Swap::new`].
    pub fn recover(
        pages: usize,
        slots_per_block: u32,
        areas: &[AreaConfig],
        mut scan: impl FnMut(SlotId) -> Found,
        mut health: impl FnMut(BlockId) -> Option<u32>,
    ) -> Result<Swap, SwapError> {
        let mut swap = Swap::bare(pages, slots_per_block, areas)?;
        for i in 0..swap.blocks.len() {
            swap.blocks.find_block(BlockId::from(i), &mut scan, &mut health);
        }
        swap.areas.iter_mut().for_each(|area| area.start_found(&mut swap.blocks));
        Ok(swap)
    }
}

impl Blocks {
    fn find_block(
        &mut self,
        block: BlockId,
        scan: &mut impl FnMut(SlotId) -> Found,
        health: &mut impl FnMut(BlockId) -> Option<u32>,
    ) {
        let healthy = health(block);
        let n = self.slots_per_block;
        for i in 0..n {
            let slot = SlotId(block.0 * n + i);
            let found = scan(slot);
            if found != Found::Erased {
                self.get_mut(block).programmed = i + 1;
            }
            if let Found::Page { page, sequence } = found {
                self.find_page(slot, page, sequence);
            }
        }
        match healthy {
            Some(erases) => self.get_mut(block).erases = erases,
            None => (self.get_mut(block).used, self.get_mut(block).programmed) = (Use::Bad, n),
        }
    }

    fn find_page(&mut self, slot: SlotId, page: PageId, sequence: u64) {
        if page.index() >= self.pages() {
            return;
        }
        match self.slot_of(page) {
            Some(other) if self.born(other) > sequence => return,
            Some(other) => self.clear(other),
            None => {}
        }
        self.now = self.now.max(sequence);
        self.fill(slot, page, sequence);
        self.settle(page, slot);
    }
}
