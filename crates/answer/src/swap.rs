//! The kernel's swap instead of our pager: `run --by kernel`.
//!
//! Compressed RAM is a part of the RAM that is asked about. Of N pages F have frames, and the others take a share s of
//! a page each: RAM = F + s (N - F). `run --by kernel` counts the same way (`kernel/src/budget.rs`).
//!
//! Which pages leave is simulated for a recording, with the kernel's two lists (`core/src/policy/active_inactive.rs`
//! says what that leaves out), and taken to be as with LRU for referenced bits. The time in which the kernel searches
//! its lists is not in the price of a fault.
//!
//! A page that is harder to compress takes longer, both ways. A recorder times its trials of the program's pages, and
//! `calibrate` those of its own; the difference is added to the price. lz4 is not the kernel's compressor (lzo-rle took
//! 1.0 to 1.3 times as long for six heaps), so the range has none and twice of it.
//!
//! The range of a recording has what our pager's range has (the price, the window, the sample of pages, the program's
//! own time), and how well pages compress. We do not know which pages are in swap. The mean ratio over all pages and
//! the mean ratio over all evictions differ by d; the range is the first mean ± d, and it is widened by what the
//! kernel's compressor and zram's size classes may differ from the assumed ones.

use crate::error::AnswerError;
use coldframe_core::policy::active_inactive;
use coldframe_core::Ps;
use coldframe_plan::{Pager, BATCH_MAX, FRAMES_MIN};
use coldframe_recording::span::PAGE;
use coldframe_sheet::sheet::machine::Spread;
use coldframe_store::provenance::Compression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::curve::{error, Curve, Point};
use crate::price::Seconds;
use crate::rows::Rows;
use crate::simulate::simulate_by_use;

/// What zram takes for that many compressed bytes: its classes of sizes leave room. Measured while a Go map, busybox
/// sort and a JVM swapped (`mem_used_total` to `compr_data_size` in mm_stat): 1.14 to 1.2.
const STORED: f64 = 1.17;
/// How far that may be off to either side, as a part of it: from 1.04, heaps of six programs just written to zram, to
/// 1.37, while pages of jq came and went. And lzo-rle, zram's own, made these heaps 0 to 9 % smaller than lz4.
const STORED_OPEN: f64 = 0.17;
/// The part of a page that a compressed one takes, if none could be tried: as the pages of `coldframe doctor --calibrate`.
const UNKNOWN: f64 = 1.0 / 3.0;
/// The least part of the RAM that compressed pages leave for others (`LEAST` in `kernel/src/budget.rs`).
const LEAST: f64 = 1.0 / 8.0;

/// What a page costs that comes back from the kernel's swap and pushes another one out.
#[derive(Clone, PartialEq, Debug)]
pub struct Price {
    /// A page at a random place.
    pub fault: Spread,
    /// A page of a stream.
    pub ahead: Spread,
    /// What a recorder's trial takes of the pages with which this was measured, if they are compressed.
    pub pack: Option<Ps>,
    /// The kind of swap, for people.
    pub kind: String,
    /// Whether pages that left take RAM, compressed.
    pub compressed: bool,
    /// What swap `coldframe run` has to make, since none is on.
    pub make: Option<String>,
    /// The source, for people.
    pub source: String,
}

/// How RAM is split between pages with frames and compressed ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// All pages.
    pages: f64,
    /// The part of a page that a compressed one takes.
    pub share: f64,
}

impl Split {
    /// `compressed`: the part of a page that a compressed one takes, if some were tried.
    pub fn of(price: &Price, pages: f64, compressed: Option<f64>) -> Split {
        let share = if price.compressed { (STORED * compressed.unwrap_or(UNKNOWN)).min(1.0) } else { 0.0 };
        Split { pages, share }
    }

    /// Pages that have frames with that many pages of RAM.
    pub fn frames(self, ram: f64) -> f64 {
        match ram >= self.pages {
            true => ram,
            false => ((ram - self.share * self.pages) / (1.0 - self.share).max(1e-9)).max(LEAST * ram),
        }
    }

    /// Pages of RAM with which that many have frames.
    pub fn ram(self, frames: f64) -> f64 {
        frames + self.share * (self.pages - frames).max(0.0)
    }
}

/// The run time of a recorded program by RAM with the kernel's swap.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SwapAnswer {
    /// The kind of swap.
    pub kind: String,
    /// The source of the price of a fault.
    pub source: String,
    /// The part of a page that a compressed one takes; 0 on a disk.
    pub share: f64,
    /// By RAM, largest first, at the sizes of the curve.
    pub curve: Vec<Swapped>,
}

/// A size of RAM with the kernel's swap.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Swapped {
    /// RAM in the form of `run --ram`, with compressed pages.
    pub ram_bytes: u64,
    /// Seconds of the whole run.
    pub seconds: f64,
    /// About nine in ten runs take at least this.
    pub seconds_low: f64,
    /// And at most this; `None`: the recorder's window shows only that it takes at least about `seconds`.
    pub seconds_high: Option<f64>,
    /// Pages that come back from swap.
    pub swap_ins: u64,
}

/// The best of these kinds of swap for half of the RAM; `None`: no price is known.
///
/// # Errors
/// As [`simulate_by_use`].
pub(crate) fn with_swap(
    curve: &Curve<'_>,
    points: &[Point],
    prices: &[Price],
    tried: Option<&Compression>,
) -> Result<Option<SwapAnswer>, AnswerError> {
    let (pages, rare) = (curve.needed as f64 / PAGE as f64, tried.map(Compression::share_of_pages));
    let apart = tried.map_or(0.0, |all| (all.share_of_departures() - all.share_of_pages()).abs());
    let mut answers = Vec::new();
    for price in prices {
        let split = Split::of(price, pages, rare);
        let open = if price.compressed { split.share * STORED_OPEN + STORED * apart } else { 0.0 };
        let ends = [-open, open].map(|open| Split { share: (split.share + open).clamp(0.0, 1.0), ..split });
        let longer = match (tried, price.pack) {
            (Some(all), Some(pack)) if price.compressed => all.page_seconds - pack.0 as f64 / 1e12,
            _ => 0.0,
        };
        let growth = Growth::of(curve, curve.rows, price, pages)?;
        let parts = curve.parts.iter().map(|part| Growth::of(curve, part, price, pages));
        let swap = Swap { curve, price, longer, split, ends, growth, parts: parts.collect::<Result<_, _>>()? };
        answers.push(SwapAnswer {
            kind: price.kind.clone(),
            source: price.source.clone(),
            share: split.share,
            curve: points.iter().map(|point| swap.at(point.ram_bytes)).collect(),
        });
    }
    Ok(best(answers.into_iter(), |answer| answer.at(curve.needed / 2).map_or(f64::INFINITY, |at| at.seconds)))
}

/// Levels of use, and sizes that are simulated: as parts of what is needed at most.
const LEVELS: usize = 32;
const SIZES: usize = 64;

/// How many pages have frames depends on how many there are: a program that grows has frames for all until it exceeds
/// the RAM. So the counts of each level of use are those of the frames that it leaves.
struct Growth {
    pages: f64,
    /// By size, and by level.
    counts: Vec<Vec<Counts>>,
}

impl Growth {
    fn of(curve: &Curve<'_>, rows: &Rows, price: &Price, pages: f64) -> Result<Growth, AnswerError> {
        let least = FRAMES_MIN as u64 * PAGE;
        let sizes: Vec<u64> = (1..=SIZES as u64).map(|i| (curve.needed * i / SIZES as u64).max(least)).collect();
        Ok(Growth { pages, counts: simulate_by_use(rows, &reclaim(price, curve.read_ahead()), &sizes, LEVELS)? })
    }

    /// With that many pages of RAM.
    fn counts(&self, ram: f64, split: Split) -> Counts {
        let level = |level: usize| {
            let pages = self.pages * (level as f64 + 0.5) / LEVELS as f64;
            if ram >= pages {
                return Counts::default();
            }
            let at = Split { pages, ..split }.frames(ram) / self.pages * SIZES as f64 - 1.0;
            let (below, part) = (at.max(0.0) as usize, at.max(0.0).fract());
            let of = |size: usize| self.counts[size.min(SIZES - 1)][level];
            of(below).with(&of(below + 1), |below, above| below + part * (above - below))
        };
        (0..LEVELS).map(level).sum()
    }
}

/// A kind of swap for a program.
struct Swap<'a> {
    curve: &'a Curve<'a>,
    price: &'a Price,
    /// Seconds that a page of this program takes longer.
    longer: f64,
    split: Split,
    /// If pages compress better, and worse.
    ends: [Split; 2],
    growth: Growth,
    /// Of sub-samples of the pages.
    parts: Vec<Growth>,
}

impl Swap<'_> {
    fn paging(&self, counts: &Counts) -> Seconds {
        let of = |fault: Ps, ahead: Ps, longer: f64| {
            let each = |price: Ps| (price.0 as f64 / 1e12 + longer).max(0.0);
            (counts.device_alone + counts.memory_loads) * each(fault) + counts.device_ahead * each(ahead)
        };
        let (Price { fault, ahead, .. }, longer) = (self.price, self.longer);
        Seconds {
            low: of(fault.low, ahead.low, (2.0 * longer).min(0.0)),
            mean: of(fault.mean, ahead.mean, longer),
            high: of(fault.high, ahead.high, (2.0 * longer).max(0.0)),
        }
    }

    fn at(&self, ram_bytes: u64) -> Swapped {
        let (ram, fits) = (ram_bytes as f64 / PAGE as f64, ram_bytes >= self.curve.needed);
        let frames = self.split.frames(ram) * PAGE as f64;
        let counts = |ram, split| if fits { Counts::default() } else { self.growth.counts(ram, split) };
        let mean = |ram, split| self.paging(&counts(ram, split)).mean;
        let counted = counts(ram, self.split);
        let paging = self.paging(&counted);
        let open = self.curve.open() as f64 / PAGE as f64;
        let parts: Vec<f64> = self.parts.iter().map(|part| self.paging(&part.counts(ram, self.split)).mean).collect();
        let sample = if fits { 0.0 } else { 2.0 * error(&parts) * paging.mean };
        let [better, worse] = self.ends.map(|split| mean(ram, split));
        let faster = [paging.mean - paging.low, paging.mean - mean(ram + open, self.split), paging.mean - better];
        let slower = [paging.high - paging.mean, mean(ram - open, self.split) - paging.mean, worse - paging.mean];
        let alone = self.curve.alone();
        Swapped {
            ram_bytes,
            seconds: alone + paging.mean,
            seconds_low: (alone + paging.mean - self.curve.joint(faster, sample)).max(0.0),
            seconds_high: (frames >= self.curve.covered() as f64)
                .then(|| alone + paging.mean + self.curve.joint(slower, sample)),
            swap_ins: (counted.device_reads() + counted.memory_loads).round() as u64,
        }
    }
}

/// The kernel as a pager: that many pages at a time leave its lists, and none is read ahead from RAM (`do_swap_page`).
fn reclaim(price: &Price, read_ahead: u32) -> Pager {
    let read_ahead = if price.compressed { 0 } else { read_ahead };
    Pager { policy: active_inactive::SPEC.name.into(), read_ahead, evict_batch: BATCH_MAX }
}

/// The one with the least of a number.
pub(crate) fn best<T>(all: impl Iterator<Item = T>, number: impl Fn(&T) -> f64) -> Option<T> {
    all.min_by(|a, b| number(a).total_cmp(&number(b)))
}

impl SwapAnswer {
    /// The size of the curve next to this one.
    pub fn at(&self, ram_bytes: u64) -> Option<&Swapped> {
        self.curve.iter().min_by_key(|at| at.ram_bytes.abs_diff(ram_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_pages_take_ram_and_what_is_left_has_frames() {
        let zram = |compressed| Price {
            fault: Spread::default(),
            ahead: Spread::default(),
            pack: None,
            kind: String::new(),
            compressed,
            make: None,
            source: String::new(),
        };
        let half = Split::of(&zram(true), 10_000.0, Some(0.5 / STORED));
        // 5000 of 7500 pages of RAM are frames, and the other 5000 pages take 2500.
        assert_eq!((half.frames(7500.0), half.ram(5000.0)), (5000.0, 7500.0));
        assert_eq!((half.frames(10_000.0), half.frames(4000.0)), (10_000.0, 500.0));
        let noise = Split::of(&zram(true), 10_000.0, Some(1.0));
        assert_eq!((noise.frames(8000.0), noise.ram(8000.0)), (1000.0, 10_000.0));
        assert_eq!(Split::of(&zram(false), 10_000.0, Some(1.0)).frames(8000.0), 8000.0);
    }
}
