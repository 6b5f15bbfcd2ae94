//! How often pages have been read in their slots since they were mapped there, for a machine whose memory counts that (as the hotness
//! monitoring units of CXL 3.2 do, or a simulator). Ask after each read; `true` is the moment to say `Event::ReadOften`.
//!
//! A copy costs a page read and a page written, once; a line read in the slot costs more than one in DRAM, each time. After as many lines as
//! one is times the other, the copy would have been cheaper: as with renting and buying skis, who copies at that point never pays more than
//! twice what the best would have been. Not for memories that read as cheaply as DRAM, where no number of reads repays a copy.

use coldframe_core::PageId;

/// Counts of all pages.
#[derive(Clone, Debug)]
pub struct ReadCounts {
    max: u32,
    reads: Box<[u32]>,
}

impl ReadCounts {
    /// For so many pages, of which each may be read `max` times.
    pub fn new(pages: usize, max: u32) -> ReadCounts {
        ReadCounts { max, reads: vec![0; pages].into_boxed_slice() }
    }

    /// The page was mapped in its slot.
    pub fn mapped(&mut self, page: PageId) {
        self.reads[page.index()] = 0;
    }

    /// The page was read `times` more, in its slot; true: more often than it may.
    pub fn read(&mut self, page: PageId, times: u32) -> bool {
        let reads = &mut self.reads[page.index()];
        *reads = reads.saturating_add(times);
        *reads > self.max
    }

    /// Reads that the page has left in its slot, the last of which is one too many.
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
