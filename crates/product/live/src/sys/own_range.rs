//! Where mappings of this crate's own are: in a range of addresses that the kernel uses only if asked to. Anywhere else
//! one could lie in a hole that the program has made and maps over later (MAP_FIXED), for the hole is its own.
//!
//! The range is not reserved, so it costs no address space (RLIMIT_AS), and a child needs nothing to inherit it. The
//! kernel says which part is free, so nothing is kept here that a signal handler, a fork or the pager process could
//! find half changed.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{Errno, Sys};
use crate::PAGE;

/// Far from where the kernel begins, upwards (43 TiB) or downwards (128 TiB), from executables (85 TiB), and from what
/// language runtimes and sanitizers ask for.
pub const OWN: Range<usize> = 0x4000_0000_0000..0x5000_0000_0000;

/// Where something is, look behind it: tables are longer than this.
const STEP: usize = 1 << 30;
/// Twice the range, in such steps.
const TRIES: usize = 2 * (OWN.end - OWN.start) / STEP;

/// How far the search for free addresses has come. It begins anew at the end of the range.
static SEARCHED: AtomicUsize = AtomicUsize::new(0);

/// Where the search begins: elsewhere in each run, as the kernel places libraries.
fn beginning() -> usize {
    (&raw const SEARCHED as usize / PAGE).wrapping_mul(STEP)
}

/// Where the kernel alone chooses addresses, for the rings of io_uring: the second GiB, if the machine has a flag for
/// it. Hardly any program has memory there.
#[cfg(target_arch = "x86_64")]
const LOW: i32 = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const LOW: i32 = 0;

/// Makes a mapping of `len` bytes by `map`, which gets an address and flags for mmap. On processors with fewer
/// addresses it is where the kernel likes.
pub fn place(len: usize, mut map: impl FnMut(usize, i32) -> Sys<usize>) -> Sys<usize> {
    let len = len.max(1).next_multiple_of(PAGE);
    for _ in 0..TRIES {
        let from = SEARCHED.fetch_add(len, Relaxed).wrapping_add(beginning()) % OWN.len();
        if len > OWN.len() - from {
            continue;
        }
        match map(OWN.start + from, libc::MAP_FIXED_NOREPLACE) {
            Err(Errno::EXIST) => _ = SEARCHED.fetch_add(STEP, Relaxed),
            Err(_) => break,
            made => return made,
        }
    }
    map(0, LOW).or_else(|_| map(0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{map_memory, unmap_memory};

    #[test]
    fn own_memory_is_in_its_range_and_never_over_anything() {
        let all: Vec<_> = (0..100).map(|i| map_memory(1 + i * PAGE / 2).unwrap()).collect();
        assert!(all.iter().all(|at| OWN.contains(at)));
        // The search comes to where something is.
        let search_from = |offset: usize| SEARCHED.store(offset.wrapping_sub(beginning()), Relaxed);
        search_from(all[0] - OWN.start);
        let next = map_memory(PAGE).unwrap();
        assert!(OWN.contains(&next) && !all.contains(&next));
        // SAFETY: as below.
        unsafe { unmap_memory(next, PAGE) };
        search_from(OWN.len() - PAGE);
        let two = map_memory(2 * PAGE).unwrap();
        assert!(OWN.contains(&two) && two + 2 * PAGE <= OWN.end);
        // SAFETY: nobody uses it.
        unsafe {
            unmap_memory(two, 2 * PAGE);
            all.iter().enumerate().for_each(|(i, at)| unmap_memory(*at, 1 + i * PAGE / 2));
        }
    }
}
