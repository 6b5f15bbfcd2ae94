//! The second plan of an answer: the smallest RAM with which the program is fast enough.
//!
//! ```text
//!   alone ─► the predicted size by our pager and by the kernel: the faster one goes on
//!         ─► at most 5 sizes of RAM: too slow: more RAM; fast enough: less RAM; after each a short program alone again
//!         ─► the recommended size once more, and by the other pager
//! ```
//! A run that exceeds its share of the time is ended, and counts as "more than". The machine's speed drifts by some
//! percent within seconds, so runs alone lie between those in less RAM, and the median of all is the program's time.

use coldframe_live::FRAMES_MIN;
use coldframe_recording::span::PAGE;

use super::plan::{Course, Plan};
use super::rules::{is_near, REPEATS, REPEATS_NEAR, SHORT};
use super::trial::{Outcome, Trial};
use crate::predict::curve::round;
use crate::predict::measured::Measured;
use crate::predict::question::Limits;
use crate::run::runs::{Runs, Way};

/// Runs alone, if time is left for them: of a short program, and of others.
const PLAIN_RUNS: (usize, usize) = (9, 2);
/// Sizes that are run by one pager.
const SIZES: usize = 5;
/// The search ends when the next smaller size is this near.
const CLOSE: f64 = 1.0 / 16.0;
/// The next size after a good one, as a part of it.
const SMALLER: f64 = 0.7;
/// Times the limit that a run may take before it is ended: at least, and at most.
const PATIENCE: (f64, f64) = (1.2, 5.0);
/// And so many seconds, which may be a hiccup of the machine.
const HICCUP: f64 = 0.2;

/// Searches sizes of RAM. Runs alone stand in the log before it.
pub struct LessRam {
    /// Who can page the program, our pager first.
    pub ways: Vec<Way>,
    /// A size whose cost the user wants to know.
    pub given: Option<u64>,
    /// The size to begin with, and the largest one, which needs no run.
    pub sizes: (u64, u64),
    /// What is asked.
    pub limits: Limits,
    /// All runs end by then, in seconds since the question was asked.
    pub until: f64,
}

/// What the search has found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    /// The smallest good size, and the largest that was too slow.
    pub size: Measured,
    /// The longest good run, in seconds.
    pub limit: f64,
    /// Why there are no more runs, or what to know of these, one sentence each.
    pub remarks: Vec<String>,
}

impl Plan for LessRam {
    type Result = Found;

    fn decide(&self, course: &mut Course) -> Result<Found, Trial> {
        let limit = self.limits.longest(course.runs().plain().seconds);
        let mut sizes = Sizes { plan: self, course, limit, remarks: Vec::new() };
        let ram_bytes = sizes.smallest()?;
        let (limit, mut remarks) = (sizes.limit, sizes.remarks);
        let runs = course.runs();
        if runs.differs_in_numbers() {
            remarks.insert(0, "its output differs in numbers from run to run".into());
        }
        let kinds: Vec<Runs> = runs.kinds().into_iter().map(|(_, runs)| runs).collect();
        let good = kinds.iter().filter(|runs| runs.ram_bytes == ram_bytes && runs.within(limit));
        let by = good.min_by(|a, other| a.seconds.total_cmp(&other.seconds)).map(|runs| runs.by);
        let slow = kinds.iter().filter(|runs| !runs.within(limit)).filter_map(|runs| runs.ram_bytes);
        Ok(Found { size: Measured { good: ram_bytes.zip(by), too_slow_bytes: slow.max() }, limit, remarks })
    }
}

/// A search under way.
struct Sizes<'a, 'b> {
    plan: &'a LessRam,
    course: &'a mut Course<'b>,
    /// The longest good run, in seconds: the last sizes do not change it any more.
    limit: f64,
    remarks: Vec<String>,
}

impl Sizes<'_, '_> {
    /// Runs all sizes; the smallest good one.
    fn smallest(&mut self) -> Result<Option<u64>, Trial> {
        let (start, top) = (self.plan.sizes.0.min(self.plan.sizes.1), self.plan.sizes.1);
        if let (Some(ram), Some(way)) = (self.plan.given, self.plan.ways.first()) {
            self.measure(way, ram, 2.0)?;
        }
        let ways = self.faster_first(start)?;
        // The faster way is searched, the other one tried with the size that was found, or searched if there is none.
        let mut found = None;
        for way in &ways {
            match found {
                // Keep time to repeat the recommended size.
                None => found = self.search(way, start, top, 1.0)?,
                Some(ram) => _ = self.measure(way, ram, 0.0)?,
            }
        }
        Ok(found)
    }

    /// The ways, the faster one in this RAM first. Each is tried, if there are two.
    fn faster_first(&mut self, ram: u64) -> Result<Vec<Way>, Trial> {
        let mut ways = self.plan.ways.clone();
        if ways.len() < 2 {
            return Ok(ways);
        }
        for way in &self.plan.ways {
            self.measure(way, ram, 1.0)?;
        }
        let runs = self.course.runs();
        let seconds = |way: &Way| runs.paged(way, ram).map_or(f64::INFINITY, |runs| runs.seconds);
        ways.sort_by(|a, other| seconds(a).total_cmp(&seconds(other)));
        Ok(ways)
    }

    /// Finds the smallest RAM with which the program is fast enough, and measures it again. `reserve`: for how many
    /// runs of the longest good length time is kept.
    fn search(&mut self, way: &Way, start: u64, top: u64, reserve: f64) -> Result<Option<u64>, Trial> {
        let mut search = Search::new(start, top);
        for count in 0..SIZES {
            let Some(ram) = search.next_size() else { break };
            // One size is measured, whatever else has no time then.
            let reserve = if count == 0 { 0.0 } else { reserve };
            let known = self.course.runs().paged(way, ram).map(|runs| runs.within(self.limit));
            let good = if known.is_some() { known } else { self.measure(way, ram, reserve)? };
            let Some(good) = good else {
                let why = match (self.course.runs().signal(), self.left() < (1.0 + reserve) * self.limit) {
                    (true, _) => "a signal came",
                    (false, true) => "no time was left",
                    (false, false) => "that run could not be started",
                };
                self.note(format!("further sizes of RAM were not run: {why}"));
                break;
            };
            self.run_alone_again(reserve)?;
            search.note(ram, good);
        }
        // The search prefers sizes whose run happened to be fast.
        while let Some(ram) = search.good {
            if self.confirm(way, ram)? {
                break;
            }
            search.good = self.next_larger(way, ram);
        }
        Ok(search.good)
    }

    fn note(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Seconds until all runs must have ended.
    fn left(&self) -> f64 {
        (self.plan.until - self.course.now()).max(0.0)
    }

    /// Runs the program in this RAM; whether that was fast enough. `None`: no time is left, or it cannot be run so.
    fn measure(&mut self, way: &Way, ram: u64, reserve: f64) -> Result<Option<bool>, Trial> {
        for _ in 0..REPEATS {
            if !self.run(way, ram, reserve)? {
                break;
            }
            let runs = self.course.runs().paged(way, ram).unwrap_or_default();
            if runs.failed.is_some() || runs.more || !is_near(&runs, self.limit) || runs.seconds >= SHORT {
                break;
            }
        }
        Ok(self.course.runs().paged(way, ram).map(|runs| runs.within(self.limit)))
    }

    /// Measures a good size again: a short program's three times in all, and near the limit five times. Whether it is
    /// still good.
    fn confirm(&mut self, way: &Way, ram: u64) -> Result<bool, Trial> {
        loop {
            let runs = self.course.runs().paged(way, ram).unwrap_or_default();
            let wanted = match (runs.seconds < SHORT, is_near(&runs, self.limit)) {
                (true, true) => REPEATS_NEAR,
                (true, false) => REPEATS,
                (false, _) => 2,
            };
            if runs.runs.len() >= wanted || runs.failed.is_some() || !self.run(way, ram, 0.0)? {
                return Ok(runs.within(self.limit));
            }
        }
    }

    /// The next larger size that was good.
    fn next_larger(&self, way: &Way, ram: u64) -> Option<u64> {
        let kinds = self.course.runs().kinds();
        let good = kinds.iter().filter(|(known, runs)| known == way && runs.within(self.limit));
        good.filter_map(|(_, runs)| runs.ram_bytes).filter(|other| *other > ram).min()
    }

    /// The program alone once more, if time is left.
    fn run_alone_again(&mut self, reserve: f64) -> Result<(), Trial> {
        let plain = self.course.runs().plain();
        let wanted = if plain.seconds < SHORT { PLAIN_RUNS.0 } else { PLAIN_RUNS.1 };
        let left = self.left();
        if reserve > 0.0 && plain.runs.len() < wanted && left >= (2.0 + reserve) * self.limit {
            self.course.run(Trial::plain(Some(left)))?;
            self.limit = self.plan.limits.longest(self.course.runs().plain().seconds);
        }
        Ok(())
    }

    /// One more run; whether there was time for it, it could be run so, and no signal came.
    fn run(&mut self, way: &Way, ram: u64, reserve: f64) -> Result<bool, Trial> {
        let left = self.left() - reserve * self.limit;
        if left < self.limit || self.course.runs().signal() {
            return Ok(false);
        }
        let share = (left / SIZES as f64).min(PATIENCE.1 * self.limit).max(PATIENCE.0 * self.limit + HICCUP).min(left);
        Ok(matches!(self.course.run(Trial::paged(way, ram, share))?, Outcome::Ran(_)))
    }
}

/// The search for the smallest good size.
#[derive(Clone, Copy, Debug)]
struct Search {
    start: u64,
    top: u64,
    /// The largest size that was too slow.
    bad: Option<u64>,
    /// The smallest size that was good, and larger than that.
    good: Option<u64>,
}

impl Search {
    fn new(start: u64, top: u64) -> Search {
        let floor = FRAMES_MIN as u64 * PAGE;
        Search { start: start.min(top).max(floor), top: top.max(floor), bad: None, good: None }
    }

    fn note(&mut self, ram: u64, good: bool) {
        match good {
            true => self.good = Some(self.good.map_or(ram, |best| best.min(ram))),
            false => self.bad = Some(self.bad.map_or(ram, |worst| worst.max(ram))),
        }
    }

    /// The next size; `None`: it is found, or there is none.
    fn next_size(&self) -> Option<u64> {
        let floor = FRAMES_MIN as u64 * PAGE;
        let close = |good: u64, bad: u64| (good - bad) as f64 <= CLOSE * good as f64;
        let next = match (self.bad, self.good) {
            (None, None) => self.start,
            // All of its RAM needs no run: that is what is recommended if no smaller size is good.
            (Some(bad), None) if bad >= self.top || close(self.top, bad) => return None,
            (Some(bad), None) => ((bad as f64) * (self.top as f64)).sqrt() as u64,
            (None, Some(good)) => (good as f64 * SMALLER) as u64,
            (Some(bad), Some(good)) => ((bad as f64) * (good as f64)).sqrt() as u64,
        };
        let next = round(next as f64).max(floor);
        let open = self.good.is_none_or(|good| next < good) && self.bad.is_none_or(|bad| next > bad);
        let found = self.good.zip(self.bad).is_some_and(|(good, bad)| good <= bad || close(good, bad));
        (open && !found).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that are run, in MiB, if those from `good_from` MiB on are good, and the result.
    fn searched(start: u64, top: u64, good_from: u64) -> (Vec<u64>, Option<u64>) {
        let (mut search, mut sizes) = (Search::new(start << 20, top << 20), Vec::new());
        for _ in 0..SIZES {
            let Some(ram) = search.next_size() else { break };
            sizes.push(ram >> 20);
            search.note(ram, ram >= good_from << 20);
        }
        (sizes, search.good.map(|good| good >> 20))
    }

    #[test]
    fn the_search_begins_at_the_curves_size_and_ends_near_the_smallest_good_one() {
        assert_eq!(searched(40, 100, 39), (vec![40, 28, 33, 36, 38], Some(40)));
        assert_eq!(searched(40, 100, 70), (vec![40, 63, 79, 71, 67], Some(71)));
        assert_eq!(searched(40, 100, 10).0, [40, 28, 19, 13, 9]);
    }

    #[test]
    fn all_ram_is_never_run() {
        assert_eq!(searched(40, 100, 200), (vec![40, 63, 79, 89, 94], None));
        assert_eq!(searched(95, 100, 200), (vec![95], None));
    }
}
