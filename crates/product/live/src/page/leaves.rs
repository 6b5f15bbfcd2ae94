//! Where a page's entries are in the tables of `Pages`: in leaves of 16 pages, each begun when one of its pages is
//! touched first, next to the leaf begun before it. So a program that touches one page here and there has tables for
//! what it touches. The engine's tables have the same form (`coldframe_core`, `leaves.rs`).
//!
//! A page without a leaf has the entries of leaf 0, which are zeros for ever: it was never touched.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::table::Table;
use crate::LiveError;

/// Pages of a leaf.
const LEAF: usize = 16;

#[derive(Debug)]
pub struct Leaves {
    of: Table<AtomicU32>,
    begun: AtomicU32,
    most: usize,
}

impl Leaves {
    /// For `len` pages.
    pub fn new(len: usize) -> Result<Leaves, LiveError> {
        let leaves = len.div_ceil(LEAF);
        // Threads that begin the same leaf at a time use up a number each. A page is touched first under the lock of
        // the extents (`Space::touch`), so none is expected to.
        Ok(Leaves { of: Table::new(leaves)?, begun: AtomicU32::new(0), most: leaves + leaves / 8 + 64 })
    }

    /// The length of a table for all pages.
    pub fn entries(&self) -> usize {
        (self.most + 1) * LEAF
    }

    /// The entry of a page, to be read, or to be changed if the page was touched.
    pub fn entry(&self, page: usize) -> usize {
        self.of[page / LEAF].load(Ordering::Acquire) as usize * LEAF + page % LEAF
    }

    /// The entry of a page, to be changed.
    pub fn begin(&self, page: usize) -> usize {
        let leaf = &self.of[page / LEAF];
        if leaf.load(Ordering::Acquire) == 0 {
            let new = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(new as usize <= self.most, "no leaf is left for page {page}");
            // An error: another thread was first.
            let _ = leaf.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
        }
        self.entry(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_an_entry_of_its_own_once_it_is_touched() {
        let leaves = Leaves::new(1000).unwrap();
        assert_eq!((leaves.entry(0), leaves.entry(999)), (0, 999 % LEAF), "of leaf 0");
        let mut all: Vec<usize> = (0..1000).rev().map(|page| leaves.begin(page)).collect();
        let is_the_same =
            |page: usize| leaves.entry(page) == leaves.begin(page) && leaves.entry(page) == all[999 - page];
        assert!((0..1000).all(is_the_same));
        all.sort_unstable();
        all.dedup();
        assert!(all.len() == 1000 && all[0] >= LEAF && all[999] < leaves.entries());
    }

    #[test]
    fn far_pages_have_near_entries() {
        let leaves = Leaves::new(1 << 20).unwrap();
        assert_eq!([0, 1 << 19, 70_000].map(|page| leaves.begin(page) / LEAF), [1, 2, 3]);
    }
}
