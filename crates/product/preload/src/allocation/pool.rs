//! The memory of this library's Rust code: mappings of its own, never the C library's heap. A signal handler of the
//! program may interrupt the C library's malloc and call mprotect.
//!
//! A free block is in the list of its size, a power of two. The lists have no locks. So a handler, or a forked child
//! that is a copy of a thread in the middle of a call, finds nothing held. A block never leaves its size, and the
//! memory of the lists is never unmapped. Larger blocks are mappings of their own. So the zeros of `alloc_zeroed` take
//! no RAM before they are used, and the pager's tables can be as long as its address space.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use coldframe_live::PAGE;

use crate::sys;

pub struct Internal;

/// The least block and the largest.
const UNIT: usize = 16;
const MOST: usize = 32 << 10;

/// For each size the first free block, and how many have been taken: a thread that was interrupted notices the change.
static FREE: [AtomicU64; 12] = [const { AtomicU64::new(0) }; 12];

/// Bits of an address in units: addresses of programs have at most 48 bits.
const ADDRESS: u32 = 44;

/// An address and a number of 20 bits in a word.
fn pack(address: usize, number: usize) -> u64 {
    (address / UNIT) as u64 & ((1 << ADDRESS) - 1) | (number as u64) << ADDRESS
}

fn unpack(word: u64) -> (usize, usize) {
    ((word & ((1 << ADDRESS) - 1)) as usize * UNIT, (word >> ADDRESS) as usize)
}

/// The list for blocks of this layout. `None`: a mapping of its own.
fn list(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(UNIT);
    (size <= MOST).then(|| (size.next_power_of_two() / UNIT).trailing_zeros() as usize)
}

fn take(list: usize) -> *mut u8 {
    let mut head = FREE[list].load(Acquire);
    loop {
        let (block, takes) = unpack(head);
        if block == 0 {
            return fresh(list);
        }
        // SAFETY: it stays mapped. If another thread has taken it since, its bytes are not used.
        let next = unsafe { (*(block as *const AtomicUsize)).load(Relaxed) };
        match FREE[list].compare_exchange_weak(head, pack(next, takes + 1), Acquire, Acquire) {
            Ok(_) => return block as *mut u8,
            Err(now) => head = now,
        }
    }
}

fn give(list: usize, block: *mut u8) {
    let mut head = FREE[list].load(Relaxed);
    loop {
        let (next, takes) = unpack(head);
        // SAFETY: the caller has given the block up.
        unsafe { (*block.cast::<AtomicUsize>()).store(next, Relaxed) };
        match FREE[list].compare_exchange_weak(head, pack(block as usize, takes), Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

fn mapped(len: usize) -> *mut u8 {
    sys::map_memory(len).map_or(null_mut(), |at| at as *mut u8)
}

/// A new block; the rest of its page is for the list.
fn fresh(list: usize) -> *mut u8 {
    let size = UNIT << list;
    let first = mapped(size.max(PAGE));
    if !first.is_null() {
        (size..PAGE).step_by(size).for_each(|at| give(list, first.wrapping_add(at)));
    }
    first
}

// SAFETY: every block is in one list's size or is a mapping of its own, told apart by the layout, which its owner
// keeps.
unsafe impl GlobalAlloc for Internal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match list(layout) {
            Some(list) => take(list),
            None if layout.align() <= PAGE => mapped(layout.size()),
            None => null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a new block of that length; a mapping is all zeros.
        unsafe {
            let block = self.alloc(layout);
            if list(layout).is_some() && !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match list(layout) {
            Some(list) => give(list, block),
            // SAFETY: the caller gives its mapping up.
            None => _ = unsafe { sys::call(libc::SYS_munmap, [block as usize, layout.size(), 0, 0, 0, 0]) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_threads_have_the_same_block_and_no_block_is_lost() {
        let work = |seed: usize| {
            let (mut held, mut random) = (Vec::new(), seed);
            for _ in 0..100_000 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let layout = Layout::from_size_align(1 << ((random >> 33) % 17), 1 << ((random >> 45) % 13)).unwrap();
                // SAFETY: each block is used by this thread alone, and given back once with its layout.
                unsafe {
                    let block = Internal.alloc(layout);
                    assert!(!block.is_null() && (block as usize).is_multiple_of(layout.align()));
                    block.write_bytes(seed as u8, layout.size().min(64));
                    held.push((block, layout));
                    if held.len() > 30 {
                        let (block, layout) = held.swap_remove((random >> 20) % 30);
                        let end = layout.size().min(64) - 1;
                        assert_eq!((*block, *block.add(end)), (seed as u8, seed as u8));
                        Internal.dealloc(block, layout);
                    }
                }
            }
            // SAFETY: as above.
            held.into_iter().for_each(|(block, layout)| unsafe { Internal.dealloc(block, layout) });
        };
        std::thread::scope(|scope| (1..=4).for_each(|seed| _ = scope.spawn(move || work(seed))));
        for (list, first) in FREE.iter().enumerate() {
            let first = Some(unpack(first.load(Relaxed)).0).filter(|first| *first != 0);
            // SAFETY: a free block begins with the address of the next one.
            let next = |block: &usize| Some(unsafe { *(*block as *const usize) }).filter(|next| *next != 0);
            let (blocks, most) = (std::iter::successors(first, next).count(), 4 * 31 + 4 * PAGE / (UNIT << list));
            assert!(blocks <= most, "{blocks} blocks of {} bytes", UNIT << list);
        }
    }
}
