//! The pages that are read together with a page: by slot, or by page number within the owner's memory.

use coldframe_core::{PageId, SlotId};
use coldframe_formats::swap::SwapEvent;
use rustc_hash::FxHashMap;

use super::store::Store;
use super::ReadAhead;
use coldframe_lane::window::PageWindow;

/// log2 of the pages of a region, 2 MiB: far more than a window, and hardly ever two busy mappings.
const REGION_SHIFT: u32 = 9;

pub(super) struct Neighbours {
    read_ahead: ReadAhead,
    /// Filled only for windows of pages.
    by_number: FxHashMap<(u32, u64), PageId>,
    /// Owner and page number of each page.
    number: Vec<Option<(u32, u64)>>,
    /// One for each region. The kernel has one for each mapping, but a trace has no mappings.
    windows: FxHashMap<(u32, u64), PageWindow>,
}

impl Neighbours {
    pub(super) fn new(read_ahead: ReadAhead, pages: usize) -> Neighbours {
        let by_pages = matches!(read_ahead, ReadAhead::Pages(_));
        Neighbours {
            read_ahead,
            by_number: FxHashMap::default(),
            number: vec![None; if by_pages { pages } else { 0 }],
            windows: FxHashMap::default(),
        }
    }

    /// From now on, the page is the one of this event.
    #[inline]
    pub(super) fn learn(&mut self, page: PageId, event: &SwapEvent) {
        if self.number.is_empty() {
            return;
        }
        self.forget(page);
        let number = (event.pid, event.page_number);
        self.number[page.index()] = Some(number);
        self.by_number.insert(number, page);
    }

    #[inline]
    pub(super) fn forget(&mut self, page: PageId) {
        let Some(number) = self.number.get_mut(page.index()).and_then(Option::take) else { return };
        if self.by_number.get(&number) == Some(&page) {
            self.by_number.remove(&number);
        }
    }

    /// A page that was read ahead has been used.
    pub(super) fn hit(&mut self, page: PageId) {
        if let Some(Some((pid, number))) = self.number.get(page.index()) {
            self.windows.entry((*pid, number >> REGION_SHIFT)).or_default().hit(*number);
        }
    }

    /// The pages to read with this one; it may be among them.
    pub(super) fn of(&mut self, page: PageId, store: &Store, out: &mut Vec<PageId>) {
        match self.read_ahead {
            ReadAhead::Slots(window) => {
                let Some(slot) = store.slot_of(page) else { return };
                let slots = window.around(slot, store.swap()).map(SlotId);
                out.extend(slots.filter_map(|slot| store.page_in(slot)));
            }
            ReadAhead::Pages(most) => {
                let Some((pid, number)) = self.number[page.index()] else { return };
                let range = self.windows.entry((pid, number >> REGION_SHIFT)).or_default().fault(number, most);
                out.extend(range.filter_map(|number| self.by_number.get(&(pid, number)).copied()));
            }
        }
    }
}
