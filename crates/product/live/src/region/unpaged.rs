//! A process that does not page: a forked child that did not get what paging needs (descriptors, threads, a swap
//! file, rights). All pages that its parent had paged out are read into plain memory. From then on only the kernel
//! handles managed memory: it is mapped, unmapped and inherited like any other memory, without a budget. The
//! addresses are the same, and so is every byte.
//!
//! One message names the promise that is broken, and the reason.

use std::ops::Range;

use super::ManagedMemory;
use crate::memory::extents::Manner;
use crate::memory::space;
use crate::page::pages::Where;
use crate::sys::{self, fatal, Sys};
use crate::{LiveError, PAGE};

const PLAIN: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl ManagedMemory {
    /// In a forked child with one thread and all locks free: turns all managed memory into plain memory.
    pub fn run_unpaged(&self, reason: Option<&LiveError>) {
        if let Some(reason) = reason {
            fatal::say(format_args!("a forked process runs without paging, in no budget: {reason}"));
        }
        self.memory().becomes_plain();
        self.settle(|range, manner| self.bring_all(range, manner));
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

    fn bring_all(&self, range: &Range<usize>, manner: Manner) -> Sys<()> {
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
            pages.for_each(|page| self.bring(page, own + self.memory().address(page) - range.start));
            let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
            // SAFETY: new memory, and a range that it takes the place of.
            unsafe { sys::call(libc::SYS_mremap, [own, range.len(), range.len(), flags, range.start, 0])? };
        } else {
            pages.for_each(|page| self.bring(page, self.memory().address(page)));
        }
        if protection & PLAIN != PLAIN || self.space().is_of_file() {
            sys::set_rights(range, protection)?;
        }
        Ok(())
    }

    /// Puts the bytes of a page at `address` if they are not there. If they are not what they were, the process stops,
    /// as it would at a touch of the page.
    fn bring(&self, page: usize, address: usize) {
        let copy = |from: usize| {
            // SAFETY: a page in its place or in the aside mapping, and a page that no other thread has.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, address as *mut u8, PAGE) };
        };
        match (self.pages().get(page), self.pages().slot(page)) {
            (Where::Aside, _) => copy(self.memory().aside(page)),
            (state, _) if (state.is_mapped() || state == Where::InPlace) && address != self.memory().address(page) => {
                copy(self.memory().address(page));
            }
            (Where::Out | Where::InSlot, Some(slot)) => self.work.bring(page, slot, address),
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
