//! The managed address space: one range for pages in use and one of the same size to hold pages that are in RAM but not mapped.
//!
//! ```text
//!   start ............ start + len ............ start + 2 len
//!   | page 0 | page 1 | ...        | holding area, page by page |
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use crate::lock::Lock;
use crate::sys;
use crate::{LiveError, PAGE};

/// The address space, and which of its pages are given out.
#[derive(Debug)]
pub struct Space {
    start: usize,
    pages: usize,
    zeros: usize,
    /// Free extents: first page and number of pages.
    free: Lock<BTreeMap<usize, usize>>,
}

impl Space {
    /// Takes the address space; costs no RAM.
    pub fn new(len: usize, at: Option<usize>) -> Result<Space, LiveError> {
        let pages = len / PAGE;
        let start = sys::map_memory(2 * pages * PAGE, at).map_err(|e| LiveError::Setting {
            field: "max_memory",
            reason: format!("no address space for twice {len} bytes ({}); give less", e.io()),
        })?;
        let zeros = sys::map_memory(PAGE, None).map_err(|e| LiveError::os("a page of zeros", e))?;
        let both = start..start + 2 * pages * PAGE;
        // SAFETY: our own new memory.
        unsafe {
            let _ = sys::advise(both.clone(), libc::MADV_NOHUGEPAGE);
            sys::advise(both, libc::MADV_DONTFORK).map_err(|e| LiveError::os("keep memory from forked children", e))?;
        }
        Ok(Space { start, pages, zeros, free: Lock::new(BTreeMap::from([(0, pages)])) })
    }

    pub fn start(&self) -> usize {
        self.start
    }

    pub fn holding(&self) -> usize {
        self.start + self.pages * PAGE
    }

    /// A page of zeros.
    pub fn zeros(&self) -> usize {
        self.zeros
    }

    /// Where regions lie.
    pub fn span(&self) -> Range<usize> {
        self.start..self.holding()
    }

    /// Regions and holding area.
    pub fn all(&self) -> Range<usize> {
        self.start..self.start + 2 * self.pages * PAGE
    }

    /// Takes so many pages, the first at a multiple of `align` bytes: the lowest that fit.
    pub fn take(&self, count: usize, align: usize) -> Result<usize, LiveError> {
        let mask = sys::block_signals();
        let found = take(&mut self.free.lock(), count, |page| {
            let address = self.start + page * PAGE;
            (address.next_multiple_of(align) - address) / PAGE
        });
        sys::restore_signals(mask);
        found.map_err(|free| LiveError::Full { asked: count * PAGE, free: free * PAGE, max: self.pages * PAGE })
    }

    /// Gives pages back.
    pub fn give(&self, first: usize, count: usize) {
        let mask = sys::block_signals();
        give(&mut self.free.lock(), first, count);
        sys::restore_signals(mask);
    }

    /// Holds the extents still: before a fork.
    pub fn freeze(&self) {
        std::mem::forget(self.free.lock());
    }

    /// After a fork, in parent and child.
    pub fn thaw(&self) {
        self.free.free();
    }

    /// One more than the last page in use. Between `freeze` and `thaw`.
    pub fn used_end(&self) -> usize {
        // SAFETY: `freeze` has taken the lock.
        match unsafe { self.free.held() }.last_key_value() {
            Some((first, count)) if first + count == self.pages => *first,
            _ => self.pages,
        }
    }
}

fn take(free: &mut BTreeMap<usize, usize>, count: usize, skip: impl Fn(usize) -> usize) -> Result<usize, usize> {
    let fits = |(first, len): (&usize, &usize)| (skip(*first) + count <= *len).then_some((*first, *len));
    let Some((first, len)) = free.iter().find_map(fits) else { return Err(free.values().sum()) };
    free.remove(&first);
    let start = first + skip(first);
    for (from, to) in [(first, start), (start + count, first + len)] {
        if from < to {
            free.insert(from, to - from);
        }
    }
    Ok(start)
}

fn give(free: &mut BTreeMap<usize, usize>, mut first: usize, mut count: usize) {
    if let Some((before, len)) = free.range(..first).next_back().map(|(a, b)| (*a, *b)) {
        if before + len == first {
            (first, count) = (before, count + len);
        }
    }
    if let Some(len) = free.remove(&(first + count)) {
        count += len;
    }
    free.insert(first, count);
}

impl Drop for Space {
    fn drop(&mut self) {
        let all = self.all();
        // SAFETY: no region is left.
        unsafe {
            sys::unmap_memory(all.start, all.len());
            sys::unmap_memory(self.zeros, PAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again_in_one_piece() {
        let mut free = BTreeMap::from([(0, 100)]);
        let plain = |_| 0;
        let a = take(&mut free, 10, plain).unwrap();
        let b = take(&mut free, 20, plain).unwrap();
        let c = take(&mut free, 30, plain).unwrap();
        assert_eq!((a, b, c), (0, 10, 30));
        give(&mut free, b, 20);
        assert_eq!(take(&mut free, 15, plain), Ok(10));
        give(&mut free, 10, 15);
        give(&mut free, a, 10);
        give(&mut free, c, 30);
        assert_eq!(free, BTreeMap::from([(0, 100)]));
        assert_eq!(take(&mut free, 101, plain), Err(100));
        assert_eq!(take(&mut free, 8, |page| 7usize.saturating_sub(page)), Ok(7));
    }
}
