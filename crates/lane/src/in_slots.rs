//! Reads of pages in their slots: their number, their extra time compared with RAM, and when a page has been read too
//! often.

use coldframe_core::{PageId, Ps};

use crate::read_counts::ReadCounts;

/// Counts reads in slots.
pub struct InSlots {
    mapped: Vec<bool>,
    /// The extra time of a reference, over one to RAM.
    each: Ps,
    counter: Option<ReadCounts>,
    often: bool,
    /// References so far.
    pub reads: u64,
    /// Their extra time.
    pub longer: Ps,
}

impl InSlots {
    /// For that many pages; `each` read takes longer by this.
    pub fn new(pages: usize, each: Ps, reads_max: Option<u32>) -> InSlots {
        let counter = reads_max.map(|max| ReadCounts::new(pages, max));
        InSlots { mapped: vec![false; pages], each, counter, often: false, reads: 0, longer: Ps::ZERO }
    }

    /// The page is in its slot from now on.
    pub fn enters(&mut self, page: PageId) {
        self.mapped[page.index()] = true;
        if let Some(counter) = &mut self.counter {
            counter.mapped(page);
        }
    }

    /// The page has left its slot.
    pub fn leaves(&mut self, page: PageId) {
        self.mapped[page.index()] = false;
    }

    /// Whether the page is read in its slot.
    #[inline]
    pub fn has(&self, page: PageId) -> bool {
        self.mapped[page.index()]
    }

    /// Counts this many references to the page, and returns their extra time. If the page is read too often, only the
    /// references up to that point count: RAM answers the rest.
    pub fn touch(&mut self, page: PageId, count: u32) -> Ps {
        if !self.has(page) {
            return Ps::ZERO;
        }
        let reads = self.counter.as_ref().map_or(count, |counter| count.min(counter.left(page)));
        if let Some(counter) = &mut self.counter {
            self.often |= counter.read(page, reads);
        }
        let longer = self.each * u64::from(reads);
        self.reads += u64::from(reads);
        self.longer += longer;
        longer
    }

    /// The page that was touched last has been read in its slot more often than it may.
    pub fn is_read_often(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.often) && self.has(page)
    }
}
