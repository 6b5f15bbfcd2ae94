//! Kernel-owned memory: while all memory that the program may touch fits into RAM, no page needs to be evicted. The
//! kernel then fills the memory, and the pager gets no faults. Just before the program may touch more,
//! `region/take_over.rs` hands all of the memory to the engine, permanently. Until then all pages that it may touch
//! count as resident.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sys::{self, High, Sys};
use crate::PAGE;

/// `Documentation/admin-guide/mm/pagemap.rst`: the page is in RAM, is swapped out, is a guard, has a frame that is
/// mapped nowhere else. The kernel's own page of zeros has no such frame.
const IN_RAM: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const GUARD: u64 = 1 << 58;
const EXCLUSIVE: u64 = 1 << 56;

/// Twice as many descriptors as the pager needs at least.
const FEW: u64 = 80;

#[derive(Debug, Default)]
pub struct KernelOwned {
    on: AtomicBool,
    /// Pages that the program may touch at most.
    most: AtomicUsize,
    /// `/proc/self/pagemap`, opened before the program begins.
    pagemap: Option<High>,
}

impl KernelOwned {
    /// Memory of up to `most` pages is not watched, if this process can find out later which pages are there.
    pub fn up_to(most: usize) -> KernelOwned {
        // Where descriptors are few, the pager goes without.
        let few = sys::with_room(|soft| soft < FEW);
        let pagemap = if few { None } else { sys::open_file(c"/proc/self/pagemap").ok().map(sys::move_high) };
        KernelOwned { on: AtomicBool::new(pagemap.is_some()), most: AtomicUsize::new(most), pagemap }
    }

    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    pub fn has_room(&self, pages: usize) -> bool {
        pages <= self.most.load(Ordering::Relaxed)
    }

    pub fn resize(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.on.store(false, Ordering::Release);
    }

    /// What `/proc/self/pagemap` has of the pages from `address` on.
    pub fn look(&self, address: usize, words: &mut [u64]) -> Sys<()> {
        let (file, len) = (self.pagemap.as_ref().map_or(-1, |file| file.as_raw_fd()), size_of_val(words));
        let mut done = 0;
        while done < len {
            let (into, offset) = (words.as_mut_ptr() as usize + done, (address / PAGE * 8 + done) as u64);
            // SAFETY: the rest of `words`.
            match unsafe { sys::read_at(file, into, len - done, offset) }? {
                0 => return Err(sys::Errno::IO),
                read => done += read,
            }
        }
        Ok(())
    }

    pub fn has_content(word: u64) -> bool {
        word & (IN_RAM | SWAPPED) != 0 && word & GUARD == 0
    }

    /// Whether the page may have a frame that is mapped elsewhere, too.
    pub fn is_shared(word: u64) -> bool {
        word & EXCLUSIVE == 0
    }
}
