//! The kernel's swap instead of our pager: `run --by kernel`, where it cannot be run.
//!
//! Compressed RAM is a part of the RAM that is asked about. Of N pages F have frames, and the others take a share s of
//! a page each: RAM = F + s (N - F). `run --by kernel` counts the same way (`kernel/src/limit_watch/budget.rs`).
//!
//! The pages that leave are taken to be those of our pager for a recording, and those of LRU for referenced bits. The
//! time in which the kernel searches its lists is not in the price of a fault. How well the pages of a recorded program
//! compress is not known: the range of a recording has that, the price, and what our pager's range has.

use coldframe_core::Ps;
use coldframe_recording::span::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::prices::Price;
use crate::predict::counts::Counts;
use crate::predict::curve::{Curve, Point};

/// The part of a page that a compressed one takes, if none could be tried: a third, as the pages of `coldframe doctor
/// --calibrate`, and what zram's classes of sizes add. Measured while a Go map, busybox sort and a JVM swapped
/// (`mem_used_total` to `compr_data_size` in mm_stat): 1.14 to 1.2.
const UNKNOWN: f64 = 1.17 / 3.0;
/// Then it may be so many times as much, or as little: heaps of ten programs took 0.1 to 0.7 of their size.
const UNKNOWN_OPEN: f64 = 2.0;
/// The least part of the RAM that compressed pages leave for others (`SHARE_MIN` in
/// `kernel/src/limit_watch/budget.rs`).
const LEAST: f64 = 1.0 / 8.0;

/// How RAM is split between pages with frames and compressed ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// All pages.
    pages: f64,
    /// The part of a page that a compressed one takes.
    pub share: f64,
}

impl Split {
    /// `compressed`: the part of a page that a compressed one takes in zram's classes of sizes, if some were tried.
    pub fn of(price: &Price, pages: f64, compressed: Option<f64>) -> Split {
        let share = if price.compressed { compressed.unwrap_or(UNKNOWN).min(1.0) } else { 0.0 };
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
pub(crate) fn with_swap(curve: &Curve<'_>, points: &[Point], prices: &[Price]) -> Option<SwapAnswer> {
    let of = |price: &Price| {
        let split = Split::of(price, curve.needed as f64 / PAGE as f64, None);
        SwapAnswer {
            kind: price.kind.clone(),
            source: price.source.clone(),
            share: split.share,
            curve: points.iter().map(|point| swapped(curve, price, split, point.ram_bytes)).collect(),
        }
    };
    best(prices.iter().map(of), |answer| answer.at(curve.needed / 2).map_or(f64::INFINITY, |at| at.seconds))
}

fn swapped(curve: &Curve<'_>, price: &Price, split: Split, ram_bytes: u64) -> Swapped {
    let frames = |ram: u64, share: f64| Split { share, ..split }.frames(ram as f64 / PAGE as f64) * PAGE as f64;
    let counts = |ram: u64, share: f64| match ram >= curve.needed {
        true => Counts::default(),
        false => curve.counts_at(frames(ram, share) as u64),
    };
    let paging = |counts: &Counts, fault: Ps, ahead: Ps| {
        // What compressed RAM gives back comes alone.
        let alone =
            counts.device_alone + counts.memory_loads + if price.compressed { counts.device_ahead } else { 0.0 };
        let ahead = if price.compressed { 0.0 } else { counts.device_ahead * ahead.0 as f64 };
        (alone * fault.0 as f64 + ahead) / 1e12
    };
    let (Price { fault, ahead, .. }, open) = (price, if ram_bytes >= curve.needed { 0 } else { curve.open() });
    let counted = counts(ram_bytes, split.share);
    let mean = paging(&counted, fault.mean, ahead.mean);
    let best = counts(ram_bytes + open, split.share / UNKNOWN_OPEN);
    let worst = counts(ram_bytes.saturating_sub(open), (split.share * UNKNOWN_OPEN).min(1.0));
    let (low, high) = (paging(&best, fault.low, ahead.low), paging(&worst, fault.high, ahead.high));
    let alone = curve.alone();
    let known = frames(ram_bytes, split.share) >= curve.covered() as f64;
    Swapped {
        ram_bytes,
        seconds: alone + mean,
        seconds_low: (alone + mean - curve.joint([mean - low], 0.0)).max(0.0),
        seconds_high: known.then(|| alone + mean + curve.joint([high - mean], 0.0)),
        swap_ins: (counted.device_reads() + counted.memory_loads).round() as u64,
    }
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
    use coldframe_sheet::sheet::machine::Spread;

    use super::*;

    #[test]
    fn compressed_pages_take_ram_and_what_is_left_has_frames() {
        let zram = |compressed| Price {
            fault: Spread::default(),
            ahead: Spread::default(),
            kind: String::new(),
            compressed,
            make: None,
            source: String::new(),
        };
        let half = Split::of(&zram(true), 10_000.0, Some(0.5));
        // 5000 of 7500 pages of RAM are frames, and the other 5000 pages take 2500.
        assert_eq!((half.frames(7500.0), half.ram(5000.0)), (5000.0, 7500.0));
        assert_eq!((half.frames(10_000.0), half.frames(4000.0)), (10_000.0, 500.0));
        let noise = Split::of(&zram(true), 10_000.0, Some(1.0));
        assert_eq!((noise.frames(8000.0), noise.ram(8000.0)), (1000.0, 10_000.0));
        assert_eq!(Split::of(&zram(false), 10_000.0, Some(1.0)).frames(8000.0), 8000.0);
    }
}
