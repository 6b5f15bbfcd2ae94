//! Keeps RAM within its budget: reserves frames for pages on their way out, and knows whether a frame is shared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::sys;

/// Frames that the engine does not get, for pages that the engine takes as gone and that are still in memory.
#[derive(Debug)]
pub struct Reserve {
    frames: usize,
    /// Pages that the engine takes as gone and that are still in memory.
    leaving: AtomicUsize,
}

impl Reserve {
    /// That many of them (`coldframe_plan::Plan`).
    pub fn of(frames: usize) -> Reserve {
        Reserve { frames, leaving: AtomicUsize::new(0) }
    }

    /// One more page is leaving. Returns false if the reserve is used up; the caller then takes its victims out at
    /// once, before the engine continues.
    pub fn has_room(&self) -> bool {
        self.leaving.fetch_add(1, Ordering::Relaxed) < self.frames
    }

    pub fn left(&self, pages: usize) {
        self.leaving.fetch_sub(pages, Ordering::Relaxed);
    }
}

/// How long an answer about the kernel's settings stays valid, in nanoseconds.
const FRESH_NS: u64 = 100_000_000;

/// Whether the kernel may share our frames: it merges equal pages, or it swaps. Both can be switched on at any time,
/// so this is checked from time to time. Once true, it stays true, since pages stay merged.
#[derive(Debug, Default)]
pub struct Sharing {
    may_share: AtomicBool,
    looked: AtomicU64,
}

impl Sharing {
    /// Whether a frame may be shared now.
    pub fn may_be(&self) -> bool {
        let now = sys::now();
        if !self.may_share.load(Ordering::Relaxed) && now - self.looked.load(Ordering::Relaxed).min(now) >= FRESH_NS {
            self.may_share.store(sys::merges_or_swaps(), Ordering::Relaxed);
            self.looked.store(now, Ordering::Relaxed);
        }
        self.may_share.load(Ordering::Relaxed)
    }

    /// In a forked child: from now on the child's own settings count.
    pub fn forget(&self) {
        self.looked.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fills_the_reserve_makes_room_before_the_engine_goes_on() {
        let reserve = Reserve::of(8);
        assert!((0..8).all(|_| reserve.has_room()));
        assert!(!reserve.has_room());
        reserve.left(9);
        assert!(reserve.has_room());
    }
}
