//! Counts the reads of pages in their slots since the pages were mapped there, for a machine whose memory counts them
//! (as the hotness monitoring units of CXL 3.2 do, or a simulator). Ask after each read. True means: report
//! `Event::ReadOften` now.
//!
//! A copy costs one page read and one page write. A line read in the slot costs more than one in DRAM, each time. The
//! number of lines whose extra cost equals the copy's is the break-even point. To copy there never costs more than
//! twice the best choice, as with renting and buying skis. Do not use it for memories that read as fast as DRAM: there,
//! no number of reads repays a copy.

use coldframe_core::PageId;

/// The counts of all pages.
#[derive(Clone, Debug)]
pub struct ReadCounts {
    max: u32,
    reads: Box<[u32]>,
}

impl ReadCounts {
    /// Counts for this many pages. Each page may be read `max` times.
    pub fn new(pages: usize, max: u32) -> ReadCounts {
        ReadCounts { max, reads: vec![0; pages].into_boxed_slice() }
    }

    /// The page was mapped in its slot.
    pub fn mapped(&mut self, page: PageId) {
        self.reads[page.index()] = 0;
    }

    /// The page was read `times` more in its slot. Returns true if that is more often than it may.
    pub fn read(&mut self, page: PageId, times: u32) -> bool {
        let reads = &mut self.reads[page.index()];
        *reads = reads.saturating_add(times);
        *reads > self.max
    }

    /// The number of reads that the page has left in its slot. The last of them is one too many.
    pub fn left(&self, page: PageId) -> u32 {
        (self.max - self.reads[page.index()].min(self.max)).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_more_than_it_may_is_often() {
        let (page, other) = (PageId(0), PageId(1));
        let mut counts = ReadCounts::new(2, 3);
        assert_eq!((counts.left(page), counts.read(page, 3), counts.left(page)), (4, false, 1));
        assert!(!counts.read(other, 1) && counts.read(page, 1));
        counts.mapped(page);
        assert!(!counts.read(page, 3) && counts.left(other) == 3);
    }
}
