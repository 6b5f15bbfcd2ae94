//! Kernel-owned memory: while all memory that the program may touch fits into RAM, no page needs to be evicted. The
//! kernel then fills the memory, and the pager gets no faults. Just before the program may touch more,
//! `region/take_over.rs` hands all of the memory to the engine, permanently. Until then all pages that it may touch
//! count as resident.

use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub struct KernelOwned {
    on: AtomicBool,
    /// Pages that the program may touch at most.
    most: usize,
}

impl KernelOwned {
    /// Memory of up to `most` pages is not watched.
    pub fn up_to(most: usize) -> KernelOwned {
        KernelOwned { on: AtomicBool::new(true), most }
    }

    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    pub fn has_room(&self, pages: usize) -> bool {
        pages <= self.most
    }

    pub fn end(&self) {
        self.on.store(false, Ordering::Release);
    }
}
