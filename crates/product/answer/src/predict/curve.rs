//! The curve: run time by RAM, where it thrashes, and the size to recommend.

use coldframe_recording::plan::FRAMES_MIN;
use coldframe_recording::span::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::AnswerError;
use crate::predict::counts::Counts;
use crate::predict::price::Seconds;
use crate::predict::question::Question;
use crate::predict::rows::Rows;
use crate::predict::simulate::simulate;

/// Steps of a halving of RAM: a ratio of 2^(1/3) between sizes shows where a curve bends.
const STEPS: i32 = 3;
/// Halvings: down to a sixteenth, where hardly any program is usable.
const HALVINGS: i32 = 4;
/// Sizes that are tried between two neighbours for a finer answer.
const FINER: u64 = 6;
/// The least number of sizes of a curve. A program that needs hardly more than a pager's least RAM gets some sizes
/// above its need.
const POINTS: usize = 5;
/// A run that takes this many times as long as with all its RAM thrashes.
pub const THRASHES: f64 = 2.0;
/// Sub-samples for the error of a sample; each keeps enough pages.
const PARTS: u64 = 4;

/// The prediction for a size of RAM.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// RAM in the form of `run --ram`: for paged memory.
    pub ram_bytes: u64,
    /// What all processes then have in RAM at one time, if each has that RAM.
    #[serde(default)]
    pub together_bytes: u64,
    /// Seconds of the whole run.
    pub seconds: f64,
    /// About nine in ten runs take at least this: with the best costs, and within what window, sample and recording
    /// leave open.
    pub seconds_low: f64,
    /// And at most this. `None`: for so little RAM, the recorder's window shows only that the run takes at least
    /// about `seconds`.
    pub seconds_high: Option<f64>,
    /// Faults on pages that had to be brought into RAM.
    pub true_faults: u64,
    /// Of those, pages without bytes: filled with zeros.
    pub zero_fills: u64,
    /// Pages from the device, including those read ahead.
    pub device_reads: u64,
    /// Of those, pages of sequential streams.
    pub read_ahead: u64,
    /// Pages that are needed again before they were written to the device.
    pub memory_loads: u64,
    /// Touches of pages in RAM that were not mapped.
    pub false_faults: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Of those, pages that had been written.
    pub dirty_evictions: u64,
}

impl Point {
    /// The longest run; infinite if it is not known.
    pub fn worst(&self) -> f64 {
        self.seconds_high.unwrap_or(f64::INFINITY)
    }
}

/// How far the recording window may shift the curve, as a fraction of the window: one part in so many.
/// `store/src/window.rs` proves the worst case. Measured (2026-11-22) against recordings through a window of 256 pages:
/// the curve of one Python program through 600 pages was shifted by at most 0.14 of its window, that of m.py through
/// 1,200 by 0.28.
const OPEN: u64 = 4;
/// The uncertainty of the time that a recording took from the program, as a part of it: what faults cost besides their
/// handlers is known from few programs, and waits may overlap.
const TAKEN: f64 = 1.0 / 3.0;

/// A size that was simulated.
#[derive(Clone, Copy, Debug)]
struct Tried {
    ram: u64,
    counts: Counts,
    /// Standard error of the paging time, as a part of it.
    error: f64,
}

/// All sizes, largest first.
pub struct Curve<'a> {
    pub(crate) rows: &'a Rows,
    question: &'a Question,
    parts: Vec<Rows>,
    tried: Vec<Tried>,
    /// RAM with which no page is evicted.
    pub needed: u64,
}

impl<'a> Curve<'a> {
    /// Simulates the sizes from the program's need down to a sixteenth of it, then finer sizes where it matters.
    pub fn find(rows: &'a Rows, question: &'a Question) -> Result<Curve<'a>, AnswerError> {
        let needed = round_up(question.pager.ram_for(rows.peak()).0);
        let sampled = rows.sample < 1.0;
        let parts = if sampled { (0..PARTS).map(|i| rows.part(i, PARTS)).collect() } else { Vec::new() };
        let mut curve = Curve { rows, question, parts, tried: Vec::new(), needed };
        let sizes = (0..=STEPS * HALVINGS)
            .map(|i| round(needed as f64 * 0.5f64.powf(f64::from(i) / f64::from(STEPS))))
            .collect();
        curve.add(sizes)?;
        let limit = curve.limit();
        let mut finer = curve.between(|point| point.worst() <= limit);
        let livable = curve.livable();
        finer.extend(curve.between(|point| point.seconds <= livable));
        curve.add(finer)?;
        curve.add(question.limits.ram.into_iter().collect())?;
        let more = POINTS.saturating_sub(curve.tried.len());
        curve.add((1..=more as u64).map(|i| round_up(needed + i * needed / POINTS as u64)).collect())?;
        Ok(curve)
    }

    /// A run longer than this thrashes.
    pub fn livable(&self) -> f64 {
        THRASHES * self.points().first().map_or(self.alone(), |full| full.seconds)
    }

    fn add(&mut self, mut sizes: Vec<u64>) -> Result<(), AnswerError> {
        sizes.iter_mut().for_each(|ram| *ram = (*ram).max(FRAMES_MIN as u64 * PAGE));
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|ram| self.tried.iter().all(|tried| tried.ram != *ram));
        let pager = &self.question.pager;
        let counts = simulate(self.rows, pager, &sizes)?;
        let mut parts = Vec::new();
        for part in &self.parts {
            parts.push(simulate(part, pager, &sizes)?);
        }
        for (i, ram) in sizes.into_iter().enumerate() {
            let of_parts: Vec<f64> = parts.iter().map(|part| self.paging(&part[i]).mean).collect();
            let (counts, error) = match ram >= self.needed {
                true => (self.nothing_leaves(), 0.0),
                false => (self.with_kernel_fills(ram, counts[i]), error(&of_parts)),
            };
            self.tried.push(Tried { ram, counts, error });
        }
        self.tried.sort_by_key(|tried| std::cmp::Reverse(tried.ram));
        Ok(())
    }

    /// With all the RAM that it needs, a program has the faults that the recorder counted, with any sampling.
    fn nothing_leaves(&self) -> Counts {
        let fills = self.native_fills();
        self.with_kernel_fills(self.needed, Counts { true_faults: fills, zero_fills: fills, ..Counts::default() })
    }

    /// A program that asks for memory as it needs it first touches as many pages as fit before its memory is watched.
    /// That does not hold for one that forks.
    fn with_kernel_fills(&self, ram: u64, counts: Counts) -> Counts {
        let kernel_fills = if self.rows.processes.len() > 1 { 0 } else { ram / PAGE };
        Counts { kernel_fills: counts.zero_fills.min(self.native_fills()).min(kernel_fills as f64), ..counts }
    }

    fn native_fills(&self) -> f64 {
        match self.rows.facts.zero_fills {
            0 => self.rows.processes.iter().map(|p| p.pages.len() as f64).sum::<f64>() / self.rows.sample,
            fills => fills as f64,
        }
    }

    pub(crate) fn paging(&self, counts: &Counts) -> Seconds {
        self.question.costs.paging(counts, self.native_fills())
    }

    /// The least RAM for which the window gives a result: a window and its uncertainty; or all that the program needs.
    pub fn covered(&self) -> u64 {
        ((self.rows.window + self.rows.window / OPEN) * PAGE).min(self.needed)
    }

    /// The size to recommend: the smallest that is good at its worst, or else that in which nothing is paged.
    pub fn recommended(&self) -> Option<u64> {
        let limit = self.limit();
        let all = || self.points().first().copied().filter(|full| full.seconds <= limit);
        self.smallest(|point| point.worst() <= limit).or_else(all).map(|point| point.ram_bytes)
    }

    /// The program's own time.
    pub(crate) fn alone(&self) -> f64 {
        self.rows.facts.seconds
    }

    /// The longest run that was asked for. The bad end of a run is compared with the bad end of the program alone.
    pub fn limit(&self) -> f64 {
        self.question.limits.longest(self.alone() + self.own_doubt())
    }

    /// Sizes between the smallest good one, above which all are good, and the next smaller one.
    fn between(&self, good: impl Fn(&Point) -> bool) -> Vec<u64> {
        let points = self.points();
        let last = points.iter().take_while(|point| good(point)).count();
        let (Some(above), Some(below)) = (last.checked_sub(1).map(|i| points[i]), points.get(last)) else {
            return Vec::new();
        };
        let step = (above.ram_bytes - below.ram_bytes) / (FINER + 1);
        (1..=FINER).map(|i| round((below.ram_bytes + i * step) as f64)).collect()
    }

    /// The smallest size that is good, and above which all are good.
    pub fn smallest(&self, good: impl Fn(&Point) -> bool) -> Option<Point> {
        self.points().into_iter().take_while(|point| good(point)).last()
    }

    /// The curve, largest size first.
    pub fn points(&self) -> Vec<Point> {
        let mut all: Vec<Point> = self.tried.iter().map(|tried| self.point(tried)).collect();
        // A program with less RAM is not faster than with all that it needs.
        let least = all.first().map_or(0.0, |point| point.seconds_low);
        all.iter_mut().for_each(|point| point.seconds_low = point.seconds_low.max(least.min(point.seconds)));
        all
    }

    fn point(&self, tried: &Tried) -> Point {
        let Seconds { mean, .. } = self.paging(&tried.counts);
        let (faster, slower) = self.doubts(tried);
        let count = |n: f64| n.round() as u64;
        let counts = &tried.counts;
        Point {
            ram_bytes: tried.ram,
            together_bytes: self.rows.together(tried.ram, 0),
            seconds: self.alone() + mean,
            seconds_low: (self.alone() + mean - faster).max(0.0),
            seconds_high: (tried.ram >= self.covered()).then_some(self.alone() + mean + slower),
            true_faults: count(counts.true_faults),
            zero_fills: count(counts.zero_fills),
            device_reads: count(counts.device_reads()),
            read_ahead: count(counts.device_ahead),
            memory_loads: count(counts.memory_loads),
            false_faults: count(counts.false_faults),
            evictions: count(counts.evictions()),
            dirty_evictions: count(counts.dirty()),
        }
    }

    /// The lower and the upper uncertainty of a run. Their causes are independent, so the squares add up.
    fn doubts(&self, tried: &Tried) -> (f64, f64) {
        let open = if tried.ram >= self.needed { 0 } else { self.open() };
        let paging = |ram| self.paging(&self.counts_at(ram)).mean;
        let Seconds { low, mean, high } = self.paging(&tried.counts);
        let sample = 2.0 * tried.error * mean.abs();
        let faster = [mean - low, mean - paging(tried.ram + open)];
        let slower = [high - mean, paging(tried.ram.saturating_sub(open)) - mean];
        (self.joint(faster, sample), self.joint(slower, sample))
    }

    /// All uncertainty from these causes, the sample and the program's own time.
    pub(crate) fn joint<const N: usize>(&self, causes: [f64; N], sample: f64) -> f64 {
        let all = causes.into_iter().chain([sample, self.own_doubt()]);
        all.map(|doubt| doubt.max(0.0).powi(2)).sum::<f64>().sqrt()
    }

    /// Bytes of RAM by which the window may shift the curve.
    pub(crate) fn open(&self) -> u64 {
        self.rows.window * PAGE / OPEN
    }

    /// The uncertainty of the program's own time.
    fn own_doubt(&self) -> f64 {
        let derived = if self.rows.ran_alone { 0.0 } else { TAKEN };
        derived * (self.rows.facts.recorded_seconds - self.alone()).clamp(0.0, self.alone())
    }

    /// Counts at a size between two that were tried, by linear interpolation.
    pub(crate) fn counts_at(&self, ram: u64) -> Counts {
        let above = self.tried.iter().rfind(|tried| tried.ram >= ram);
        let below = self.tried.iter().find(|tried| tried.ram <= ram);
        match (above, below) {
            (Some(a), Some(b)) if a.ram > b.ram => {
                let part = (ram - b.ram) as f64 / (a.ram - b.ram) as f64;
                a.counts.with(&b.counts, |above, below| below + part * (above - below))
            }
            (Some(one), _) | (None, Some(one)) => one.counts,
            (None, None) => Counts::default(),
        }
    }

    /// The largest standard error of a sample, as a part of the paging time.
    pub fn error_max(&self) -> f64 {
        self.tried.iter().map(|tried| tried.error).fold(0.0, f64::max)
    }
}

/// The standard error of the mean of these, as a part of it.
fn error(times: &[f64]) -> f64 {
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if times.len() > 1 && mean > 0.0 {
        (variance / n).sqrt() / mean
    } else {
        0.0
    }
}

/// A size for people: to about one part in 64, from 4 MiB on in quarters of a MiB, and from 2 MiB on in eighths.
fn step(bytes: f64) -> u64 {
    let step = (bytes / 64.0).max(PAGE as f64) as u64;
    let least = match (bytes / f64::from(1 << 20)) as u64 {
        0..2 => PAGE,
        2..4 => 1 << 17,
        4.. => 1 << 18,
    };
    least.max(1 << step.ilog2())
}

/// A size for people, the nearest one.
pub(crate) fn round(bytes: f64) -> u64 {
    let step = step(bytes);
    ((bytes / step as f64).round() as u64 * step).max(PAGE)
}

pub(crate) fn round_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(step(bytes as f64))
}

/// A limit that people can write down: MiB from 16 MiB on, else quarters of one, rounded up.
pub fn round_limit(bytes: u64) -> u64 {
    let unit = if bytes >= 16 << 20 { 1 << 20 } else { 256 << 10 };
    bytes.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_round_and_what_is_needed_is_not_rounded_away() {
        assert_eq!(round((73 << 20) as f64 + 5.0), 73 << 20);
        assert_eq!(round_up((72 << 20) + 1), 73 << 20);
        assert_eq!(round(300_000.0), 73 * PAGE);
        // 13.7 MiB as 13.75, and 3.9 MiB as 3.875.
        assert_eq!(round((4_000 << 10) as f64), 3_968 << 10);
        assert_eq!(round((14_004 << 10) as f64), 14_080 << 10);
    }
}
