//! The pool of compressed pages: a mapping of ours, in RAM that is taken from the frames. The engine keeps the tables
//! and says where each page lies.
//!
//! The pool is plain private memory. So a forked child has its parent's pool, shared until written, and a copy of the
//! tables.

use coldframe_core::tier::{BIN_FRAMES, GRAIN};
use coldframe_core::PoolId;

use super::codec::decompress;
use crate::sys::{self, fatal};
use crate::{LiveError, PAGE};

/// The mapping. Pages of it that are not lent are not in RAM.
#[derive(Debug)]
pub struct Pool {
    start: usize,
    len: usize,
}

impl Pool {
    /// A pool of `frames` frames; fails without address space.
    pub fn new(frames: usize) -> Result<Pool, LiveError> {
        if frames == 0 {
            return Ok(Pool { start: 0, len: 0 });
        }
        let bad = |error| LiveError::os("address space for compressed pages", error);
        let len = frames * PAGE;
        let start = sys::map_memory(len).map_err(bad)?;
        // A huge page would take RAM that is not lent.
        // SAFETY: our own new memory.
        let _ = unsafe { sys::advise(start..start + len, libc::MADV_NOHUGEPAGE) };
        Ok(Pool { start, len })
    }

    fn place(&self, at: PoolId, size: u32) -> usize {
        let place = at.index() * GRAIN;
        assert!(place + size as usize <= self.len, "the engine places pages within the pool");
        self.start + place
    }

    /// Stores the page's compressed bytes.
    pub fn store(&self, at: PoolId, size: u32, from: usize) {
        let to = self.place(at, size);
        // SAFETY: the engine has given the place to this page alone; the bytes are the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, size as usize) };
    }

    /// Copies the page's compressed bytes.
    pub fn copy_out(&self, at: PoolId, size: u32, into: usize) {
        // SAFETY: the place is the page's, and the caller has room for its bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.place(at, size) as *const u8, into as *mut u8, size as usize) };
    }

    /// Moves a page.
    pub fn shift(&self, from: PoolId, to: PoolId, size: u32) {
        let (from, to) = (self.place(from, size), self.place(to, size));
        // SAFETY: as above; the two places may overlap.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size as usize) };
    }

    /// Decompresses a page. Returns false if these are not the bytes of a page.
    pub fn decompress(&self, at: PoolId, size: u32, into: usize) -> bool {
        // SAFETY: the place is the page's, and the caller has a page for the result.
        unsafe { decompress(self.place(at, size), size, into) }
    }

    /// The last frame of a bin comes back: the memory of the whole bin goes back to the kernel.
    pub fn returned(&self, part: u32) {
        let (part, bin) = (part as usize, BIN_FRAMES);
        if part % bin != bin - 1 {
            return;
        }
        let end = self.start + (part + 1) * PAGE;
        // SAFETY: nothing is in these frames any more.
        if let Err(error) = unsafe { sys::drop_range(end - bin * PAGE..end) } {
            fatal::stop(format_args!("memory of compressed pages cannot be given back: {}", error.io()));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: it is no longer in use.
            unsafe { sys::unmap_memory(self.start, self.len) };
        }
    }
}
