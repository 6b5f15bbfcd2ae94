//! How many frames the pool may have.
//!
//! A frame given to the pool makes room for some more pages at the pool's cold end, and costs the frames one page at
//! theirs. What a fault has to do tells what each border would have meant for it:
//!
//! ```text
//!   evictions ago   0 .......... n steps .......... reach of a smaller pool ...... age of the oldest ...... n reaches
//!   a fault         `kept` by n steps  │  from the pool  │  `lost` by a smaller   │  `spared` by n steps   │
//!                   of frames more     │                 │  pool: from the device │  of pool more          │
//! ```
//! So three sums of prices are kept over a window of faults, for each number of steps up to [`STEPS`]: the best border
//! is known even if it lies far away, past borders that are worse than today's. The border moves towards it.
//!
//! The first way to count for the frames is that of LRU: only a page that left within these steps would have stayed. A
//! policy that knows better than LRU, or a program that goes round in a loop, gains from each frame, however long ago
//! pages left: if all pages outside RAM come back in turn, one of `n` stays for each frame more, and `n` is the mean of
//! the times since they left. The larger of the two sums counts, and half of it ([`OVERSTATED`]).
//!
//! The time since a page left is the number of evictions since then, so no clock is needed. The sums are halved after
//! each window, so old counts fade.

use alloc::boxed::Box;
use alloc::vec;

use super::pool::{BIN_FRAMES, UNKNOWN_RATIO};
use super::TierConfig;
use crate::ids::PageId;

/// Number of steps from no pool to the largest pool. A guess: a step is 2 % of the largest pool.
const STEPS: usize = 48;
/// The border moves this part of the way to the best one. A guess, as are the next three.
const WAY: usize = 4;
/// The average over pages that leave the pool is over this many.
const EXITS: usize = 16;
/// A window has as many faults as this part of all frames, with a lower limit.
const WINDOW: usize = 8;
const WINDOW_MIN: u32 = 32;

/// The sums say this many times what more frames save: where real programs got twice the frames, their faults fell by
/// about half of what the sums say.
const OVERSTATED: i64 = 2;

/// What a border costs, with a margin that another one must exceed. A guess: an eighth. With no margin, the border would
/// move to and fro for ever.
fn with_margin(cost: i64) -> i64 {
    cost / 8 * 9
}

/// Prices of faults that this number of steps more would have changed, and one step less would not.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// More frames: the page had not left.
    kept: i64,
    /// More frames: loads from the pool that had become loads from the device.
    lost: i64,
    /// A larger pool: loads from the device that had become loads from the pool.
    spared: i64,
}

/// Where the page of a fault comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The pool, in which the page has been since it left.
    Pool,
    /// The pool, with a page that was loaded.
    Beside,
    /// The device.
    Device,
    /// The device. The page does not compress.
    Refused,
}

/// The pool at a fault.
#[derive(Clone, Copy)]
pub(super) struct PoolNow {
    /// The page that has been in the pool longest.
    pub(super) oldest: Option<PageId>,
    /// Frames of the pool, and as many of them as its pages fill.
    pub(super) frames: usize,
    pub(super) filled: usize,
}

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
    /// The time since pages left that leave the pool now, on average; or since the pool's oldest page left, if none
    /// leave.
    end: usize,
    /// Pages that left the pool in this window and the window before.
    exits: u32,
    /// Evictions that a step of the pool reaches back, as last known.
    reach: usize,
    /// By number of steps, from 1.
    sums: [Sums; STEPS],
    /// Of more steps.
    beyond: Sums,
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
            window: ((frames_max / WINDOW) as u32).max(WINDOW_MIN),
            load_price: config.load_price.into(),
            pool_price: config.pool_price.into(),
            now: 1,
            left: vec![0; pages].into_boxed_slice(),
            faults: 0,
            end: 0,
            exits: 0,
            reach: UNKNOWN_RATIO * step,
            sums: [Sums::default(); STEPS],
            beyond: Sums::default(),
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

    /// A page leaves the pool for want of room.
    pub(super) fn exits(&mut self, page: PageId) {
        let ago = self.ago(page) as usize;
        self.exits += 1;
        self.end = if self.exits == 1 { ago } else { (self.end * (EXITS - 1) + ago) / EXITS };
    }

    /// A fault on a page that left before.
    pub(super) fn fault(&mut self, page: PageId, from: Origin, pool: PoolNow) {
        if self.left[page.index()] == 0 {
            return;
        }
        let ago = self.ago(page) as usize;
        let loads = matches!(from, Origin::Device | Origin::Refused);
        let price = if loads { self.load_price } else { self.pool_price };
        self.returned += 1;
        self.prices += price;
        self.times += ago as u64;
        let near = ago.div_ceil(self.step);
        self.at(near).kept += price as i64 / OVERSTATED;
        let end = self.reaches(pool);
        // A step that the frames lose reaches back by itself.
        let reach = self.reach.saturating_sub(self.step).max(1);
        let gain = self.load_price.saturating_sub(self.pool_price) as i64;
        let far = end.abs_diff(ago).div_ceil(reach);
        // The smallest pool is large enough for a page that comes along.
        let far = if from == Origin::Beside { self.target.div_ceil(self.step) } else { far };
        match from {
            Origin::Pool | Origin::Beside if far < near => {
                self.at(far).lost += gain;
                self.at(near).lost -= gain;
            }
            Origin::Device => self.at(if ago > end { far } else { 1 }).spared += gain,
            _ => {}
        }
        self.faults += 1;
        if self.faults >= self.window {
            self.move_border();
        }
    }

    /// How many evictions the pool reaches back. A pool that no page leaves still fills: it will reach as far as its
    /// target allows.
    fn reaches(&mut self, PoolNow { oldest, frames, filled }: PoolNow) -> usize {
        let fills = self.exits == 0;
        if let (true, Some(oldest)) = (fills, oldest) {
            self.end = self.ago(oldest) as usize;
        }
        let frames = if fills { filled } else { frames };
        if frames == 0 {
            return 0;
        }
        if self.end > 0 {
            self.reach = self.step * self.end / frames;
        }
        if fills {
            self.end.max(self.reach * self.target / self.step)
        } else {
            self.end
        }
    }

    /// The sums of this number of steps. What lies beyond the last number counts for nothing: `beyond` is its place.
    fn at(&mut self, steps: usize) -> &mut Sums {
        self.sums.get_mut(steps.max(1) - 1).unwrap_or(&mut self.beyond)
    }

    /// Moves towards the best border, if it is better than today's by the margin.
    fn move_border(&mut self) {
        let in_turn = (self.prices * self.returned * self.step as u64).checked_div(self.times).unwrap_or(0) as i64;
        let step_of_frames = self.sums[0].kept.max(in_turn.min(self.prices as i64) / OVERSTATED);
        let to_frames = self.target.div_ceil(self.step);
        // How much frames are worth is known from faults only on pages that have left: so half of the way at most.
        let to_pool = (self.frames_max - self.target).div_ceil(2 * self.step);
        let (mut best, mut way) = (0, (true, 0));
        let mut all = Sums::default();
        for (sums, n) in self.sums.iter().zip(1..) {
            all = Sums { kept: all.kept + sums.kept, lost: all.lost + sums.lost, spared: all.spared + sums.spared };
            let frames =
                all.kept.max((in_turn * n as i64).min(self.prices as i64) / OVERSTATED) - with_margin(all.lost);
            if n <= to_frames && frames > best {
                (best, way) = (frames, (false, n));
            }
            let pool = all.spared - with_margin(step_of_frames * n as i64);
            if n <= to_pool && pool > best {
                (best, way) = (pool, (true, n));
            }
        }
        let (pool, steps) = way;
        let frames = steps.div_ceil(WAY) * self.step;
        self.target =
            if pool { (self.target + frames).min(self.frames_max) } else { self.target.saturating_sub(frames) };
        // A pool that has grown fills before a page leaves it.
        (self.faults, self.exits) = (0, if pool && steps > 0 { 0 } else { self.exits / 2 });
        for sums in &mut self.sums {
            *sums = Sums { kept: sums.kept / 2, lost: sums.lost / 2, spared: sums.spared / 2 };
        }
        (self.returned, self.prices, self.times) = (self.returned / 2, self.prices / 2, self.times / 2);
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
        };
        Split::new(&config, 4096)
    }

    /// 480 frames: steps of 12. Pages leave in turn, and each one comes back after `ago` evictions. `end` is the time
    /// since the pool's oldest page left.
    fn target_after(ago: u32, end: u32, from: Origin) -> usize {
        let mut split = split();
        for i in 0..4000u32 {
            split.leaves(PageId(i % 4096));
            if i >= ago.max(end) {
                let frames = end as usize / 3;
                let pool = PoolNow { oldest: Some(PageId(i - end)), frames, filled: frames };
                split.fault(PageId(i - ago), from, pool);
            }
        }
        split.target()
    }

    #[test]
    fn the_border_moves_to_whom_the_faults_say_and_stays_where_a_step_less_would_cost_loads() {
        // Pages come back from the middle of the pool: frames would keep some of them, a smaller pool loses nothing.
        assert_eq!(target_after(300, 900, Origin::Pool), 0);
        // They come back from the pool's cold end: with one step less, all of them would be loads.
        assert_eq!(target_after(880, 900, Origin::Pool), 240);
        // They came along with a page that was loaded: the smallest pool keeps them.
        assert_eq!(target_after(880, 900, Origin::Beside), 12);
        // They come back from the device just after they left the pool, or long after.
        assert!(target_after(910, 900, Origin::Device) > 440);
        assert_eq!(target_after(1500, 900, Origin::Device), 0);
        // They come back at once: frames would keep all of them.
        assert_eq!(target_after(5, 900, Origin::Pool), 0);
    }
}
