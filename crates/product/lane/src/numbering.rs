//! Dense page numbers: addresses are sparse, tables are dense.
//!
//! Pages are numbered in the order of their first touch. A leaf has the numbers of 1024 neighbouring pages. A small
//! direct-mapped memo finds the leaf of almost every reference without hashing.

use rustc_hash::FxHashMap;

const LEAF_BITS: u32 = 10;
const LEAF: usize = 1 << LEAF_BITS;
const MEMO: usize = 64;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Memo {
    space: u32,
    leaf: u64,
    base: u32,
}

/// Numbers pages of one size. Address spaces (`space`) do not share pages.
#[derive(Clone)]
pub struct Numbering {
    shift: u32,
    memo: [Memo; MEMO],
    leaves: FxHashMap<(u32, u64), u32>,
    numbers: Vec<u32>,
    /// Space and true page by dense number.
    places: Vec<(u32, u64)>,
}

impl Numbering {
    /// For pages of `1 << shift` bytes.
    pub fn new(shift: u32) -> Numbering {
        Numbering {
            shift,
            memo: [Memo { space: 0, leaf: u64::MAX, base: 0 }; MEMO],
            leaves: FxHashMap::default(),
            numbers: Vec::new(),
            places: Vec::new(),
        }
    }

    /// log2 of the page size.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Pages numbered so far.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The true page numbers (address >> shift) by dense number.
    pub fn pages(&self) -> Vec<u64> {
        self.places.iter().map(|(_, page)| *page).collect()
    }

    /// The address space and the true page number of each page, by dense number.
    pub fn places(&self) -> &[(u32, u64)] {
        &self.places
    }

    /// The space and true page number (address >> shift) of a dense number.
    pub fn place(&self, number: u32) -> (u32, u64) {
        self.places[number as usize]
    }

    /// The number of page `page` (address >> shift), if it has one.
    pub fn find(&self, space: u32, page: u64) -> Option<u32> {
        let base = *self.leaves.get(&(space, page >> LEAF_BITS))?;
        Some(self.numbers[base as usize + (page as usize & (LEAF - 1))]).filter(|number| *number != NONE)
    }

    /// The number of page `page` (address >> shift).
    #[inline]
    pub fn number(&mut self, space: u32, page: u64) -> u32 {
        let leaf = page >> LEAF_BITS;
        let memo = &self.memo[leaf as usize % MEMO];
        let base = if memo.leaf == leaf && memo.space == space { memo.base } else { self.find_leaf(space, leaf) };
        let slot = &mut self.numbers[base as usize + (page as usize & (LEAF - 1))];
        if *slot == NONE {
            *slot = self.places.len() as u32;
            self.places.push((space, page));
        }
        *slot
    }

    #[cold]
    fn find_leaf(&mut self, space: u32, leaf: u64) -> u32 {
        let numbers = &mut self.numbers;
        let base = *self.leaves.entry((space, leaf)).or_insert_with(|| {
            let base = numbers.len() as u32;
            numbers.resize(numbers.len() + LEAF, NONE);
            base
        });
        self.memo[leaf as usize % MEMO] = Memo { space, leaf, base };
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_in_the_order_of_their_first_touch() {
        let mut numbering = Numbering::new(12);
        let pages = [7, 1 << 40, 7, (1 << 40) + 64 * 1024, 1 << 40, 8];
        assert_eq!(pages.map(|p| numbering.number(0, p)), [0, 1, 0, 2, 1, 3]);
        assert_eq!(numbering.pages(), [7, 1 << 40, (1 << 40) + 64 * 1024, 8]);
        assert_eq!((numbering.find(0, 1 << 40), numbering.find(0, 9), numbering.find(1, 7)), (Some(1), None, None));
        assert_eq!(numbering.place(2), (0, (1 << 40) + 64 * 1024));
        assert_eq!((numbering.number(1, 7), numbering.number(0, 7), numbering.count()), (4, 0, 5));
    }
}
