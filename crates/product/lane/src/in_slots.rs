//! Reads of pages in their slots: their number, their extra time compared with RAM, and when a page has been read too
//! often. It is for a machine whose memory counts reads (as the hotness monitoring units of CXL 3.2 do, or a
//! simulator).
//!
//! A copy costs one page read and one page write. A line read in the slot costs more than one in DRAM, each time. The
//! number of lines whose extra cost equals the copy's is the break-even point. To copy there never costs more than
//! twice the best choice, as with renting and buying skis. Do not use it for memories that read as fast as DRAM: there,
//! no number of reads repays a copy.

use coldframe_core::{PageId, Ps};

/// Counts reads in slots.
pub struct InSlots {
    /// By page: its reads since it was mapped in its slot; `None`: it is not there.
    mapped: Vec<Option<u32>>,
    /// The extra time of a reference, over one to RAM.
    each: Ps,
    reads_max: Option<u32>,
    often: bool,
    /// References so far.
    pub reads: u64,
    /// Their extra time.
    pub longer: Ps,
}

impl InSlots {
    /// For that many pages; `each` read takes longer by this, and each page may be read `reads_max` times.
    pub fn new(pages: usize, each: Ps, reads_max: Option<u32>) -> InSlots {
        InSlots { mapped: vec![None; pages], each, reads_max, often: false, reads: 0, longer: Ps::ZERO }
    }

    /// The page is in its slot from now on.
    pub fn enters(&mut self, page: PageId) {
        self.mapped[page.index()] = Some(0);
    }

    /// The page has left its slot.
    pub fn leaves(&mut self, page: PageId) {
        self.mapped[page.index()] = None;
    }

    /// Whether the page is read in its slot.
    #[inline]
    pub fn has(&self, page: PageId) -> bool {
        self.mapped[page.index()].is_some()
    }

    /// Counts this many references to the page, and returns their extra time. If the page is read too often, only the
    /// references up to that point count: RAM answers the rest.
    pub fn touch(&mut self, page: PageId, count: u32) -> Ps {
        let Some(reads) = &mut self.mapped[page.index()] else { return Ps::ZERO };
        let left = |max: u32| max.saturating_sub(*reads).saturating_add(1);
        let counted = self.reads_max.map_or(count, |max| count.min(left(max)));
        *reads = reads.saturating_add(counted);
        self.often |= self.reads_max.is_some_and(|max| *reads > max);
        let longer = self.each * u64::from(counted);
        self.reads += u64::from(counted);
        self.longer += longer;
        longer
    }

    /// The page that was touched last has been read in its slot more often than it may: `Event::ReadOften` is due.
    pub fn is_read_often(&mut self, page: PageId) -> bool {
        std::mem::take(&mut self.often) && self.has(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_more_than_it_may_is_often() {
        let (page, other) = (PageId(0), PageId(1));
        let mut slots = InSlots::new(2, Ps(10), Some(3));
        assert_eq!(slots.touch(page, 1), Ps::ZERO, "it is not in its slot");
        slots.enters(page);
        slots.enters(other);
        assert_eq!((slots.touch(page, 3), slots.is_read_often(page)), (Ps(30), false));
        assert_eq!((slots.touch(other, 1), slots.touch(page, 5)), (Ps(10), Ps(10)), "RAM answers the rest");
        assert!(slots.is_read_often(page) && !slots.is_read_often(page));
        slots.enters(page);
        assert_eq!((slots.touch(page, 3), slots.is_read_often(page), slots.reads), (Ps(30), false, 8));
    }
}
