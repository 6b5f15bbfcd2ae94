//! The heap: it only grows, and it is closed before the first fault.
//!
//! The core allocates nothing after construction. The board enforces this: an allocation after [`close`] stops it.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;

/// Bytes. The engine's tables for 2 Ki pages and 256 frames take a tenth of it, the journal's buffer a quarter.
const SIZE: usize = 512 << 10;

#[repr(C, align(16))]
struct Heap {
    memory: UnsafeCell<[u8; SIZE]>,
    used: UnsafeCell<usize>,
    closed: UnsafeCell<bool>,
}

// SAFETY: one processor, no interrupts, and the abort handlers allocate nothing (`close`).
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap =
    Heap { memory: UnsafeCell::new([0; SIZE]), used: UnsafeCell::new(0), closed: UnsafeCell::new(false) };

/// No allocation may succeed from now on.
pub fn close() {
    // SAFETY: as for `Sync` above.
    unsafe { *HEAP.closed.get() = true }
}

/// Bytes given out.
pub fn used() -> usize {
    // SAFETY: as for `Sync` above.
    unsafe { *HEAP.used.get() }
}

// SAFETY: blocks are disjoint, aligned parts of `memory`, since `used` only grows; null when it is full or closed.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `Sync` above; `start + size <= SIZE` is checked before the pointer is made.
        unsafe {
            let start = (*self.used.get()).next_multiple_of(layout.align());
            if *self.closed.get() || start + layout.size() > SIZE {
                return core::ptr::null_mut();
            }
            *self.used.get() = start + layout.size();
            self.memory.get().cast::<u8>().add(start)
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
