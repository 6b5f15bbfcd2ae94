//! Keeps RAM within its budget: reserves frames for pages on their way out, and knows whether a frame is shared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::sys;

/// Frames that the engine is not given. It uses a frame again as soon as it has commanded that the page leaves, while the page is in memory
/// until its thread has taken it out: as many pages as may be between the two are in reserve.
#[derive(Debug)]
pub struct Reserve {
    frames: usize,
    /// Pages that the engine holds for gone and that are still there.
    leaving: AtomicUsize,
}

impl Reserve {
    /// Room for four batches where that is little, and for one at least; with little RAM for an eighth of it.
    pub fn of(frames: usize, batch: usize) -> Reserve {
        let wanted = batch.max((4 * batch).min(frames / 64));
        Reserve { frames: wanted.min(frames / 8), leaving: AtomicUsize::new(0) }
    }

    /// How many there are.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// One more page is leaving. False: whoever commands that takes his victims out at once, before the engine goes on.
    pub fn has_room(&self) -> bool {
        self.leaving.fetch_add(1, Ordering::Relaxed) < self.frames
    }

    /// So many pages have left.
    pub fn left(&self, pages: usize) {
        self.leaving.fetch_sub(pages, Ordering::Relaxed);
    }
}

/// How long an answer about the kernel's settings is good for, in nanoseconds.
const FRESH_NS: u64 = 100_000_000;

/// Whether the kernel may share frames of ours: it merges equal pages, or swaps. Looked up now and then, since both can be switched on at
/// any time; and kept once it was so, since pages stay merged.
#[derive(Debug, Default)]
pub struct Sharing {
    seen: AtomicBool,
    looked: AtomicU64,
}

impl Sharing {
    /// Whether a frame may be shared now.
    pub fn may_be(&self) -> bool {
        let now = sys::now();
        if !self.seen.load(Ordering::Relaxed) && now - self.looked.load(Ordering::Relaxed).min(now) >= FRESH_NS {
            self.seen.store(sys::merges_or_swaps(), Ordering::Relaxed);
            self.looked.store(now, Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed)
    }

    /// In a forked child: its own settings count from now on.
    pub fn forget(&self) {
        self.looked.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_small_where_ram_is_large_and_never_most_of_it() {
        let of = |frames, batch| Reserve::of(frames, batch).frames();
        assert_eq!((of(64, 8), of(64, 32), of(1024, 8), of(1 << 20, 32)), (8, 8, 16, 128));
    }

    #[test]
    fn who_fills_the_reserve_makes_room_before_the_engine_goes_on() {
        let reserve = Reserve::of(64, 8);
        assert!((0..8).all(|_| reserve.has_room()));
        assert!(!reserve.has_room());
        reserve.left(9);
        assert!(reserve.has_room());
    }
}
