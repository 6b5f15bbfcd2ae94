//! Read-ahead of sequential streams in a lane, as the live pager does it: pages behind a true fault that goes on with a stream are loaded
//! with it, those that are absent and have content.
//!
//! Streams go by true page numbers of an address space, a lane behind a front end by dense ones: [`Numbering`] translates.

use coldframe_core::prefetch::Streams;
use coldframe_core::PageId;

use crate::numbering::Numbering;

/// The pages that are worth loading with a true fault on `page`, in their order; `numbers`: `None` if pages are numbered by address.
pub fn behind(streams: &mut Streams, page: PageId, numbers: Option<&Numbering>) -> Vec<PageId> {
    let Some(numbers) = numbers else { return streams.fault(page).map(PageId).collect() };
    let (space, number) = numbers.place(page.0);
    // A stream needs only to tell neighbours, which the low bits do: 2^32 pages of 4 KiB are 16 TiB.
    let low = number as u32;
    let ahead = streams.fault(PageId(low));
    ahead.filter_map(|next| numbers.find(space, number + u64::from(next - low))).map(PageId).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_by_true_pages_in_whatever_order_they_were_touched_first() {
        let mut numbers = Numbering::new(12);
        for touched in [13u64, 11, 12, 10, 14] {
            numbers.number(0, touched);
        }
        let page = |true_number: u64| PageId(numbers.find(0, true_number).unwrap());
        let mut streams = Streams::new(4);
        assert_eq!(behind(&mut streams, page(10), Some(&numbers)), []);
        assert_eq!(behind(&mut streams, page(11), Some(&numbers)), [page(12), page(13)]);
        assert_eq!(behind(&mut streams, page(14), Some(&numbers)), [], "15 to 18 were never touched");
    }

    #[test]
    fn pages_numbered_by_address_need_no_translation() {
        let mut streams = Streams::new(4);
        assert_eq!(behind(&mut streams, PageId(10), None), []);
        assert_eq!(behind(&mut streams, PageId(11), None), [PageId(12), PageId(13)]);
    }
}
