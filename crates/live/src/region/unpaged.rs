//! A process that does not page: a forked child that did not get what paging needs (descriptors, threads, a swap
//! file, rights). All pages that its parent had paged out are read into plain memory. From then on only the kernel
//! handles managed memory: it is mapped, unmapped and inherited like any other memory, without a budget. The
//! addresses are the same, and so is every byte.
//!
//! One message says which of the promises cannot be kept, and why.

use std::ops::Range;

use coldframe_core::PageId;

use crate::fault::Faults;
use crate::memory::space;
use crate::page::pages::Where;
use crate::sys::{self, fatal, Sys};
use crate::tier::IN_POOL;
use crate::{LiveError, PAGE};

const PLAIN: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Faults {
    /// In a forked child with one thread and all locks free: turns all managed memory into plain memory.
    pub fn run_unpaged(&self, reason: &LiveError) {
        fatal::say(format_args!("a forked process runs without paging, in no budget: {reason}"));
        self.memory().becomes_plain();
        let managed = self.space().managed_within(self.space().span());
        for (range, manner) in managed {
            let done = match (manner.dont_fork, manner.wipe_on_fork) {
                (true, _) => {
                    self.space().extents().remove(range.clone());
                    // SAFETY: nothing is mapped there, or it is not to be inherited.
                    unsafe { space::map_free(&range) }
                }
                // SAFETY: the program wants a child to have zeros here.
                (false, true) => unsafe { sys::drop_range(range) },
                (false, false) => self.bring_all(&range, manner.protection),
            };
            if let Err(error) = done {
                fatal::stop(format_args!("a forked process cannot have its parent's memory: {}", error.io()));
            }
        }
        // SAFETY: nothing on the shelf is needed any more.
        let _ = unsafe { space::map_free(&self.space().shelf_range()) };
    }

    fn bring_all(&self, range: &Range<usize>, protection: i32) -> Sys<()> {
        // SAFETY: says only whether a child inherits the memory.
        unsafe { sys::advise(range.clone(), libc::MADV_DOFORK)? };
        if protection & PLAIN != PLAIN {
            protect(range, protection | PLAIN)?;
        }
        self.space().touched(self.space().pages_of(range)).flatten().for_each(|page| self.bring(page));
        if protection & PLAIN != PLAIN {
            protect(range, protection)?;
        }
        Ok(())
    }

    /// Puts an absent page in place. If its bytes are not what they were, the process stops, as it would at a touch
    /// of the page.
    fn bring(&self, page: usize) {
        let address = self.memory().address(page);
        match (self.pages().get(page), self.pages().slot(page)) {
            (Where::Shelved, _) => {
                // SAFETY: a page of the shelf, and its place, where nothing is.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.memory().shelf(page) as *const u8, address as *mut u8, PAGE)
                };
            }
            (Where::Out, Some(IN_POOL)) => {
                let place = self.gate.lock().engine().tier_place(PageId::from(page));
                if !place.is_some_and(|place| self.work.bring_from_pool(page, place, address)) {
                    self.work.lost(page);
                }
            }
            (Where::Out, Some(slot)) => self.work.bring(page, slot, address),
            _ => {}
        }
    }

    /// Drops the content of plain memory.
    pub fn discard_plain(&self, pages: &Range<usize>) {
        if !pages.is_empty() {
            // SAFETY: the program wants zeros here.
            let _ = unsafe { sys::drop_range(self.space().addresses_of(pages)) };
        }
    }
}

pub fn protect(range: &Range<usize>, protection: i32) -> Sys<()> {
    // SAFETY: managed memory, and what its rights are to be.
    unsafe { sys::call(libc::SYS_mprotect, [range.start, range.len(), protection as usize, 0, 0, 0]) }.map(drop)
}
