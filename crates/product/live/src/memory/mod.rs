//! The managed memory of a process: its addresses, what the page table has there, and how much RAM is behind it.
//!
//! [`Memory`] is the one owner of the userfaultfd, and of all else by which a page comes into the page table, leaves
//! it, or changes its rights there. Who takes a page (`page::state`) may call the functions for that page;
//! [`crate::region`] opens and closes ranges. This room knows no task, no swap file and no engine.
//!
//! A page that is found absent although it should be there was dropped by a raw system call of the program
//! (MADV_DONTNEED), and is zeros then: `refill`.

pub mod budget;
pub mod extents;
pub mod kernel_owned;
pub mod space;

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::page::pages::{Pages, Where};
use crate::stats::Stats;
use crate::sys::{self, fatal, Errno, High, Own, OwnMemory, Sys, Uffd};
use crate::{LiveError, PAGE};
use budget::{Reserve, Share, Sharing};
use kernel_owned::KernelOwned;
use space::Space;

/// The first bytes of a page that are looked at alone.
const LINE: usize = 64;
/// If a page is found dropped this often, it is an internal error.
const LOOKS: u32 = 100;

/// A bit beside the number of pages. A lender gives pages back at any time: before a child is counted in, and after a
/// process is counted out.
const COUNTED: usize = 1 << 63;

pub struct Memory {
    pub space: Space,
    pub pages: Pages,
    uffd: Own<Uffd>,
    /// This process, as the call that drops pages names it.
    pidfd: Own<High>,
    file: Own<OwnMemory>,
    /// Grows with each fork.
    epoch: AtomicU32,
    /// Pages in RAM; and [`COUNTED`] while they are a part of the statistics.
    resident: AtomicUsize,
    /// Frames for pages that the engine takes as gone.
    pub reserve: Reserve,
    pub share: Share,
    sharing: Sharing,
    /// This process does not page: the memory is as any other.
    plain: AtomicBool,
    pub kernel_owned: KernelOwned,
    pub stats: &'static Stats,
}

fn own_pidfd() -> Result<High, LiveError> {
    sys::own_pidfd().map(sys::move_high).map_err(|e| LiveError::os("a pidfd", e))
}

impl Memory {
    /// `uffd` watches the aside mapping already.
    pub fn new(
        space: Space,
        uffd: Uffd,
        reserve: Reserve,
        share: Share,
        kernel_owned: KernelOwned,
        stats: &'static Stats,
    ) -> Result<Memory, LiveError> {
        Ok(Memory {
            pages: Pages::new(space.pages)?,
            space,
            uffd: Own::new(uffd),
            pidfd: Own::new(own_pidfd()?),
            file: Own::new(OwnMemory::open()),
            epoch: AtomicU32::new(0),
            resident: AtomicUsize::new(0),
            reserve,
            share,
            sharing: Sharing::default(),
            plain: AtomicBool::new(false),
            kernel_owned,
            stats,
        })
    }

    pub fn uffd(&self) -> &Uffd {
        self.uffd.get()
    }

    pub fn address(&self, page: usize) -> usize {
        self.space.start + page * PAGE
    }

    pub fn aside(&self, page: usize) -> usize {
        self.must(self.space.open_aside(page), "open the aside mapping", page);
        self.space.aside() + page * PAGE
    }

    pub fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed) & !COUNTED
    }

    /// From now on, the statistics that all processes share have the pages in RAM, or no more.
    pub fn count(&self, counted: bool) {
        if counted {
            let pages = self.resident.fetch_or(COUNTED, Ordering::Relaxed);
            Stats::add(&self.stats.resident, pages as u64);
        } else if let pages @ COUNTED.. = self.resident.fetch_and(!COUNTED, Ordering::Relaxed) {
            Stats::sub(&self.stats.resident, (pages & !COUNTED) as u64);
        }
    }

    /// In a forked child: the pages that are counted are the parent's.
    pub fn count_anew(&self) {
        self.resident.fetch_and(!COUNTED, Ordering::Relaxed);
    }

    pub fn is_plain(&self) -> bool {
        self.plain.load(Ordering::Relaxed)
    }

    /// Whether only the kernel handles the memory, permanently or until it is watched.
    pub fn is_the_kernels(&self) -> bool {
        self.is_plain() || self.kernel_owned.is_on()
    }

    pub fn becomes_plain(&self) {
        self.plain.store(true, Ordering::Relaxed);
    }

    /// Whether a page may be anything but zeros.
    pub fn has_content(&self, page: usize) -> bool {
        match self.pages.get(page) {
            Where::Nowhere => false,
            Where::Out => self.pages.slot(page).is_some(),
            _ => true,
        }
    }

    /// The first touch of a page. Returns false if it is not managed.
    pub fn begin(&self, page: usize) -> bool {
        self.space.touch(page, || {
            if self.pages.get(page) == Where::Nowhere {
                self.pages.set(page, Where::Out);
            }
        })
    }

    /// An operation that must not fail has failed: no promise can be kept any more.
    pub fn must(&self, result: Sys<()>, what: &str, page: usize) {
        if let Err(error) = result {
            fatal::stop(format_args!("cannot {what} at {:#x}: {}", self.address(page), sys::words(error)));
        }
    }

    pub fn protect(&self, page: usize) {
        let address = self.address(page);
        self.must(self.uffd().protect(address..address + PAGE, true), "protect a page", page);
    }

    pub fn unprotect(&self, page: usize) {
        let address = self.address(page);
        self.must(self.uffd().protect(address..address + PAGE, false), "allow writes to a page", page);
    }

    /// Whether a write to a page could go to another frame than the one that a pipe refers to.
    pub fn is_shared(&self, page: usize) -> bool {
        self.pages.epoch(page) != self.epoch.load(Ordering::Relaxed)
    }

    /// Whether that is so of any page: the kernel merges or swaps.
    pub fn may_share_all(&self) -> bool {
        self.sharing.may_be()
    }

    /// Copies a page in, which is absent. `clean`: writes to it fault. Returns false if it was there, and zeros would
    /// have been put over it (`content`): a raw system call of the program has put something there.
    pub fn put_in(&self, page: usize, from: usize, content: bool, clean: bool) -> bool {
        let address = self.address(page);
        let there = match self.uffd().copy(address, from, clean) {
            Ok(()) => false,
            Err(Errno::EXIST) if !content => true,
            // Over a page with content that would be a silent loss.
            Err(error) => {
                let error = sys::words(error);
                fatal::stop(format_args!("the page at {address:#x} cannot be put into place (UFFDIO_COPY): {error}"));
            }
        };
        self.note_epoch(page);
        self.count_in(1);
        !there
    }

    /// Puts zeros into a range of absent pages, at most a block, with one call.
    pub fn put_zeros(&self, range: Range<usize>) {
        let pages = self.space.pages_of(&range);
        self.must(self.uffd().fill(range, self.space.zeros), "put zeros into place (UFFDIO_COPY)", pages.start);
        self.count_in(pages.len());
        pages.for_each(|page| self.note_epoch(page));
    }

    /// Whether a page that came as zeros was not written to since. If so, it stays protected. `scratch` is a page. Only
    /// for its owner.
    pub fn is_zeros(&self, page: usize, scratch: usize) -> bool {
        // SAFETY: the caller's page.
        let zeros = |len| unsafe {
            let read = self.file.get().peek(self.address(page), scratch, len);
            read.is_ok() && std::slice::from_raw_parts(scratch as *const u64, len / 8).iter().all(|word| *word == 0)
        };
        // Most are not, which their first bytes show.
        if !zeros(LINE) {
            return false;
        }
        self.protect(page);
        let zeros = zeros(PAGE);
        if !zeros {
            self.unprotect(page);
        }
        zeros
    }

    /// The frame of the page may be another's, too: of a child, or the kernel's page of zeros.
    pub fn note_shared(&self, page: usize) {
        self.pages.set_epoch(page, !self.epoch.load(Ordering::Relaxed));
    }

    /// Maps a page where it is in slow memory; writes to it fault.
    pub fn map_slot(&self, page: usize) {
        self.must(self.uffd().map_file_page(self.address(page)), "map a page of slow memory (UFFDIO_CONTINUE)", page);
    }

    /// Copies a page in, which is absent, and in slow memory: it takes no RAM.
    pub fn put_in_place(&self, page: usize, from: usize) {
        self.must(self.uffd().copy(self.address(page), from, false), "put a page into slow memory (UFFDIO_COPY)", page);
        self.note_epoch(page);
    }

    pub fn unmap_slots(&self, range: Range<usize>) {
        let page = self.space.pages_of(&range).start;
        // SAFETY: the file keeps their bytes.
        self.must(unsafe { sys::drop_range(range) }, "drop a page", page);
    }

    pub fn count_in(&self, pages: usize) {
        let resident = self.resident.fetch_add(pages, Ordering::Relaxed) + pages;
        if resident & COUNTED != 0 {
            let all = self.stats.resident.fetch_add(pages as u64, Ordering::Relaxed).wrapping_add(pages as u64);
            // Where others count pages out that are counted in at this moment, it is less than none.
            self.stats.together_max.fetch_max((all as i64).max(0) as u64, Ordering::Relaxed);
        }
        let resident = resident & !COUNTED;
        self.stats.resident_max.fetch_max(resident as u64, Ordering::Relaxed);
    }

    fn note_epoch(&self, page: usize) {
        self.pages.set_epoch(page, self.epoch.load(Ordering::Relaxed));
    }

    /// Restores a page that a raw system call of the program has dropped, with zeros. Only for the owner of the page.
    pub fn refill(&self, page: usize) -> bool {
        let address = self.address(page);
        // This says that a page swapped out by the kernel is absent, and that one of a file is there; the copy then
        // finds out.
        (self.space.is_of_file() || !sys::is_there(address))
            && self.uffd().copy(address, self.space.zeros, false).is_ok()
    }

    /// Write-protects a page and copies it, whether the program may read it or not, without ever sleeping in a fault.
    /// Only for its owner. The page may be absent afterwards.
    pub fn peek(&self, page: usize, into: usize) {
        let address = self.address(page);
        for _ in 0..LOOKS {
            self.refill(page);
            self.protect(page);
            // SAFETY: the caller has a page for it.
            match unsafe { self.file.get().peek(address, into, PAGE) } {
                Ok(()) => return,
                // Just dropped; or, if this repeats, swapped out and not readable as a file.
                Err(Errno::FAULT) => {}
                Err(_) => break,
            }
        }
        // SAFETY: as above, and the page is in the caller's hand.
        self.must(unsafe { sys::peek_elsewhere(address, into) }, "read a page", page);
    }

    /// Takes pages out of the page table with one call.
    ///
    /// # Safety
    /// It drops their content.
    pub unsafe fn drop_pages(&self, vector: &[libc::iovec]) {
        // SAFETY: the caller answers for it.
        let flushes = unsafe { sys::drop_pages(self.pidfd.get().as_raw_fd(), vector) };
        Stats::add(&self.stats.flushes, flushes);
    }

    pub fn have_left(&self, pages: usize) {
        self.count_out(pages);
        self.reserve.left(pages);
    }

    pub fn count_out(&self, pages: usize) {
        if self.resident.fetch_sub(pages, Ordering::Relaxed) & COUNTED != 0 {
            Stats::sub(&self.stats.resident, pages as u64);
        }
    }

    /// Moves a page to the aside mapping; `scratch` is a page for its bytes on their way.
    pub fn set_aside(&self, page: usize, scratch: usize) {
        let (address, aside, uffd) = (self.address(page), self.aside(page), self.uffd());
        if !uffd.can_move || uffd.move_page(aside, address).is_err() {
            // Shared with a child, pinned for a moment, or absent: copy it, then drop it.
            self.peek(page, scratch);
            self.copy_aside(page, scratch);
            // SAFETY: its bytes are in the aside mapping.
            let dropped = unsafe { sys::drop_range(address..address + PAGE) };
            self.must(dropped, "drop a page", page);
        }
        Stats::add(&self.stats.flushes, 1);
    }

    pub fn copy_aside(&self, page: usize, from: usize) {
        self.must(self.uffd().copy(self.aside(page), from, false), "set a page aside", page);
    }

    /// Moves a page back from the aside mapping. `clean`: writes to it fault.
    pub fn restore(&self, page: usize, clean: bool) {
        let (address, aside, uffd) = (self.address(page), self.aside(page), self.uffd());
        // A moved page can be written to from that moment on.
        let moved = if clean || !uffd.can_move { Err(Errno::BUSY) } else { uffd.move_page(address, aside) };
        if moved == Err(Errno::NOENT) {
            // A read would wait for a fault that only this thread could serve.
            fatal::stop(format_args!("internal error: the page for {address:#x} is not in the aside mapping"));
        }
        if moved.is_err() {
            self.must(uffd.copy(address, aside, clean), "put a page back from the aside mapping", page);
            // SAFETY: its bytes are in place.
            let dropped = unsafe { sys::drop_range(aside..aside + PAGE) };
            self.must(dropped, "drop a page", page);
        }
        self.note_epoch(page);
    }

    /// After a fork, in parent and child: frames from before may be shared.
    pub fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// In a forked child: a first write that was in progress in another thread of the parent; no thread waits; and the
    /// child's own settings count.
    pub fn forget_threads(&self) {
        for touched in self.space.frozen().into_iter().map(|(range, _)| self.space.pages_of(&range)) {
            self.space.touched(touched).flatten().for_each(|page| self.pages.disown(page, Where::Dirty));
        }
        self.pages.forget_sleepers();
        self.sharing.forget();
    }

    /// In a forked child: its own process.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn renew(&self) -> Result<(), LiveError> {
        let pidfd = own_pidfd()?;
        // SAFETY: the caller answers for it.
        unsafe {
            *self.pidfd.renew() = pidfd;
            *self.file.renew() = OwnMemory::open();
        }
        Ok(())
    }

    /// In a forked child: another userfaultfd takes the place of this one, which is returned.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn watch_with(&self, uffd: Uffd) -> Uffd {
        // SAFETY: the caller answers for it.
        std::mem::replace(unsafe { self.uffd.renew() }, uffd)
    }

    /// In a pager process: this process by its own number, under the same descriptor.
    pub fn take_pidfd(&self, own: &OwnedFd) -> Sys<()> {
        sys::dup_onto(own, self.pidfd.get().as_raw_fd())
    }
}
