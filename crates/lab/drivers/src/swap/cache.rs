//! The swap cache: pages that were read ahead and are not used yet.
//!
//! A page in the cache is in RAM and clean, and its slot stays valid. A page leaves when it is used (a hit; the caller
//! maps it), when the cache is full (the oldest page is dropped: its read was wasted), or when its copy is released or
//! rewritten. Every page can be dropped without a write.

use coldframe_core::lists::{Links, List};
use coldframe_core::PageId;

/// Outcomes of pages that were read ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    pub read_ahead: u64,
    /// Pages that were used: reads that no task had to wait for.
    pub hits: u64,
    /// Pages that were dropped or released unused: wasted reads.
    pub wasted: u64,
    /// The largest number of pages at a time, which is the memory of the cache.
    pub held_max: u64,
}

/// A bounded first-in first-out set of pages.
#[derive(Debug)]
pub struct SwapCache {
    links: Links,
    list: List,
    held: Box<[bool]>,
    room: usize,
    counts: CacheCounts,
}

impl SwapCache {
    /// For pages 0 to `pages` - 1, at most `room` at a time.
    pub fn new(pages: usize, room: usize) -> SwapCache {
        let held = vec![false; pages].into_boxed_slice();
        SwapCache { links: Links::new(pages), list: List::new(), held, room, counts: CacheCounts::default() }
    }

    /// Adds a page that was read ahead. Returns the page that had to leave for it, if there was one.
    pub fn insert(&mut self, page: PageId) -> Option<PageId> {
        debug_assert!(!self.held[page.index()], "it is here already");
        self.counts.read_ahead += 1;
        self.list.push_tail(&mut self.links, page.index());
        self.held[page.index()] = true;
        let dropped = if self.list.len() > self.room { self.list.head().map(PageId::from) } else { None };
        dropped.into_iter().for_each(|page| self.drop_unused(page));
        self.counts.held_max = self.counts.held_max.max(self.list.len() as u64);
        dropped
    }

    #[inline]
    pub fn holds(&self, page: PageId) -> bool {
        self.held[page.index()]
    }

    /// Takes the page. True: it was in the cache, and is the caller's now.
    pub fn take(&mut self, page: PageId) -> bool {
        let hit = self.remove(page);
        self.counts.hits += u64::from(hit);
        hit
    }

    /// Drops the page, which is not needed any more.
    pub fn drop_unused(&mut self, page: PageId) {
        let was = self.remove(page);
        self.counts.wasted += u64::from(was);
    }

    fn remove(&mut self, page: PageId) -> bool {
        let was = std::mem::replace(&mut self.held[page.index()], false);
        if was {
            self.list.unlink(&mut self.links, page.index());
        }
        was
    }

    pub fn counts(&self) -> &CacheCounts {
        &self.counts
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_read_ahead_is_a_hit_or_wasted_or_still_held() {
        let mut cache = SwapCache::new(8, 2);
        assert_eq!((cache.insert(PageId(1)), cache.insert(PageId(2))), (None, None));
        assert_eq!(cache.insert(PageId(3)), Some(PageId(1)), "the oldest leaves");
        assert!(cache.take(PageId(2)) && !cache.take(PageId(2)) && !cache.take(PageId(1)));
        cache.insert(PageId(1));
        cache.drop_unused(PageId(3));
        let expected = CacheCounts { read_ahead: 4, hits: 1, wasted: 2, held_max: 2 };
        assert_eq!((*cache.counts(), cache.len()), (expected, 1));
    }
}
