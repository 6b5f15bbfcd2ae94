//! Keeps blocks that the program has freed, for the next ones of their size (`memory/block_cache.rs`): a program that
//! fills and frees large blocks again and again has neither system calls nor first touches for them.
//!
//! ```text
//!   free ─ cached, with its pages ─ wanted again: as it is
//!                                 ├ memory is short, or more than RAM would be open: its pages are dropped, or all
//!                                 └ a while later, or too much is cached: unmapped
//! ```

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::ManagedMemory;
use crate::memory::block_cache::BlockCache;
use crate::memory::extents::{Kind, Manner};
use crate::page::pages::Where;
use crate::sys::{self, Sys};

const RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl ManagedMemory {
    /// Takes a block that the program has freed: keeps it, or unmaps it. Signals are blocked, here and below.
    pub fn keep(&self, range: Range<usize>) -> Sys<()> {
        let _changing = self.space().changing();
        let usual = [(range.clone(), Kind::Managed(Manner::new(RIGHTS)))];
        let is_usual = self.space().extents().within(range.clone()).eq(usual);
        if self.memory().is_plain() || !BlockCache::takes(range.len()) || !is_usual {
            return self.close(&range, true);
        }
        while let Some(old) = self.next_cached(|cache| cache.overdue(sys::now(), range.len())) {
            self.close(&old, true)?;
        }
        // What is out would only be read back. A recording must see that the content is gone.
        let pages = self.space().pages_of(&range);
        let out = |page| self.pages().get(page) == Where::Out && self.memory().has_content(page);
        let full = self.work.recording().is_none() && !self.space().touched(pages.clone()).flatten().any(out);
        if !full {
            self.discard(pages);
        }
        self.space().extents().block_cache.add(range, sys::now(), full);
        self.memory().cache_full.fetch_or(full, Ordering::Relaxed);
        Ok(())
    }

    /// A cached block of at least `len` bytes, hardly longer; its content is anything.
    pub fn take_cached(&self, len: usize, align: usize) -> Option<Range<usize>> {
        self.next_cached(|cache| cache.take(len, align))
    }

    fn next_cached(&self, which: impl FnOnce(&mut BlockCache) -> Option<Range<usize>>) -> Option<Range<usize>> {
        which(&mut self.space().extents().block_cache)
    }

    /// Gives cached blocks back, so that the kernel can own `more` pages. The caller changes the space.
    pub(super) fn make_room(&self, more: usize) {
        while self.memory().kernel_owned.is_on() && !self.is_kernel_owned(more) {
            let Some(range) = self.next_cached(BlockCache::oldest) else { return };
            if self.close(&range, true).is_err() {
                return;
            }
        }
    }

    /// If memory is short, the pages of cached blocks leave before all others. Their mappings stay.
    pub fn empty_cache(&self) {
        let full = &self.memory().cache_full;
        if !full.load(Ordering::Relaxed) || self.gate.lock().engine().frames().free() > 0 {
            return;
        }
        full.store(false, Ordering::Relaxed);
        loop {
            let next = self.space().extents().block_cache.oldest_full();
            let Some((range, since)) = next else { return };
            self.discard_pages(self.space().pages_of(&range));
            self.space().extents().block_cache.add(range, since, false);
        }
    }
}
