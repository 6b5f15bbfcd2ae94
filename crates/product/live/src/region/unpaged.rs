//! A process that does not page: a forked child that did not get what paging needs (descriptors, threads, a swap
//! file, rights). All pages that its parent had paged out are read into plain memory. From then on only the kernel
//! handles managed memory: it is mapped, unmapped and inherited like any other memory, without a budget. The
//! addresses are the same, and so is every byte.
//!
//! One message names the promise that is broken, and the reason.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::ManagedMemory;
use crate::memory::extents::Manner;
use crate::memory::space;
use crate::page::pages::Where;
use crate::sys::{self, fatal, Sys};
use crate::{LiveError, PAGE};

/// The bytes of all pages that are out, for a child of which it is known before the fork that it will not page: shared
/// memory that it inherits.
#[derive(Clone, Copy, Debug)]
pub struct PageStore {
    start: usize,
    pages: usize,
}

impl PageStore {
    /// Behind the pages: the number of each, the lowest first.
    fn numbers(&self) -> &'static [AtomicU32] {
        // SAFETY: in the mapping, which no code unmaps while it has this.
        unsafe { std::slice::from_raw_parts((self.start + self.pages * PAGE) as *const AtomicU32, self.pages) }
    }

    fn len(&self) -> usize {
        self.pages * PAGE + (self.pages * size_of::<AtomicU32>()).next_multiple_of(PAGE)
    }

    /// Copies a page out, and gives its place in the store back.
    fn take(&self, page: usize, into: usize) {
        let Ok(i) = self.numbers().binary_search_by_key(&page, |number| number.load(Relaxed) as usize) else {
            fatal::stop("internal error: a page that is not in the store of a fork")
        };
        let from = self.start + i * PAGE;
        // SAFETY: a page of the store, and one that no other thread has.
        unsafe {
            std::ptr::copy_nonoverlapping(from as *const u8, into as *mut u8, PAGE);
            let _ = sys::advise(from..from + PAGE, libc::MADV_REMOVE);
        }
    }

    /// Unmaps it, in parent or child.
    pub fn end(self) {
        // SAFETY: it is not used any more.
        unsafe { sys::unmap_memory(self.start, self.len()) };
    }
}

const PLAIN: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl ManagedMemory {
    /// During a fork: a store of all pages that are out.
    pub fn store_pages(&self) -> Sys<PageStore> {
        let ranges = self.space().frozen();
        let out = || {
            let pages =
                ranges.iter().flat_map(|(range, _)| self.space().touched(self.space().pages_of(range)).flatten());
            pages.filter_map(|page| Some((page, self.slot_of_absent(page)?)))
        };
        let store = PageStore { start: 0, pages: out().count() };
        let store = PageStore { start: sys::map_shared(store.len().max(PAGE))?, ..store };
        for (i, (page, slot)) in out().enumerate() {
            self.work.bring(page, slot, store.start + i * PAGE);
            store.numbers()[i].store(page as u32, Relaxed);
        }
        Ok(store)
    }

    fn slot_of_absent(&self, page: usize) -> Option<u64> {
        self.pages().slot(page).filter(|_| matches!(self.pages().get(page), Where::Out | Where::InSlot))
    }

    /// In a forked child with one thread and all locks free: turns all managed memory into plain memory. `store`: of
    /// the pages that are out; without it, they are read.
    pub fn run_unpaged(&self, reason: Option<&LiveError>, store: Option<PageStore>) {
        if let Some(reason) = reason {
            fatal::say(format_args!("a forked process runs without paging, in no budget: {reason}"));
        }
        self.memory().becomes_plain();
        self.space().leave_file();
        self.settle(|range, manner| self.bring_all(range, manner, store));
        store.into_iter().for_each(PageStore::end);
        // SAFETY: nothing in the aside mapping is needed any more.
        let _ = unsafe { self.space().map_free(&self.space().aside_range()) };
    }

    /// In a forked child that does not page: its memory is what the program has asked for. `rest` does what is to be
    /// done with the memory that it has in common with its parent.
    pub fn settle(&self, rest: impl Fn(&Range<usize>, Manner) -> Sys<()>) {
        for (range, manner) in self.space().managed_within(self.space().span()) {
            let done = match (manner.dont_fork, manner.wipe_on_fork) {
                (true, _) => {
                    self.space().extents().remove(range.clone());
                    // SAFETY: nothing is mapped there, or it is not to be inherited.
                    unsafe { self.space().map_free(&range) }
                }
                // SAFETY: the program wants a child to have zeros here.
                (false, true) => unsafe { space::map_plain(&range, manner.protection) },
                (false, false) => rest(&range, manner),
            };
            if let Err(error) = done {
                fatal::stop(format_args!("a forked process cannot have its parent's memory: {}", sys::words(error)));
            }
        }
    }

    fn bring_all(&self, range: &Range<usize>, manner: Manner, store: Option<PageStore>) -> Sys<()> {
        let protection = manner.protection;
        // SAFETY: says only whether a child inherits the memory.
        unsafe { sys::advise(range.clone(), libc::MADV_DOFORK)? };
        if protection & PLAIN != PLAIN {
            sys::set_rights(range, protection | PLAIN)?;
        }
        let pages = self.space().touched(self.space().pages_of(range)).flatten();
        if self.space().is_of_file() {
            // The parent continues to write to the file: nothing of it stays mapped here.
            let own = sys::map_memory(range.len())?;
            pages.for_each(|page| self.bring(page, own + self.memory().address(page) - range.start, store));
            let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
            // SAFETY: new memory, and a range that it takes the place of.
            unsafe { sys::call(libc::SYS_mremap, [own, range.len(), range.len(), flags, range.start, 0])? };
        } else {
            pages.for_each(|page| self.bring(page, self.memory().address(page), store));
        }
        if protection & PLAIN != PLAIN || self.space().is_of_file() {
            sys::set_rights(range, protection)?;
        }
        Ok(())
    }

    /// Puts the bytes of a page at `address` if they are not there. If they are not what they were, the process stops,
    /// as it would at a touch of the page.
    fn bring(&self, page: usize, address: usize, store: Option<PageStore>) {
        let copy = |from: usize| {
            // SAFETY: a page in its place or in the aside mapping, and a page that no other thread has.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, address as *mut u8, PAGE) };
        };
        match (self.pages().get(page), self.slot_of_absent(page)) {
            (Where::Aside, _) => copy(self.memory().aside(page)),
            (_, Some(slot)) => match store {
                Some(store) => store.take(page, address),
                None => self.work.bring(page, slot, address),
            },
            (state, _) if (state.is_mapped() || state == Where::InPlace) && address != self.memory().address(page) => {
                copy(self.memory().address(page));
            }
            _ => {}
        }
    }

    pub fn discard_plain(&self, pages: &Range<usize>) {
        if !pages.is_empty() {
            // SAFETY: the program wants zeros here.
            let _ = unsafe { sys::drop_range(self.space().addresses_of(pages)) };
        }
    }
}
