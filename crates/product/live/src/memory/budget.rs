//! Keeps RAM within its budget: reserves frames for pages on their way out, and knows whether a frame is shared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use coldframe_recording::plan::{Plan, FLOOR};

use crate::stats::shares::ProcessPlace;
use crate::stats::Stats;
use crate::sys;

/// Frames that the engine does not get, for pages that the engine takes as gone and that are still in memory.
#[derive(Debug)]
pub struct Reserve {
    frames: AtomicUsize,
    /// Pages that the engine takes as gone and that are still in memory.
    leaving: AtomicUsize,
}

impl Reserve {
    /// That many of them (`coldframe_recording::plan::Plan`).
    pub fn of(frames: usize) -> Reserve {
        Reserve { frames: AtomicUsize::new(frames), leaving: AtomicUsize::new(0) }
    }

    pub fn resize(&self, frames: usize) {
        self.frames.store(frames, Ordering::Relaxed);
    }

    /// One more page is leaving. Returns false if the reserve is used up; the caller then takes its victims out at
    /// once, before the engine continues.
    pub fn has_room(&self) -> bool {
        self.leaving.fetch_add(1, Ordering::Relaxed) < self.frames.load(Ordering::Relaxed)
    }

    pub fn left(&self, pages: usize) {
        self.leaving.fetch_sub(pages, Ordering::Relaxed);
    }
}

/// Others give frames within this time, or keep them. A guess: many times what the longest write takes.
const GIVING_NS: u64 = 1_000_000_000;
const GIVING_US: u64 = 200;

/// This process's share of the one budget of a run (`stats/shares.rs`). It changes under the engine's lock.
#[derive(Debug)]
pub struct Share {
    stats: &'static Stats,
    /// Frames of the run, other memory included; 0: this process has a budget of its own.
    all: usize,
    /// Victims that are evicted together if the share allows.
    batch: usize,
    /// Frames that this process has.
    has: AtomicUsize,
    /// The number of its place plus 1; 0: it has none.
    place: AtomicUsize,
    /// Pages that the kernel is about to hold.
    pub promised: AtomicUsize,
}

impl Share {
    pub fn new(stats: &'static Stats, budget: usize, batch: usize) -> Share {
        let (has, zero) = (AtomicUsize::new(FLOOR.min(budget)), || AtomicUsize::new(0));
        Share { stats, all: budget, batch, has, place: zero(), promised: zero() }
    }

    pub fn is_on(&self) -> bool {
        self.all > 0
    }

    /// Frames of the run that other memory leaves.
    fn budget(&self) -> usize {
        self.stats.shares.left_of(self.all).max(self.floor())
    }

    pub fn frames(&self) -> usize {
        self.has.load(Ordering::Relaxed)
    }

    /// Frames that it keeps in any case.
    pub fn floor(&self) -> usize {
        FLOOR.min(self.all)
    }

    /// The least share with so many frames for the engine.
    pub fn of_pages(&self, pages: usize) -> usize {
        let mut share = pages;
        while self.plan(share).frames < pages {
            share += pages - self.plan(share).frames;
        }
        share
    }

    /// What the engine has of a share.
    pub fn plan(&self, frames: usize) -> Plan {
        Plan::of_share(frames, self.batch)
    }

    pub fn place(&self) -> Option<&'static ProcessPlace> {
        self.place.load(Ordering::Relaxed).checked_sub(1).map(|number| self.stats.shares.place(number))
    }

    pub fn set_place(&self, number: Option<usize>) {
        self.place.store(number.map_or(0, |number| number + 1), Ordering::Relaxed);
    }

    /// The process has ended, and its pager goes on: it has no frames and gives none.
    pub fn leave(&self) {
        self.set_floor(0);
        if let Some(place) = self.place() {
            place.share.store(0, Ordering::SeqCst);
        }
    }

    /// Frames that nobody has.
    pub fn free(&self) -> usize {
        self.budget().saturating_sub(self.stats.shares.sum())
    }

    /// Takes up to `frames` that nobody has; if there are fewer, asks others for the rest. Returns whether it has got
    /// any.
    pub fn grow(&self, frames: usize) -> bool {
        let Some(me) = self.place.load(Ordering::Relaxed).checked_sub(1) else { return false };
        let budget = self.budget();
        let frames = frames.min(budget.saturating_sub(self.frames()));
        let taken = if frames > 0 { self.stats.shares.take(me, frames, budget) } else { 0 };
        if taken < frames {
            self.stats.shares.ask(Some(me), frames - taken, false, budget, sys::now());
        }
        if taken > 0 {
            self.set_floor(self.floor());
            self.has.fetch_add(taken, Ordering::Relaxed);
        }
        taken > 0
    }

    /// Takes all of these frames, and waits until others have given them: then it returns true. Meanwhile nobody else
    /// gets any.
    pub fn demand(&self, frames: usize) -> bool {
        let Some(me) = self.place.load(Ordering::Relaxed).checked_sub(1) else { return false };
        if self.frames() + frames > self.budget() {
            return false;
        }
        let (shares, end) = (&self.stats.shares, sys::now() + GIVING_NS);
        shares.place(me).share.fetch_add(frames as u32, Ordering::SeqCst);
        while shares.sum() > self.budget() {
            if sys::now() > end {
                self.give(frames);
                return false;
            }
            shares.ask(Some(me), 0, true, self.budget(), sys::now());
            sys::sleep_us(GIVING_US);
        }
        self.has.fetch_add(frames, Ordering::Relaxed);
        true
    }

    /// The engine has so many frames of the share fewer. Others get them by `give`.
    pub fn shrink(&self, frames: usize) {
        self.has.fetch_sub(frames, Ordering::Relaxed);
    }

    /// The pages of these frames have left.
    pub fn give(&self, frames: usize) {
        if let Some(place) = self.place() {
            place.share.fetch_sub(frames as u32, Ordering::SeqCst);
        }
    }

    /// Other processes may request the frames beyond these.
    pub fn set_floor(&self, frames: usize) {
        if let Some(place) = self.place() {
            place.floor.store(frames as u32, Ordering::Relaxed);
        }
    }

    /// If the shares exceed the budget, requests the excess from the idlest processes, perhaps from this one.
    pub fn ask_for_excess(&self) {
        if let Some(me) = self.place.load(Ordering::Relaxed).checked_sub(1) {
            self.stats.shares.ask(Some(me), 0, false, self.budget(), sys::now());
        }
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
