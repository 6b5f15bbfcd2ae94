//! The page table of up to 16 lanes: one 64-bit word a page.
//!
//! ```text
//!   63        48 47        32 31        16 15         0
//!  +------------+------------+------------+------------+
//!  |  writable  |   dirty    | referenced |   mapped   |     bit i of each part: lane i
//!  +------------+------------+------------+------------+
//! ```

use coldframe_core::{After, PageId};

use crate::PageRef;

/// Lanes that share a table.
pub const LANES: usize = 16;

const MAPPED: u32 = 0;
const REFERENCED: u32 = 16;
const DIRTY: u32 = 32;
const WRITABLE: u32 = 48;

/// The table.
pub struct PageTable {
    words: Vec<u64>,
    /// Reads of each page; empty if they are not counted.
    reads: Vec<u64>,
    lanes: u64,
}

/// What a kind of reference (`PageRef::kind`) needs of an entry and leaves in it, for all lanes.
#[derive(Clone, Copy)]
pub struct Masks {
    need: [u64; 4],
    leave: [u64; 4],
}

impl PageTable {
    /// A table for this many pages and lanes; nothing is mapped.
    pub fn new(pages: usize, lanes: usize) -> PageTable {
        assert!((1..=LANES).contains(&lanes));
        PageTable { words: vec![0; pages], reads: Vec::new(), lanes: (1 << lanes) - 1 }
    }

    /// Counts the reads of each page from now on.
    pub fn count_reads(&mut self) {
        self.reads.resize(self.words.len(), 0);
    }

    /// Whether reads are counted.
    pub fn counts_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Counts a reference that has been answered, from wherever the page is in each lane.
    #[inline(always)]
    pub fn count(&mut self, reference: PageRef) {
        self.reads[reference.page()] += u64::from(!reference.writing());
    }

    /// Counts this many more reads of a page.
    pub fn count_more(&mut self, page: PageId, times: u32) {
        self.reads[page.index()] += u64::from(times);
    }

    /// Notes a reference, whether or not it would have faulted.
    pub fn touch(&mut self, lane: u32, page: PageId, writing: bool) {
        let bits = Self::bit(lane, REFERENCED) | if writing { Self::bit(lane, DIRTY) } else { 0 };
        self.words[page.index()] |= bits;
    }

    /// Reads of a page so far; 0 if they are not counted.
    pub fn reads(&self, page: PageId) -> u64 {
        self.reads.get(page.index()).copied().unwrap_or(0)
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        self.words.len()
    }

    /// The masks of this table's lanes.
    pub fn masks(&self) -> Masks {
        let all = self.lanes;
        let (read, write) = (all << MAPPED, all << MAPPED | all << WRITABLE);
        let referenced = all << REFERENCED;
        let mut masks = Masks { need: [0; 4], leave: [0; 4] };
        for kind in 0..4 {
            let (writing, quiet) = (kind & PageRef::WRITE_KIND != 0, kind & PageRef::QUIET_KIND != 0);
            masks.need[kind] = if writing { write } else { read };
            masks.leave[kind] = if quiet { 0 } else { referenced } | if writing { all << DIRTY } else { 0 };
        }
        masks
    }

    /// Whether all lanes hit; if so, the bits are set. This is the whole of a hit.
    #[inline(always)]
    pub fn hit(&mut self, masks: &Masks, page: usize, kind: usize) -> bool {
        let word = &mut self.words[page];
        let hits = *word & masks.need[kind] == masks.need[kind];
        if hits {
            *word |= masks.leave[kind];
        }
        hits
    }

    /// Sets the bits in the lanes that hit. Returns the other lanes, one bit each.
    pub fn miss(&mut self, masks: &Masks, page: usize, kind: usize) -> u64 {
        let word = &mut self.words[page];
        let mut hits = *word & self.lanes;
        if kind & PageRef::WRITE_KIND != 0 {
            hits &= *word >> WRITABLE;
        }
        let spread = hits | hits << REFERENCED | hits << DIRTY;
        *word |= masks.leave[kind] & spread;
        self.lanes & !hits
    }

    #[inline]
    fn bit(lane: u32, part: u32) -> u64 {
        1 << (lane + part)
    }

    /// Maps a page in a lane.
    pub fn map(&mut self, lane: u32, page: PageId, writable: bool, referenced: bool) {
        self.unmap(lane, page);
        let word = &mut self.words[page.index()];
        *word |= Self::bit(lane, MAPPED);
        *word |= u64::from(writable) << (lane + WRITABLE) | u64::from(referenced) << (lane + REFERENCED);
    }

    /// Removes a page from a lane, with all its bits.
    pub fn unmap(&mut self, lane: u32, page: PageId) {
        let all = [MAPPED, REFERENCED, DIRTY, WRITABLE].iter().fold(0, |m, part| m | Self::bit(lane, *part));
        self.words[page.index()] &= !all;
    }

    /// Write-protects a page in a lane.
    pub fn protect(&mut self, lane: u32, page: PageId) {
        self.words[page.index()] &= !Self::bit(lane, WRITABLE);
    }

    /// Notes that the access that faulted has been repeated, and was a write.
    pub fn set_dirty(&mut self, lane: u32, page: PageId) {
        self.words[page.index()] |= Self::bit(lane, DIRTY);
    }

    /// The reference bit.
    pub fn referenced(&mut self, lane: u32, page: PageId, after: After) -> bool {
        let (word, bit) = (&mut self.words[page.index()], Self::bit(lane, REFERENCED));
        let was = *word & bit != 0;
        if after == After::Clear {
            *word &= !bit;
        }
        was
    }

    /// The dirty bit.
    pub fn dirty(&self, lane: u32, page: PageId) -> bool {
        self.words[page.index()] & Self::bit(lane, DIRTY) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_leaves_its_bits_in_the_lanes_that_hit_and_names_the_others() {
        let mut table = PageTable::new(1, 3);
        let (masks, page) = (table.masks(), PageId(0));
        table.map(0, page, true, false);
        table.map(2, page, false, false);
        let write = PageRef::WRITE_KIND;
        assert!(!table.hit(&masks, 0, write));
        assert_eq!(table.miss(&masks, 0, write), 0b110, "lane 1 is not mapped, lane 2 may not write");
        assert!(table.dirty(0, page) && !table.dirty(2, page));
        assert_eq!(table.miss(&masks, 0, 0), 0b010);
        assert!(table.referenced(2, page, After::Clear) && !table.referenced(2, page, After::Keep));
    }
}
