//! Read-ahead in a machine of references, of two kinds. First, a lane reads sequential streams ahead, as the live pager
//! does: with a true fault that continues a stream, it loads the pages behind it that are absent and have content
//! ([`behind`]). Second, any driver can read the slots around a page of the swap area ([`window_pages`], LOBI's
//! block-aligned swap-in).
//!
//! Streams use the true page numbers of an address space, a lane behind a front end uses dense ones. [`Numbering`]
//! translates.

use coldframe_core::prefetch::Streams;
use coldframe_core::{Engine, PageId, SlotId};

use crate::numbering::Numbering;
use coldframe_core::prefetch::Window;

/// The pages behind a true fault on `page` that continues a stream, in their order; `None`: it continues none.
/// `numbers`: `None` if pages are numbered by address.
pub fn behind(streams: &mut Streams, page: PageId, numbers: Option<&Numbering>) -> Option<Vec<PageId>> {
    let Some(numbers) = numbers else {
        let ahead = streams.fault(page);
        return (!ahead.is_empty()).then(|| ahead.map(PageId).collect());
    };
    let (space, number) = numbers.place(page.0);
    // A stream needs only to tell neighbours, which the low bits do: 2^32 pages of 4 KiB are 16 TiB.
    let low = number as u32;
    let ahead = streams.fault(PageId(low));
    let find = |next| numbers.find(space, number + u64::from(next - low)).map(PageId);
    (!ahead.is_empty()).then(|| ahead.filter_map(find).collect())
}

/// The pages to read together with `page`: pages in the window of its slot that exist only there. None if `page` is in
/// no area on flash, or if it is in RAM.
pub fn window_pages(window: Window, page: PageId, engine: &Engine) -> Vec<PageId> {
    let in_ram = |page: PageId| engine.frame_of(page).is_some();
    match engine.swap().and_then(|swap| Some((swap, swap.slot_of(page)?))) {
        Some((swap, slot)) if !in_ram(page) => {
            let pages = window.around(slot, swap).filter_map(|slot| swap.page_in(SlotId(slot)));
            pages.filter(|other| *other != page && !in_ram(*other)).collect()
        }
        _ => Vec::new(),
    }
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
        assert_eq!(behind(&mut streams, page(10), Some(&numbers)), None);
        assert_eq!(behind(&mut streams, page(11), Some(&numbers)), Some(vec![page(12), page(13)]));
        assert_eq!(behind(&mut streams, page(14), Some(&numbers)), Some(vec![]), "15 to 18 were never touched");
    }

    #[test]
    fn pages_numbered_by_address_need_no_translation() {
        let mut streams = Streams::new(4);
        assert_eq!(behind(&mut streams, PageId(10), None), None);
        assert_eq!(behind(&mut streams, PageId(11), None), Some(vec![PageId(12), PageId(13)]));
    }
}
