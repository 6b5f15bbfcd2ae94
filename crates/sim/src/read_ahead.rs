//! Read-ahead of sequential streams in a lane, as the live pager does it: pages behind a true fault that goes on with a stream are loaded
//! with it, those that are absent and have content (they have been written out before; what never was is zeros and needs no device).
//!
//! Streams go by the true page numbers of an address space, a lane by dense ones: [`Numbering`] translates.

use coldframe_core::prefetch::Streams;
use coldframe_core::PageId;

use crate::numbering::Numbering;

/// The read-ahead of one lane.
pub struct ReadAhead {
    streams: Streams,
    /// Pages that have content on the device.
    written: Vec<bool>,
}

impl ReadAhead {
    /// Windows of at most `window_max` pages, over so many pages.
    pub fn new(window_max: u32, pages: usize) -> ReadAhead {
        ReadAhead { streams: Streams::new(window_max), written: vec![false; pages] }
    }

    /// The page is on the device from now on.
    pub fn written(&mut self, page: PageId) {
        self.written[page.index()] = true;
    }

    /// A true fault: the pages to wish for, in their order. The caller's engine passes over those that are not absent.
    pub fn fault(&mut self, page: PageId, numbers: &Numbering) -> Vec<PageId> {
        let (space, number) = numbers.place(page.0);
        // A stream needs only to tell neighbours, which the low bits do: 2^32 pages of 4 KiB are 16 TiB.
        let low = number as u32;
        let ahead = self.streams.fault(PageId(low));
        let behind = ahead.map(|next| numbers.find(space, number + u64::from(next - low)));
        behind.flatten().map(PageId).filter(|page| self.written[page.index()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_by_true_pages_and_leaves_out_what_was_never_written() {
        let mut numbers = Numbering::new(12);
        // The order of first touches is not that of addresses.
        let dense = [13u64, 11, 12, 10, 14].map(|page| numbers.number(0, page));
        let page = |true_number: u64| PageId(numbers.find(0, true_number).unwrap());
        let mut ahead = ReadAhead::new(4, dense.len());
        [12, 13].iter().for_each(|n| ahead.written(page(*n)));
        assert_eq!(ahead.fault(page(10), &numbers), []);
        assert_eq!(ahead.fault(page(11), &numbers), [page(12), page(13)]);
        assert_eq!(ahead.fault(page(14), &numbers), [], "16 to 19 were never touched");
    }
}
