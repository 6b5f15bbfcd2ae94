//! Regions: managed memory with an owner.

use std::ops::Range;

use super::Pager;
use crate::region::mapping::Spot;
use crate::sys::fatal;
use crate::{LiveError, PAGE};

/// Managed memory, aligned to a page. It is unmapped when dropped.
///
/// A *system call* on an absent page is served if the process has the rights for it ([`crate::Options::handlers`]).
/// Otherwise it fails with EFAULT: `pin` the range first.
#[derive(Debug)]
pub struct Region {
    pager: Pager,
    first: usize,
    len: usize,
}

/// Keeps pages in RAM while it lives: for system calls, and for code that must not wait.
#[derive(Debug)]
pub struct Pin<'a> {
    region: &'a Region,
    pages: Range<usize>,
}

impl Pager {
    /// A region of private memory, zero at first, backed by the swap file.
    ///
    /// # Errors
    /// A length of 0, or more than is left of `max_memory`.
    pub fn anonymous(&self, len: usize) -> Result<Region, LiveError> {
        if len == 0 {
            return Err(LiveError::setting("len", "a region of 0 bytes; give at least 1"));
        }
        let at = self.map_at(Spot::Anywhere(PAGE), len, libc::PROT_READ | libc::PROT_WRITE)?;
        let first = self.pages_of(at..at).start;
        Ok(Region { pager: self.clone(), first, len })
    }
}

impl Region {
    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pager.inner.managed.memory().address(self.first) as *mut u8
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a region has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the range is this region's while it lives; absent pages are brought in by the fault handler.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// As a slice.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the region is borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }

    /// Its pager.
    pub fn pager(&self) -> &Pager {
        &self.pager
    }

    /// Loads the range and keeps it in RAM while the result lives.
    ///
    /// # Errors
    /// A range that is not the region's; more pages than may be pinned.
    pub fn pin(&self, range: Range<usize>) -> Result<Pin<'_>, LiveError> {
        let pages = self.pages_of(&range)?;
        self.pager.inner.run(|| self.pager.inner.managed.pin_pages(pages.clone()))?;
        Ok(Pin { region: self, pages })
    }

    /// Undoes a pin whose guard was forgotten.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn unpin(&self, range: Range<usize>) -> Result<(), LiveError> {
        let pages = self.pages_of(&range)?;
        self.pager.inner.run(|| self.pager.inner.managed.unpin_pages(pages));
        Ok(())
    }

    /// Loads scattered ranges with as few submissions as possible: a list of 32 pages takes a fraction of the time of
    /// 32 faults. Of ranges larger than RAM, only the end is then in RAM.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn will_need(&self, ranges: &[Range<usize>]) -> Result<(), LiveError> {
        let pages: Result<Vec<Range<usize>>, LiveError> = ranges.iter().map(|range| self.pages_of(range)).collect();
        let pages = pages?;
        self.pager.inner.run(|| self.pager.inner.managed.load_pages(pages.into_iter().flatten()));
        Ok(())
    }

    /// Drops the content of the range: it reads as zeros.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn discard(&self, range: Range<usize>) -> Result<(), LiveError> {
        let pages = self.pages_of(&range)?;
        self.pager.inner.run(|| self.pager.inner.managed.discard(pages));
        Ok(())
    }

    fn pages_of(&self, range: &Range<usize>) -> Result<Range<usize>, LiveError> {
        if range.start > range.end || range.end > self.len {
            return Err(LiveError::Range { start: range.start, end: range.end, len: self.len });
        }
        Ok(self.first + range.start / PAGE..self.first + range.end.div_ceil(PAGE))
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let inner = &self.region.pager.inner;
        inner.run(|| inner.managed.unpin_pages(self.pages.clone()));
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let start = self.as_ptr() as usize;
        if let Err(error) = self.pager.unmap(start..start + self.len) {
            fatal::say(format_args!("address space of a region is lost: {error}"));
        }
    }
}
