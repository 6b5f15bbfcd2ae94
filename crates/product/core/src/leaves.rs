//! A word for each page, zero at first, in leaves of 16 pages. A leaf is begun with its first word that is not zero,
//! next to the one begun before it: a program that touches one page here and there has tables for what it touches, and
//! not a page of each table for each of its pages.
//!
//! ```text
//!   page / 16 ─ of ─► leaf; 0: none, and the words of leaf 0 stay zero
//! ```

use alloc::boxed::Box;
use alloc::vec;

/// Pages of a leaf.
const LEAF: usize = 16;

#[derive(Debug)]
pub(crate) struct Leaves {
    of: Box<[u32]>,
    words: Box<[u32]>,
    begun: u32,
}

impl Leaves {
    /// For this many pages.
    pub(crate) fn new(pages: usize) -> Leaves {
        let leaves = pages.div_ceil(LEAF);
        Leaves { of: vec![0; leaves].into(), words: vec![0; (leaves + 1) * LEAF].into(), begun: 0 }
    }

    pub(crate) fn get(&self, page: usize) -> u32 {
        self.words[self.of[page / LEAF] as usize * LEAF + page % LEAF]
    }

    pub(crate) fn set(&mut self, page: usize, word: u32) {
        let leaf = &mut self.of[page / LEAF];
        if *leaf == 0 {
            if word == 0 {
                return;
            }
            self.begun += 1;
            *leaf = self.begun;
        }
        self.words[*leaf as usize * LEAF + page % LEAF] = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_in_one_table_and_leaves_lie_next_to_each_other() {
        let (mut leaves, mut plain) = (Leaves::new(1000), [0; 1000]);
        for i in 0..5000u32 {
            let page = (i * 7919 % 1009 % 1000) as usize;
            assert_eq!(leaves.get(page), plain[page]);
            (plain[page], _) = (i % 3, leaves.set(page, i % 3));
        }
        assert!((0..1000).all(|page| leaves.get(page) == plain[page]));
        let mut few = Leaves::new(1 << 20);
        (0..10).for_each(|i| few.set(i << 16, 0));
        assert_eq!(few.begun, 0, "zeros need no leaf");
        (0..10).for_each(|i| few.set(i << 16, 7));
        assert!(few.begun == 10 && few.words[11 * LEAF..].iter().all(|word| *word == 0));
    }
}
