//! How many frames the pool may have.
//!
//! A frame given to the pool keeps some more pages at the pool's cold end, and costs the frames one page at theirs.
//! So two sums are kept over a window of faults: the time that a pool of one step more would have saved (a load from the
//! device becomes one from the pool), and the time that the same number of frames more would have saved (a page from
//! the pool or from the device had not left). The border moves one step towards the larger sum.
//!
//! ```text
//!   evictions ago   0 ......... step ......................... age of the oldest ...... + step * pages a frame ......
//!   a fault         `kept` by    │   from the pool, as it is    │  from the device:       │  from the device,
//!                   one step of  │                              │  `spared` by one step   │  far from any border
//!                   frames more  │                              │  more of pool           │
//! ```
//! The time since a page left is the number of evictions since then, so no clock is needed. The sums are halved after
//! each window, so old counts fade.

use alloc::boxed::Box;
use alloc::vec;

use super::pool::BIN_FRAMES;
use super::TierConfig;
use crate::ids::PageId;

/// Number of steps from no pool to the largest pool.
const STEPS: usize = 48;
/// A window has as many faults as this part of all frames, with a lower limit.
const WINDOW: usize = 16;
const WINDOW_MIN: u32 = 32;
/// As long as nothing is known, a page in the pool is taken to need this part of a frame.
const UNKNOWN_RATIO: u32 = 3;

pub(super) struct Split {
    frames_max: usize,
    target: usize,
    step: usize,
    window: u32,
    load_price: u64,
    pool_price: u64,
    /// The number of evictions so far, from 1.
    now: u32,
    /// By page: when it last left; 0: never.
    left: Box<[u32]>,
    faults: u32,
    /// Sums of prices.
    spared: u64,
    kept: u64,
}

impl Split {
    pub(super) fn new(config: &TierConfig, pages: usize) -> Split {
        let frames_max = config.frames_max / BIN_FRAMES * BIN_FRAMES;
        let step = (frames_max / STEPS).next_multiple_of(BIN_FRAMES).max(BIN_FRAMES);
        Split {
            frames_max,
            target: config.frames_first.min(frames_max),
            step,
            window: ((frames_max / WINDOW) as u32).max(WINDOW_MIN),
            load_price: config.load_price.into(),
            pool_price: config.pool_price.into(),
            now: 1,
            left: vec![0; pages].into_boxed_slice(),
            faults: 0,
            spared: 0,
            kept: 0,
        }
    }

    pub(super) fn target(&self) -> usize {
        self.target
    }

    pub(super) fn now(&self) -> u32 {
        self.now
    }

    /// Numbers wrap after 2^32 evictions; distances are right as long as they are shorter than that. Returns whether
    /// the page leaves for the first time.
    pub(super) fn leaves(&mut self, page: PageId) -> bool {
        self.now = self.now.wrapping_add(1).max(1);
        core::mem::replace(&mut self.left[page.index()], self.now) == 0
    }

    /// From now on, the pool may have this many frames at most.
    pub(super) fn limit(&mut self, frames_max: usize) {
        self.frames_max = frames_max / BIN_FRAMES * BIN_FRAMES;
        self.target = self.target.min(self.frames_max);
    }

    pub(super) fn forget(&mut self, page: PageId) {
        if self.left[page.index()] != 0 {
            self.left[page.index()] = 0;
        }
    }

    fn ago(&self, page: PageId) -> u32 {
        self.now.wrapping_sub(self.left[page.index()])
    }

    /// A fault on a page that left before. `oldest` is the page that has been in the pool longest. `per_frame` is the
    /// number of pages in a frame of the pool; `None`: the pool has no frame.
    pub(super) fn fault(
        &mut self,
        page: PageId,
        from_pool: bool,
        refused: bool,
        oldest: Option<PageId>,
        per_frame: Option<u32>,
    ) {
        if self.left[page.index()] == 0 {
            return;
        }
        let ago = self.ago(page) as usize;
        if ago <= self.step {
            self.kept += if from_pool { self.pool_price } else { self.load_price };
        }
        if !from_pool && !refused {
            let end = oldest.map_or(0, |oldest| self.ago(oldest) as usize);
            let more = self.step * per_frame.unwrap_or(UNKNOWN_RATIO) as usize;
            self.spared += if ago <= end + more { self.load_price.saturating_sub(self.pool_price) } else { 0 };
        }
        self.faults += 1;
        if self.faults >= self.window {
            self.move_border();
        }
    }

    /// Moves one step if one side is better by an eighth. Without this margin the border would move to and fro for
    /// ever.
    fn move_border(&mut self) {
        let (more, less) = (self.spared, self.kept);
        if more > less + less / 8 {
            self.target = (self.target + self.step).min(self.frames_max);
        } else if less > more + more / 8 {
            self.target = self.target.saturating_sub(self.step);
        }
        (self.faults, self.spared, self.kept) = (0, self.spared / 2, self.kept / 2);
    }
}
