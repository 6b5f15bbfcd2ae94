//! What the machine knows of each page: one byte that says where it is, changed by compare-and-swap, and what is needed to find its
//! bytes again and to prove that they are the right ones.
//!
//! ```text
//!            fault, load            first write
//!   Out ────► Busy ───► Clean ────► Busy ───► Dirty           Clean: mapped, writes fault
//!    ▲                  Unsure (mapped writable, known by its sum)    Dirty: mapped, writable
//!    │                      │ Command::Protect
//!    └── Leaving ◄──────────┘   zap, and the bytes are safe
//!            ▲ │ Command::Unmap: moved to the holding area
//!            └─ Held ──► Busy ──► Dirty or Unsure: a false fault moves it back
//! ```
//! `Busy` and `Leaving` belong to one thread, which never waits for the engine's lock while a page of its own is `Busy`, or on its way to the
//! holding area. Whoever finds a page so waits a moment and looks again, perhaps with the lock in hand.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};

use crate::table::Table;
use crate::LiveError;

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Where {
    /// No region has it: a touch is a bug of the program.
    Nowhere = 0,
    /// Not in RAM.
    Out = 1,
    /// In the page table, and writes to it fault.
    Clean = 2,
    /// In the page table, writable, and written to.
    Dirty = 3,
    /// In the page table, writable; whether it was written to shows when its sum is taken.
    Unsure = 4,
    /// A thread is changing it.
    Busy = 5,
    /// A thread is taking it out.
    Leaving = 6,
    /// In RAM, in the holding area: on the engine's invalid list.
    Held = 7,
}

impl Where {
    fn from(byte: u8) -> Where {
        match byte {
            0 => Where::Nowhere,
            1 => Where::Out,
            2 => Where::Clean,
            3 => Where::Dirty,
            4 => Where::Unsure,
            5 => Where::Busy,
            6 => Where::Leaving,
            _ => Where::Held,
        }
    }
}

/// All pages.
#[derive(Debug)]
pub struct Pages {
    state: Table<AtomicU8>,
    /// Place in the swap file plus one; 0: no content, the page is zeros.
    slot: Table<AtomicU64>,
    /// The fork epoch in which the page was last mapped.
    epoch: Table<AtomicU32>,
    /// Region of the page: 0 for anonymous memory, else the number of a file.
    file: Table<AtomicU8>,
    /// Keyed hash of the bytes that lie in the slot; meaningful with a slot.
    sum: Wide,
    /// Authentication tag and nonce of the bytes in the slot, where they are encrypted.
    seal: Wide,
    nonce: Table<AtomicU64>,
}

impl Pages {
    /// So many pages, all nowhere.
    pub fn new(len: usize) -> Result<Pages, LiveError> {
        Ok(Pages {
            state: Table::new(len)?,
            slot: Table::new(len)?,
            epoch: Table::new(len)?,
            file: Table::new(len)?,
            sum: Wide::new(len)?,
            seal: Wide::new(len)?,
            nonce: Table::new(len)?,
        })
    }

    /// Where a page is now.
    pub fn get(&self, page: usize) -> Where {
        Where::from(self.state[page].load(Ordering::Acquire))
    }

    /// Sets it; only for the owner of a busy or leaving page, or under the engine's lock for one that is out or held.
    pub fn set(&self, page: usize, to: Where) {
        self.state[page].store(to as u8, Ordering::Release);
    }

    /// Takes a page from one state to another, if it is in it.
    pub fn change(&self, page: usize, from: Where, to: Where) -> bool {
        self.state[page].compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Slot of the page's bytes; `None`: they are zeros.
    pub fn slot(&self, page: usize) -> Option<u64> {
        self.slot[page].load(Ordering::Acquire).checked_sub(1)
    }

    /// Gives the page another slot; returns the old one.
    pub fn set_slot(&self, page: usize, slot: Option<u64>) -> Option<u64> {
        self.slot[page].swap(slot.map_or(0, |s| s + 1), Ordering::AcqRel).checked_sub(1)
    }

    pub fn epoch(&self, page: usize) -> u32 {
        self.epoch[page].load(Ordering::Relaxed)
    }

    pub fn set_epoch(&self, page: usize, epoch: u32) {
        self.epoch[page].store(epoch, Ordering::Relaxed);
    }

    /// The file that the page belongs to; `None`: it is anonymous.
    pub fn file(&self, page: usize) -> Option<usize> {
        usize::from(self.file[page].load(Ordering::Relaxed)).checked_sub(1)
    }

    pub fn set_file(&self, page: usize, file: Option<usize>) {
        self.file[page].store(file.map_or(0, |f| f as u8 + 1), Ordering::Relaxed);
    }

    /// The sum of the slot's bytes. For the owner of the page's transition only.
    pub fn sum(&self, page: usize) -> u128 {
        self.sum.get(page)
    }

    pub fn set_sum(&self, page: usize, sum: u128) {
        self.sum.set(page, sum);
    }

    /// Nonce and tag under which the slot's bytes are sealed.
    pub fn seal(&self, page: usize) -> (u64, u128) {
        (self.nonce[page].load(Ordering::Relaxed), self.seal.get(page))
    }

    pub fn set_seal(&self, page: usize, nonce: u64, tag: u128) {
        self.nonce[page].store(nonce, Ordering::Relaxed);
        self.seal.set(page, tag);
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
