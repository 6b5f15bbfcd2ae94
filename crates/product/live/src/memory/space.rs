//! The managed address space: one range for pages in use, and one of the same size for pages that are in RAM but not
//! mapped.
//!
//! ```text
//!   start ............ start + len ............ start + 2 len
//!   | page 0 | page 1 | ...        | aside mapping, page by page |
//! ```
//! Free space is inaccessible and not watched: a touch of it is the kernel's SIGSEGV, and a system call on it returns
//! EFAULT. One map of extents says which parts are in use; nothing is opened or closed without a change of this map.
//!
//! There are two locks. `changing` is held from the first to the last step of a change, so that kernel and map agree
//! whenever it is free; its holder may wait for pages. `extents` is held only for moments, and a fault handler may
//! take it. Both need signals blocked.

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::memory::extents::{Extents, Kind, Manner};
use crate::sys::lock::{Guard, Lock};
use crate::sys::table::Table;
use crate::sys::{self, Errno, Sys};
use crate::{LiveError, PAGE};

/// Pages whose first touch is noted together: 2 MiB.
pub const CHUNK: usize = 512;

/// Bytes of the aside mapping that become accessible together: few mappings, and few bytes for a small program.
const ASIDE: usize = 1 << 30;

/// Pages that come in together as zeros, at most (`core/src/fault/first_touch.rs`).
pub const BLOCK: usize = 64;

/// The address space, and which of its pages are in use.
#[derive(Debug)]
pub struct Space {
    pub start: usize,
    pub pages: usize,
    /// A block of pages that nobody writes to.
    pub zeros: usize,
    /// The memory file that the span is a private mapping of, page by page.
    file: Option<RawFd>,
    /// Free addresses are in no file any more.
    anonymous: AtomicBool,
    changing: Lock<()>,
    extents: Lock<Extents>,
    /// For each chunk, whether any of its pages may not be `Nowhere`.
    touched: Table<AtomicU8>,
    /// For each [`ASIDE`] bytes of the aside mapping, whether they are accessible.
    opened: Table<AtomicU8>,
}

impl Space {
    /// Takes the address space; costs no RAM. With a memory file, which is open as long as the space lives.
    pub fn new(len: usize, at: Option<usize>, file: Option<RawFd>) -> Result<Space, LiveError> {
        let pages = len / PAGE;
        let len = pages * PAGE;
        let no_room = |e: Errno| LiveError::Missing {
            feature: "address space",
            reason: format!("twice {len} bytes are refused ({})", sys::words(e)),
            remedy: "give a smaller `max_memory`, or raise `ulimit -v` and `ulimit -d` or vm.overcommit_memory",
        };
        let start = reserve(2 * len, at).map_err(no_room)?;
        let aside = start + len..start + 2 * len;
        // SAFETY: our own new memory. A core dump has no use for it.
        let made = unsafe { prepare(&aside).and_then(|()| sys::advise(aside.clone(), libc::MADV_DONTDUMP)) };
        let made = made.map_err(no_room).and_then(|()| Table::new(pages.div_ceil(CHUNK)));
        let opened = Table::new(len.div_ceil(ASIDE));
        let zeros = sys::map_memory(BLOCK * PAGE).map_err(|e| LiveError::os("pages of zeros", e));
        let (touched, opened, zeros) = match (made, opened, zeros) {
            (Ok(touched), Ok(opened), Ok(zeros)) => (touched, opened, zeros),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                // SAFETY: no other thread knows it yet.
                unsafe { sys::unmap_memory(start, 2 * len) };
                return Err(error);
            }
        };
        let extents = Lock::new(Extents::new(start..start + len));
        let space = Space {
            start,
            pages,
            zeros,
            file,
            anonymous: AtomicBool::new(false),
            changing: Lock::new(()),
            extents,
            touched,
            opened,
        };
        if len < ASIDE << 10 {
            // The limit that made it so small could refuse this later.
            (0..pages).step_by(ASIDE / PAGE).try_for_each(|page| space.open_aside(page)).map_err(no_room)?;
        }
        if file.is_some() {
            // SAFETY: no other thread knows it yet.
            unsafe { space.map_free(&space.span()) }.map_err(no_room)?;
        }
        Ok(space)
    }

    /// In a process that does not page, and has no descriptor of the file.
    pub fn leave_file(&self) {
        self.anonymous.store(true, Ordering::Relaxed);
    }

    pub fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// Replaces a mapping by free space, without its rights, locks and advice.
    ///
    /// # Safety
    /// The range is in the span or the aside mapping, and its old content is no longer used.
    pub unsafe fn map_free(&self, range: &Range<usize>) -> Sys<()> {
        // SAFETY: the caller answers for it.
        unsafe { self.map_new(range, libc::PROT_NONE) }
    }

    /// Replaces a mapping by memory that the pager can watch.
    ///
    /// # Safety
    /// As above.
    pub unsafe fn map_new(&self, range: &Range<usize>, protection: i32) -> Sys<()> {
        let in_file = range.end <= self.aside() && !self.anonymous.load(Ordering::Relaxed);
        let of_file = self.file.filter(|_| in_file);
        // SAFETY: the caller answers for it.
        unsafe { map_over(range, protection, of_file.map(|file| (file, range.start - self.start))) }
    }

    pub fn aside(&self) -> usize {
        self.start + self.pages * PAGE
    }

    /// Before a page is in the aside mapping. Pages move only between ranges of equal rights, so it must be writable;
    /// but the whole of it, never used, would count as data of the program (RLIMIT_DATA, readers of its maps).
    pub fn open_aside(&self, page: usize) -> Sys<()> {
        let part = page * PAGE / ASIDE;
        if self.opened[part].load(Ordering::Acquire) == 0 {
            let start = self.aside() + part * ASIDE;
            let end = self.aside_range().end.min(start + ASIDE);
            sys::set_rights(&(start..end), libc::PROT_READ | libc::PROT_WRITE)?;
            self.opened[part].store(1, Ordering::Release);
        }
        Ok(())
    }

    pub fn span(&self) -> Range<usize> {
        self.start..self.aside()
    }

    pub fn aside_range(&self) -> Range<usize> {
        self.aside()..self.start + 2 * self.pages * PAGE
    }

    /// The map of extents, for a moment. Needs signals blocked.
    pub fn extents(&self) -> Guard<'_, Extents> {
        self.extents.lock()
    }

    /// The right to change what is mapped. Needs signals blocked.
    pub fn changing(&self) -> Guard<'_, ()> {
        self.changing.lock()
    }

    /// The managed extent around a page, as pages; `None`: it is not managed. Also for fault handlers.
    pub fn extent_of(&self, page: usize) -> Option<Range<usize>> {
        match self.extents().at(self.start + page * PAGE) {
            Some((range, Kind::Managed(_))) => Some(self.pages_of(&range)),
            _ => None,
        }
    }

    pub fn pages_of(&self, range: &Range<usize>) -> Range<usize> {
        (range.start - self.start) / PAGE..(range.end - self.start).div_ceil(PAGE)
    }

    pub fn addresses_of(&self, pages: &Range<usize>) -> Range<usize> {
        self.start + pages.start * PAGE..self.start + pages.end * PAGE
    }

    /// The addresses of pages, which come in order: a range for those that follow each other.
    pub fn runs<'a>(&'a self, pages: impl Iterator<Item = usize> + 'a) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut pages = pages.peekable();
        std::iter::from_fn(move || {
            let first = pages.next()?;
            let mut end = first + 1;
            while pages.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(self.addresses_of(&(first..end)))
        })
    }

    /// The managed extents in a range of addresses, with their manner. Needs signals blocked.
    pub fn managed_within(&self, range: Range<usize>) -> Vec<(Range<usize>, Manner)> {
        self.extents().within(range).filter_map(managed).collect()
    }

    /// Runs `first` if the page is managed, and notes that it was touched. A thread that removes the page from the
    /// map then sees it as touched, or as never to be touched: `first` runs under the lock.
    pub fn touch(&self, page: usize, first: impl FnOnce()) -> bool {
        let extents = self.extents();
        let managed = matches!(extents.at(self.start + page * PAGE), Some((_, Kind::Managed(_))));
        if managed {
            self.touched[page / CHUNK].store(1, Ordering::Release);
            first();
        }
        managed
    }

    /// The parts of a range of pages in which any page may have been touched.
    pub fn touched(&self, pages: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let chunks = if pages.is_empty() { 0..0 } else { pages.start / CHUNK..pages.end.div_ceil(CHUNK) };
        let there = |chunk: &usize| self.touched[*chunk].load(Ordering::Acquire) != 0;
        chunks.filter(there).map(move |chunk| (chunk * CHUNK).max(pages.start)..((chunk + 1) * CHUNK).min(pages.end))
    }

    /// None of these pages is touched any more. Only whole chunks are changed.
    pub fn untouch(&self, pages: Range<usize>) {
        for chunk in pages.start.div_ceil(CHUNK)..pages.end / CHUNK {
            self.touched[chunk].store(0, Ordering::Release);
        }
    }

    /// The right to change what is mapped, until `end_change`; another thread may call that. Before a fork: taken
    /// before its gate is shut, so that no thread that changes the space waits there. Needs signals blocked.
    pub fn begin_change(&self) {
        std::mem::forget(self.changing.lock());
    }

    pub fn end_change(&self) {
        self.changing.free();
    }

    /// Before a fork, when no fault is in flight: from now on no thread uses the extents.
    pub fn freeze(&self) {
        std::mem::forget(self.extents.lock());
    }

    /// After a fork, in parent and child: undoes both.
    pub fn thaw(&self) {
        self.extents.free();
        self.end_change();
    }

    /// Every managed extent, with its manner. Call it between `freeze` and `thaw`.
    pub fn frozen(&self) -> Vec<(Range<usize>, Manner)> {
        // SAFETY: `freeze` has taken the lock, and the result of this lives to the end of the function only.
        let extents = unsafe { self.extents.held() };
        extents.within(self.span()).filter_map(managed).collect()
    }
}

fn managed((range, kind): (Range<usize>, Kind)) -> Option<(Range<usize>, Manner)> {
    match kind {
        Kind::Managed(manner) => Some((range, manner)),
        Kind::Foreign => None,
    }
}

/// The most bytes of tables for a page: all of `Pages`, the engine's, the policy's and the log's, rounded up. Only
/// used entries cost RAM.
const TABLES: usize = 160;

/// Whether the limits of this process allow a span of `len` bytes, its aside mapping and tables, and as much again for
/// the program's other mappings.
pub fn fits(len: usize, at: Option<usize>) -> bool {
    let tables = len / PAGE * TABLES;
    let gives_back = |(part, size): (Sys<usize>, usize)| {
        // SAFETY: new, and not used yet.
        part.map(|start| unsafe { sys::unmap_memory(start, size) }).is_ok()
    };
    // Both at a time.
    let parts = [(sys::map_memory(2 * (len + tables)), 2 * (len + tables)), (reserve(2 * len, None), 2 * len)];
    // An allocator that was loaded earlier may use addresses in the middle.
    parts.map(gives_back) == [true; 2] && gives_back((reserve(2 * len, at), 2 * len))
}

fn reserve(len: usize, at: Option<usize>) -> Sys<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = flags | if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
    // SAFETY: takes unused address space.
    unsafe { sys::call(libc::SYS_mmap, [at.unwrap_or(0), len, 0, flags as usize, usize::MAX, 0]) }
}

/// No huge pages and no merged ones: a page that leaves RAM alone must have its own frame. Kernels without these
/// features refuse the advice.
unsafe fn in_small_pages(range: &Range<usize>) {
    // SAFETY: the caller's memory; the advice takes no content away.
    unsafe {
        let _ = sys::advise(range.clone(), libc::MADV_NOHUGEPAGE);
        let _ = sys::advise(range.clone(), libc::MADV_UNMERGEABLE);
    }
}

/// Gives a mapping all that managed memory has but its rights. A child does not inherit it.
///
/// # Safety
/// The range is in the span.
pub unsafe fn prepare(range: &Range<usize>) -> Sys<()> {
    // SAFETY: the caller answers for it.
    unsafe {
        in_small_pages(range);
        sys::advise(range.clone(), libc::MADV_DONTFORK)
    }
}

/// Takes from a mapping what a new one would not have: content, guards, and the advice not to dump it.
///
/// # Safety
/// As of [`map_plain`].
pub unsafe fn as_new(range: &Range<usize>) -> Sys<()> {
    /// `include/uapi/asm-generic/mman-common.h`; from Linux 6.13 on, and no memory has guards before.
    const MADV_GUARD_REMOVE: i32 = 103;
    // SAFETY: the caller answers for it.
    unsafe {
        let _ = sys::advise(range.clone(), MADV_GUARD_REMOVE);
        let _ = sys::advise(range.clone(), libc::MADV_DODUMP);
        sys::drop_range(range.clone())
    }
}

/// Replaces a mapping by zeros with these rights, as in a process that does not page: a child inherits it.
///
/// # Safety
/// The range is in the span, and its old content is no longer used.
pub unsafe fn map_plain(range: &Range<usize>, protection: i32) -> Sys<()> {
    // SAFETY: the caller answers for it.
    unsafe {
        map_over(range, protection, None)?;
        in_small_pages(range);
    }
    Ok(())
}

unsafe fn map_over(range: &Range<usize>, protection: i32, of: Option<(RawFd, usize)>) -> Sys<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let flags = (flags | if of.is_none() { libc::MAP_ANONYMOUS } else { 0 }) as usize;
    let (file, offset) = of.map_or((usize::MAX, 0), |(file, offset)| (file as usize, offset));
    let arguments = [range.start, range.len(), protection as usize, flags, file, offset];
    // SAFETY: the caller answers for it.
    unsafe { sys::call(libc::SYS_mmap, arguments) }.map(drop)
}

impl Space {
    /// Unmaps all of it.
    ///
    /// # Safety
    /// No thread touches it that may go on.
    pub unsafe fn unmap_all(&self) {
        // SAFETY: the caller answers for it.
        unsafe { sys::unmap_memory(self.start, 2 * self.pages * PAGE) };
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: no region is left.
        unsafe {
            sys::unmap_memory(self.start, 2 * self.pages * PAGE);
            sys::unmap_memory(self.zeros, BLOCK * PAGE);
        }
    }
}
