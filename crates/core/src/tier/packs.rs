//! Slots that hold several compressed pages: where pages lie that have left the pool.
//!
//! ```text
//!   a slot   | head | page 7 | page 3 | page 12 | free |         closed at the end of the event that fills it
//! ```
//! A slot is free again when each of its pages has been written elsewhere or released. So there are never more slots
//! than pages, and no slot must be cleared for another one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::{PACK_EACH, PACK_HEAD, PACK_MAX};
use crate::ids::PageId;

/// The slot that takes pages now.
#[derive(Clone, Copy, Debug)]
struct Open {
    slot: u32,
    pages: usize,
    bytes: u32,
    last: usize,
}

/// All such slots.
pub(crate) struct Packs {
    slot_bytes: u32,
    /// By page: its slot plus 1; 0: none.
    of: Box<[u32]>,
    /// By page with a slot: the next page of that slot, in a ring.
    next: Box<[u32]>,
    size: Box<[u16]>,
    free: Vec<u32>,
    /// Slots that have ever been used.
    used: u32,
    open: Option<Open>,
}

impl Packs {
    /// No page is packed.
    pub(crate) fn new(pages: usize, slot_bytes: u32) -> Packs {
        Packs {
            slot_bytes,
            of: vec![0; pages].into_boxed_slice(),
            next: vec![0; pages].into_boxed_slice(),
            size: vec![0; pages].into_boxed_slice(),
            free: Vec::with_capacity(pages),
            used: 0,
            open: None,
        }
    }

    /// The slot with the page, from 0.
    pub(crate) fn slot_of(&self, page: PageId) -> Option<u32> {
        self.of[page.index()].checked_sub(1)
    }

    /// A new event begins: what it packs goes to another slot.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Whether a slot is open that takes a page of this size.
    pub(crate) fn takes(&self, size: u32) -> bool {
        let fits = |open: Open| open.bytes + size + PACK_EACH <= self.slot_bytes && open.pages < PACK_MAX;
        self.open.is_some_and(fits)
    }

    /// Packs the page. Returns its slot.
    pub(crate) fn pack(&mut self, page: PageId, size: u32) -> u32 {
        self.release(page);
        let i = page.index();
        let open = match self.open {
            Some(open) if self.takes(size) => {
                self.next[i] = self.next[open.last];
                self.next[open.last] = page.0;
                Open { pages: open.pages + 1, bytes: open.bytes + size + PACK_EACH, last: i, ..open }
            }
            _ => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.used += 1;
                    self.used - 1
                });
                self.next[i] = page.0;
                Open { slot, pages: 1, bytes: PACK_HEAD + size + PACK_EACH, last: i }
            }
        };
        (self.of[i], self.size[i]) = (open.slot + 1, size as u16);
        self.open = Some(open);
        open.slot
    }

    /// The page has left its slot.
    pub(crate) fn release(&mut self, page: PageId) {
        let Some(slot) = self.slot_of(page) else { return };
        let i = page.index();
        self.of[i] = 0;
        let (after, mut before) = (self.next[i] as usize, i);
        if after == i {
            self.open = self.open.filter(|open| open.slot != slot);
            return self.free.push(slot);
        }
        while self.next[before] as usize != i {
            before = self.next[before] as usize;
        }
        self.next[before] = after as u32;
        if let Some(open) = self.open.as_mut().filter(|open| open.last == i) {
            open.last = before;
        }
    }

    /// The page after this one in its slot, and its compressed size.
    pub(crate) fn after(&self, page: PageId) -> (PageId, u32) {
        let next = self.next[page.index()];
        (PageId(next), self.size[next as usize].into())
    }

    /// Checks that each slot is free or has pages, and that the pages of a slot are one ring.
    pub(crate) fn check(&self) {
        let mut held = vec![0usize; self.used as usize];
        for (i, of) in self.of.iter().enumerate() {
            let Some(slot) = of.checked_sub(1) else { continue };
            held[slot as usize] += 1;
            assert_eq!(self.of[self.next[i] as usize], *of, "page {i} is followed by a page of another slot");
        }
        for (i, of) in self.of.iter().enumerate().filter(|(_, of)| **of > 0) {
            let (mut ring, mut page) = (1, self.next[i] as usize);
            while page != i && ring <= PACK_MAX {
                (ring, page) = (ring + 1, self.next[page] as usize);
            }
            assert_eq!(ring, held[*of as usize - 1], "the ring of page {i} has lost pages");
        }
        let taken = held.iter().filter(|pages| **pages > 0).count();
        assert_eq!(taken + self.free.len(), held.len(), "a slot has leaked");
    }
}
