//! How many frames the pool may have.
//!
//! A frame given to the pool keeps some more pages at the pool's cold end, and costs the frames one page at theirs.
//! So two sums are kept over a window of faults: the time that a pool of one step more would have saved (a load from the
//! device becomes one from the pool), and the time that the same number of frames more would have saved (a page from
//! the pool or from the device had not left). The border moves one step towards the larger sum; its first moves in one
//! direction are of one, two and then four steps.
//!
//! ```text
//!   evictions ago   0 ......... step ......................... age of the oldest ...... + step * pages a frame ......
//!   a fault         `kept` by    │   from the pool, as it is    │  from the device:       │  from the device,
//!                   one step of  │                              │  `spared` by one step   │  far from any border
//!                   frames more  │                              │  more of pool           │
//! ```
//! The first way to count for the frames is that of LRU: only a page that left within one step would have stayed. A
//! policy that knows better than LRU, or a program that goes round in a loop, gains from each frame, however long ago
//! pages left: if all pages outside RAM come back in turn, one of `n` stays for each frame more, and `n` is the mean of
//! the times since they left. The larger of the two sums counts.
//!
//! The time since a page left is the number of evictions since then, so no clock is needed. The sums are halved after
//! each window, so old counts fade.

use alloc::boxed::Box;
use alloc::vec;

use super::pool::BIN_FRAMES;
use super::TierConfig;
use crate::ids::PageId;

/// Number of steps from no pool to the largest pool.
const STEPS: usize = 48;
/// The most steps that the border moves at a time, until it first stays or turns. Each move is twice the move before.
const FIRST_STEPS: usize = 4;
/// A window has as many faults as this part of all frames, with a lower limit.
const WINDOW: usize = 16;
const WINDOW_MIN: u32 = 32;
/// As long as nothing is known, a page in the pool is taken to need this part of a frame.
const UNKNOWN_RATIO: u32 = 3;

pub(super) struct Split {
    frames_max: usize,
    target: usize,
    step: usize,
    /// The first moves, all in one direction: whether it is the pool's, and the steps of the last one.
    first: Option<(bool, usize)>,
    /// The border has stayed or turned.
    settled: bool,
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
    held: u64,
    kept: u64,
    /// Of all faults on pages that had left: their number, their prices, and the times since they left.
    returned: u64,
    prices: u64,
    times: u64,
}

impl Split {
    pub(super) fn new(config: &TierConfig, pages: usize) -> Split {
        let frames_max = config.frames_max / BIN_FRAMES * BIN_FRAMES;
        let step = (frames_max / STEPS).next_multiple_of(BIN_FRAMES).max(BIN_FRAMES);
        Split {
            frames_max,
            target: config.frames_first.min(frames_max),
            step,
            first: None,
            settled: false,
            window: ((frames_max / WINDOW) as u32).max(WINDOW_MIN),
            load_price: config.load_price.into(),
            pool_price: config.pool_price.into(),
            now: 1,
            left: vec![0; pages].into_boxed_slice(),
            faults: 0,
            spared: 0,
            held: 0,
            kept: 0,
            returned: 0,
            prices: 0,
            times: 0,
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
        let price = if from_pool { self.pool_price } else { self.load_price };
        self.returned += 1;
        self.prices += price;
        self.times += ago as u64;
        if ago <= self.step {
            self.kept += price;
        }
        let end = oldest.map_or(0, |oldest| self.ago(oldest) as usize);
        let pages = self.step * per_frame.unwrap_or(UNKNOWN_RATIO) as usize;
        let gain = self.load_price.saturating_sub(self.pool_price);
        if from_pool {
            self.held += if ago + pages > end { gain } else { 0 };
        } else if !refused {
            self.spared += if ago <= end + pages { gain } else { 0 };
        }
        self.faults += 1;
        if self.faults >= self.window {
            self.move_border();
        }
    }

    /// Moves if one side is better by an eighth. Without this margin the border would move to and fro for ever.
    fn move_border(&mut self) {
        let in_turn = (self.prices * self.returned * self.step as u64).checked_div(self.times).unwrap_or(0);
        let (more, less) = (self.spared, self.kept.max(in_turn));
        if more > less + less / 8 {
            self.step_towards(true);
        } else if less > self.held.max(more) / 8 * 9 {
            self.step_towards(false);
        } else {
            self.settled = true;
        }
        (self.faults, self.spared, self.held, self.kept) = (0, self.spared / 2, self.held / 2, self.kept / 2);
        (self.returned, self.prices, self.times) = (self.returned / 2, self.prices / 2, self.times / 2);
    }

    fn step_towards(&mut self, pool: bool) {
        self.settled |= self.first.is_some_and(|(before, _)| before != pool);
        let steps = match self.first {
            Some((_, steps)) if !self.settled => (2 * steps).min(FIRST_STEPS),
            _ => 1,
        };
        self.first = Some((pool, steps));
        let way = steps * self.step;
        self.target = if pool { (self.target + way).min(self.frames_max) } else { self.target.saturating_sub(way) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split() -> Split {
        let (frames_max, frames_first) = (480, 240);
        let config = TierConfig {
            frames_max,
            frames_first,
            page_bytes: 4096,
            size_max: 3072,
            load_price: 60,
            pool_price: 20,
            table_bytes: 0,
            dense_max: 0,
        };
        Split::new(&config, 4096)
    }

    #[test]
    fn the_first_moves_get_longer_until_the_border_turns() {
        let mut split = split();
        let step = split.step;
        [false, false, false].into_iter().for_each(|pool| split.step_towards(pool));
        assert_eq!(split.target(), 240 - (1 + 2 + 4) * step);
        [true, true, true].into_iter().for_each(|pool| split.step_towards(pool));
        assert_eq!(split.target(), 240 - (1 + 2 + 4) * step + 3 * step);
    }

    /// 480 frames: steps of 12. Pages leave in turn, and each one comes back after `ago` evictions. `end` is the time
    /// since the pool's oldest page left.
    fn target_after(ago: u32, end: u32, from_pool: bool) -> usize {
        let mut split = split();
        for i in 0..4000u32 {
            split.leaves(PageId(i % 4096));
            if i >= ago.max(end) {
                split.fault(PageId(i - ago), from_pool, false, Some(PageId(i - end)), Some(3));
            }
        }
        split.target()
    }

    #[test]
    fn the_border_moves_to_whom_the_faults_say_and_stays_where_a_step_less_would_cost_loads() {
        // Pages come back from the middle of the pool: frames would keep some of them, a smaller pool loses nothing.
        assert_eq!(target_after(300, 900, true), 0);
        // They come back from the pool's cold end: with one step less, all of them would be loads.
        assert_eq!(target_after(880, 900, true), 240);
        // They come back from the device just after they left the pool, or long after.
        assert_eq!(target_after(910, 900, false), 480);
        assert_eq!(target_after(1500, 900, false), 0);
        // They come back at once: frames would keep all of them.
        assert_eq!(target_after(5, 900, true), 0);
    }
}
