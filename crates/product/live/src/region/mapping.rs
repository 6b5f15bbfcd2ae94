//! Changes the managed address space; no other file changes it. Each change holds `Space::changing` from its first
//! step to its last.
//!
//! ```text
//!   open    watched ─ the rights asked for ─ in the map of extents
//!   close   out of the map ─ its pages are forgotten ─ a free mapping over it
//!   renew   out of the map ─ its pages are forgotten ─ as a new mapping ─ opened
//! ```
//! A range gets its rights when it is watched, and what is mapped anew stays watched, so no touch passes unseen: a
//! touch before the end of a change is SIGSEGV if the range was free, and otherwise a fault that is repeated.
//!
//! A page that is in the map and was never touched is `Nowhere`; its first fault makes it `Out`. So a reservation of
//! a terabyte costs nothing. A range that is closed first leaves the map. From then on, its untouched pages stay
//! `Nowhere`. Its other pages are dropped one by one, each under the engine's lock when no thread is changing it.

use std::ops::Range;

use coldframe_core::{Event, PageId};

use super::ManagedMemory;
use crate::fault::gate::Decider;
use crate::memory::extents::{Kind, Manner};
use crate::memory::space;
use crate::page::pages::Where;
use crate::stats::Stats;
use crate::sys::{self, fatal, Sys};
use crate::{LiveError, PAGE};

/// The rights that memory can have. mmap takes other bits, and mprotect does not.
const ALL: i32 = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;

/// The address of new memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// Anywhere, at a multiple of this many bytes, a power of two.
    Anywhere(usize),
    /// Here, if it is free.
    Free(usize),
    /// Here, replacing whatever is there.
    Over(usize),
}

impl ManagedMemory {
    /// Closes the part of a range that is in the span. Signals are blocked, here and below.
    pub fn unmap(&self, range: &Range<usize>) -> Sys<()> {
        let _changing = self.space().changing();
        let span = self.space().span();
        let end = range.end.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        self.close(&(range.start.clamp(span.start, span.end)..end.clamp(span.start, span.end)), true)
    }

    /// Makes room for a mapping of the program itself, which the program then makes. No other change begins before
    /// `end_foreign`.
    pub fn begin_foreign(&self, range: &Range<usize>) {
        self.space().begin_change();
        let _ = self.close(range, false);
    }

    /// The program has made the mapping, or could not.
    pub fn end_foreign(&self, range: Range<usize>, made: bool) {
        match made {
            true => self.space().extents().insert(range, Kind::Foreign),
            false => self.restore(&range),
        }
        self.space().end_change();
    }

    pub fn foreign_gone(&self, range: &Range<usize>) {
        let _changing = self.space().changing();
        self.space().extents().remove(range.clone());
        self.restore(range);
    }

    /// Opens `len` bytes, in whole pages. Signals are blocked.
    pub fn map(&self, spot: Spot, len: usize, protection: i32) -> Result<Range<usize>, LiveError> {
        let _changing = self.space().changing();
        let span = self.space().span();
        let full = |free: usize| LiveError::Full { requested: len, free, max: span.len() };
        let at = match spot {
            Spot::Anywhere(align) => {
                let extents = self.space().extents();
                extents.find(len, align.max(PAGE)).ok_or_else(|| full(extents.free()))?
            }
            Spot::Free(at) | Spot::Over(at) => at,
        };
        let range = at..at.checked_add(len).ok_or_else(|| full(0))?;
        match spot {
            Spot::Over(_) if span.contains(&at) && range.end <= span.end => {
                let new = self.make_new(&range, protection).inspect_err(|_| self.restore(&range));
                new.map_err(|e| LiveError::os("replace a mapping", e))?;
            }
            _ if self.space().extents().is_free(&range) => {}
            _ => return Err(full(self.space().extents().free())),
        }
        if let Err(error) = self.open(&range, protection) {
            self.restore(&range);
            return Err(LiveError::os("map memory", error));
        }
        Ok(range)
    }

    /// Replaces what is mapped in a range by memory as new. The kernel cannot watch a file, so a page of foreign memory
    /// that is touched during this call stays unknown.
    fn make_new(&self, range: &Range<usize>, protection: i32) -> Sys<()> {
        let there = self.space().extents().within(range.clone()).collect::<Vec<_>>();
        self.close(range, false)?;
        for (part, kind) in there.iter().filter(|_| !self.memory().is_plain()) {
            // SAFETY: no page of it is in use any more.
            unsafe {
                match kind {
                    Kind::Managed(_) => space::as_new(part)?,
                    Kind::Foreign => self.space().map_new(part, protection)?,
                }
            }
        }
        Ok(())
    }

    fn open(&self, range: &Range<usize>, protection: i32) -> Sys<()> {
        if self.memory().is_plain() {
            // SAFETY: the range is free.
            unsafe { space::map_plain(range, protection)? };
        } else {
            let pages = self.space().pages_of(range).len();
            let opened = if protection & ALL == 0 { 0 } else { pages };
            // SAFETY: the range is free, or as new.
            unsafe { space::prepare(range)? };
            if !self.is_kernel_owned(opened) {
                self.watch_all()?;
                self.memory().uffd().register(range.clone())?;
            }
            sys::set_rights(range, protection & ALL)?;
            Stats::add(&self.stats.managed, pages as u64);
            if self.memory().kernel_owned.is_on() {
                self.memory().count_in(opened);
            }
        }
        self.space().extents().insert(range.clone(), Kind::Managed(Manner::new(protection)));
        Ok(())
    }

    /// In a forked child: removes memory that the child must not have, drops content that it must not inherit, and
    /// clears locks. Its signals are blocked.
    pub fn after_fork(&self) {
        let _changing = self.space().changing();
        for (range, manner) in self.space().managed_within(self.space().span()) {
            if manner.locked {
                self.unpin_touched(self.space().pages_of(&range));
                self.space().extents().change(range.clone(), |manner| manner.locked = false);
            }
            if manner.dont_fork {
                if self.close(&range, true).is_err() {
                    fatal::say("a forked process could not give back what it was not to inherit");
                }
            } else if manner.wipe_on_fork {
                self.space().touched(self.space().pages_of(&range)).for_each(|touched| self.discard_pages(touched));
            }
        }
    }

    /// Removes whatever is mapped in a range. `free`: a free mapping takes its place; otherwise the caller puts
    /// something there.
    pub(super) fn close(&self, range: &Range<usize>, free: bool) -> Sys<()> {
        let there = self.space().extents().remove(range.clone());
        for (part, kind) in there.iter().filter(|_| !self.memory().is_plain()) {
            if let Kind::Managed(manner) = kind {
                let pages = self.space().pages_of(part);
                if manner.locked {
                    self.unpin_touched(pages.clone());
                }
                self.forget(pages.clone());
                Stats::sub(&self.stats.managed, pages.len() as u64);
                if self.memory().kernel_owned.is_on() && manner.opened {
                    self.memory().count_out(pages.len());
                }
            }
        }
        for (i, (part, _)) in there.iter().enumerate().filter(|_| free) {
            // SAFETY: no page of it is in use any more.
            if let Err(error) = unsafe { self.space().map_free(part) } {
                // Lost address space is better than address space that is handed out while it is still mapped.
                let mut extents = self.space().extents();
                there[i..].iter().for_each(|(part, kind)| extents.insert(part.clone(), *kind));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes a range free that is in no extent.
    fn restore(&self, range: &Range<usize>) {
        // SAFETY: no page of it is in use.
        if unsafe { self.space().map_free(range) }.is_err() {
            self.space().extents().insert(range.clone(), Kind::Foreign);
        }
    }

    /// Drops the content of pages that are in no extent any more, and brings all of them to `Nowhere`.
    fn forget(&self, pages: Range<usize>) {
        for touched in self.space().touched(pages.clone()) {
            self.discard_pages(touched.clone());
            let mut next = touched.start;
            while next < touched.end {
                next = self.retire(next..touched.end);
                if next < touched.end {
                    // Another thread was faster and has brought it back.
                    self.discard_pages(next..next + 1);
                    sys::give_way();
                }
            }
        }
        self.space().untouch(pages);
    }

    /// Takes pages to `Nowhere` as long as they are at rest. Returns the first page that is not. Under the engine's
    /// lock no thread can begin to bring a page in.
    fn retire(&self, pages: Range<usize>) -> usize {
        let decider = self.gate.lock();
        pages.clone().find(|page| !self.retired(&decider, *page)).unwrap_or(pages.end)
    }

    fn retired(&self, decider: &Decider, page: usize) -> bool {
        match self.pages().get(page) {
            Where::Nowhere => true,
            Where::Out if self.pages().slot(page).is_none() && !self.work.log().has_slot(page) => {
                let rests = decider.engine().accepts(&Event::Released { page: PageId::from(page) });
                if rests {
                    self.pages().set(page, Where::Nowhere);
                }
                rests
            }
            _ => false,
        }
    }

    pub fn unpin_touched(&self, pages: Range<usize>) {
        self.space().touched(pages).for_each(|touched| self.unpin_pages(touched));
    }

    pub fn contents(&self, pages: Range<usize>) -> Vec<Range<usize>> {
        if self.memory().is_the_kernels() {
            return vec![self.space().addresses_of(&pages)];
        }
        let there = self.space().touched(pages).flatten().filter(|page| self.memory().has_content(*page));
        self.space().runs(there).collect()
    }
}
