//! Data of each page: where the page is (see `state`), where its bytes are, and the hash that checks them.

pub use crate::page::state::{Owner, Where};

use crate::page::state::States;
use crate::sys::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::table::Table;
use crate::LiveError;

#[derive(Debug)]
pub struct Pages {
    state: States,
    /// Place in the swap file plus 1; 0: no content, the page is zeros.
    slot: Table<AtomicU64>,
    /// The fork epoch in which the page was last mapped.
    epoch: Table<AtomicU32>,
    /// Keyed hash of the bytes in the slot; meaningful only with a slot.
    sum: Wide,
    /// Authentication tag and nonce of the bytes in the slot, if they are encrypted.
    seal: Wide,
    nonce: Table<AtomicU64>,
}

/// Its states are the pages' own.
impl std::ops::Deref for Pages {
    type Target = States;
    fn deref(&self) -> &States {
        &self.state
    }
}

impl Pages {
    pub fn new(len: usize) -> Result<Pages, LiveError> {
        let state = States::new(len)?;
        let len = state.leaves.entries();
        Ok(Pages {
            state,
            slot: Table::new(len)?,
            epoch: Table::new(len)?,
            sum: Wide::new(len)?,
            seal: Wide::new(len)?,
            nonce: Table::new(len)?,
        })
    }

    /// Slot of the page's bytes; `None`: the page is zeros.
    pub fn slot(&self, page: usize) -> Option<u64> {
        self.slot[self.leaves.entry(page)].load(Ordering::Acquire).checked_sub(1)
    }

    /// Gives the page another slot; returns the old one.
    pub fn set_slot(&self, page: usize, slot: Option<u64>) -> Option<u64> {
        self.slot[self.leaves.begin(page)].swap(slot.map_or(0, |s| s + 1), Ordering::AcqRel).checked_sub(1)
    }

    pub fn epoch(&self, page: usize) -> u32 {
        self.epoch[self.leaves.entry(page)].load(Ordering::Relaxed)
    }

    /// A table that is only read costs no RAM. Without forks, this one is never written to.
    pub fn set_epoch(&self, page: usize, epoch: u32) {
        if self.epoch(page) != epoch {
            self.epoch[self.leaves.begin(page)].store(epoch, Ordering::Relaxed);
        }
    }

    /// The hash of the slot's bytes. Only for the owner of the page's transition.
    pub fn sum(&self, page: usize) -> u128 {
        self.sum.get(self.leaves.entry(page))
    }

    pub fn set_sum(&self, page: usize, sum: u128) {
        self.sum.set(self.leaves.begin(page), sum);
    }

    pub fn seal(&self, page: usize) -> (u64, u128) {
        let entry = self.leaves.entry(page);
        (self.nonce[entry].load(Ordering::Relaxed), self.seal.get(entry))
    }

    pub fn set_seal(&self, page: usize, nonce: u64, tag: u128) {
        let entry = self.leaves.begin(page);
        self.nonce[entry].store(nonce, Ordering::Relaxed);
        self.seal.set(entry, tag);
    }
}

/// Values of two words, each touched only by the thread that owns the transition of its page.
#[derive(Debug)]
struct Wide {
    words: Table<AtomicU64>,
}

impl Wide {
    fn new(len: usize) -> Result<Wide, LiveError> {
        Ok(Wide { words: Table::new(2 * len)? })
    }

    fn get(&self, i: usize) -> u128 {
        let word = |i: usize| u128::from(self.words[i].load(Ordering::Acquire));
        word(2 * i + 1) << 64 | word(2 * i)
    }

    fn set(&self, i: usize, value: u128) {
        self.words[2 * i].store(value as u64, Ordering::Release);
        self.words[2 * i + 1].store((value >> 64) as u64, Ordering::Release);
    }
}
