//! The plan of an answer in a memory group: the least limit with which the program is fast enough, and the least with
//! which it lives; both without swap, as in a container. Then what swap, our pager and files in RAM change.
//!
//! ```text
//!   alone, files cold ─► sizes as likely too small as too large ([`Threshold`]) ─► the likeliest one several times
//!     ─► a given size ─► less with swap ─► the least that lives ─► files in RAM already ─► our pager
//! ```
//! The group's peak is the largest size. A program that is killed ends soon, so a search costs few run times. What
//! comes later has less claim to the time that is left.

use std::path::PathBuf;
use std::rc::Rc;

use self::threshold::Threshold;
use crate::bench::evidence::{Clock, Evidence, Judgement};
use crate::bench::log::RunLog;
use crate::bench::plan::{Course, Plan};
use crate::bench::rules::{DELAYED, REPEATS, REPEATS_NEAR, SHORT};
use crate::bench::trial::{Outcome, Trial};
use crate::listener::Listener;
use crate::predict::curve::round_limit;
use crate::predict::question::Limits;
use crate::run::looks::group::GroupUse;
use crate::run::runs::{By, Runs, Way};
use crate::run::runtime::Runtime;

#[cfg(test)]
mod tests;
pub mod threshold;

/// Runs of the search at most.
const RUNS: usize = 30;
/// How likely an end of an interval is on its side of the least fast size, before the search ends. Fitted on a fake
/// machine with noise (`tests.rs`).
const LIKELY: f64 = 0.85;
/// Every second run asks about a size that is good with this probability: the one at a half, asked alone, is never told
/// from those below it.
const BELOW: f64 = 0.3;
/// How likely the recommended size must be large enough, where its own runs leave a doubt.
const SURE: f64 = 0.75;
/// The part of the time that other questions than the least fast size have.
const RESERVE: f64 = 0.4;
/// How often the search moves to another size after it was run again.
const MOVES: usize = 6;
/// The search ends when the next smaller size is this near, as a part of the size, or this many bytes.
const CLOSE: (f64, u64) = (1.0 / 24.0, 512 << 10);
/// A run in a limit is ended after so many times its own time and so many seconds: in the search for a fast size, and
/// in that for one that lives.
const PATIENCE: (f64, f64) = (DELAYED, 1.0);
const PATIENCE_LIVES: (f64, f64) = (5.0, 2.0);
/// More on a busy machine.
const BUSY: f64 = 2.0;
/// Sizes below the least fast one that are run with swap, as parts of it.
const SWAPPED: [f64; 3] = [0.75, 0.5, 0.35];
/// Runs for the least size that lives.
const LIVES: usize = 4;
/// The next size after all that the program takes without a limit, if it sizes itself by its limit, in times of it.
const LARGER: f64 = 1.5;
/// A longer program's result is not run again, in seconds.
const LONG: f64 = 8.0;
/// A file part of the limit from which on files in RAM already may make a difference.
const FILES: f64 = 0.1;

/// Searches limits. Runs alone stand in the log before it.
pub struct InGroup {
    /// A size that the recording or the group's parts speak for.
    pub guess: Option<u64>,
    /// A size whose cost the user wants to know.
    pub given: Option<u64>,
    /// The kernel's swap that can be had, and our pager, if it serves the program.
    pub others: Vec<Way>,
    /// The program's runtime, if it is a known one.
    pub runtime: Option<Runtime>,
    /// The files that leave the cache first.
    pub cold: Rc<[PathBuf]>,
    /// What is asked.
    pub limits: Limits,
    /// All runs end by then, in seconds since the question was asked.
    pub until: f64,
}

/// What the search has found, in bytes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fit {
    /// The least limit with which it is fast enough.
    pub fast: Option<u64>,
    /// The least with which it ended as alone.
    pub lives: Option<u64>,
    /// The least where its files are in RAM already, if that was run.
    pub warm: Option<u64>,
    /// Whether all runs together leave little doubt of the least fast one, however much each of them varies.
    pub sure: bool,
    /// The least with swap, and with our pager.
    pub swapped: Vec<(Way, u64)>,
    /// Why there are no more runs, one sentence each.
    pub remarks: Vec<String>,
}

impl Plan for InGroup {
    type Result = Fit;

    fn decide(&self, course: &mut Course) -> Result<Fit, Trial> {
        let mut fitting = Fitting { plan: self, course, remarks: Vec::new() };
        if fitting.peak() == 0 {
            return Ok(Fit { remarks: vec!["its group's peak is not known".into()], ..Fit::default() });
        }
        let none = Way::limit();
        let fast = fitting.fast(&none)?;
        let sure = fast.is_some_and(|fast| fitting.threshold(&none).is_good(fast) >= SURE);
        let mut fit = Fit { fast, sure, ..Fit::default() };
        if let Some(given) = self.given {
            fitting.measure(&fitting.cold(&none, given))?;
        }
        let (pager, swap): (Vec<&Way>, Vec<&Way>) = self.others.iter().partition(|way| way.by == By::Pager);
        let top = fast.unwrap_or_else(|| round_limit(fitting.peak()));
        for way in &swap {
            fit.swapped.extend(fitting.swapped(way, top, self.given)?.map(|ram| ((*way).clone(), ram)));
        }
        fitting.lives(&none)?;
        if let Some((runtime, fast)) = self.runtime.zip(fast) {
            fitting.setting(runtime, &none, fast)?;
        }
        if let Some(fast) = fast {
            fit.warm = fitting.warm(&none, fast)?;
        }
        let less = fit.swapped.first().map_or(top, |(_, ram)| (*ram as f64 / SWAPPED[0]) as u64);
        for way in pager {
            fit.swapped.extend(fitting.swapped(way, less, None)?.map(|ram| (way.clone(), ram)));
        }
        fit.lives = fitting.least_that_ended(&none);
        fit.remarks = fitting.remarks;
        Ok(fit)
    }

    fn announce(&self, runs: &RunLog, trial: &Trial, listener: &dyn Listener) {
        let left = (self.until - runs.seconds()).max(0.0);
        listener.progress(0, None, &format!("{}; at most {left:.0} s more", trial.words()));
    }
}

/// A search under way.
struct Fitting<'a, 'b> {
    plan: &'a InGroup,
    course: &'a mut Course<'b>,
    remarks: Vec<String>,
}

impl Fitting<'_, '_> {
    /// The group's peak without a limit.
    fn peak(&self) -> u64 {
        self.course.runs().plain().group_peak().unwrap_or(0)
    }

    fn plain_seconds(&self) -> f64 {
        self.course.runs().plain().seconds
    }

    /// Seconds until all runs must have ended.
    fn left(&self) -> f64 {
        (self.plan.until - self.course.now()).max(0.0)
    }

    /// A run in this limit that reads its files from the disk.
    fn cold(&self, way: &Way, ram: u64) -> Trial {
        Trial { cold: Rc::clone(&self.plan.cold), ..Trial::paged(way, ram, 0.0) }
    }

    fn evidence(&self, kind: &Trial) -> Option<Evidence> {
        let runs = self.course.runs();
        Some(Evidence::judge(&runs.plain(), &runs.like(kind)?, self.plan.limits.slowdown))
    }

    /// Whether a kind of runs is fast enough.
    fn is_good(&self, kind: &Trial) -> Option<bool> {
        self.evidence(kind).map(|evidence| evidence.within)
    }

    /// One more run of a kind; whether there was time for it, it could be run, and no signal came.
    fn run(&mut self, kind: &Trial) -> Result<bool, Trial> {
        self.run_for(kind, PATIENCE)
    }

    /// The same with another patience.
    fn run_for(&mut self, kind: &Trial, (times, seconds): (f64, f64)) -> Result<bool, Trial> {
        let (left, plain_seconds) = (self.left(), self.plain_seconds());
        let shortest = self.plan.limits.longest(plain_seconds);
        if left < shortest || self.course.runs().signal() {
            return Ok(false);
        }
        // Other programs that have the processors delay each run.
        let plain = self.course.runs().plain();
        let busy = Clock::choose(&plain, &plain, self.plan.limits.slowdown) == Clock::Work;
        let times = if busy { BUSY * times } else { times };
        let patience = (times * plain_seconds + seconds).min(left / 2.0).max(1.2 * shortest + 0.2).min(left);
        Ok(matches!(self.course.run(Trial { at_most: Some(patience), ..kind.clone() })?, Outcome::Ran(_)))
    }

    /// Runs a kind, near the limit and for a short program up to three times; whether that was fast enough. `None`: no
    /// time is left, or it cannot be run so.
    fn measure(&mut self, kind: &Trial) -> Result<Option<bool>, Trial> {
        for _ in 0..REPEATS {
            if !self.run(kind)? {
                break;
            }
            let ended = self.course.runs().like(kind).is_some_and(|runs| runs.failed.is_none() && !runs.more);
            // A slow run may have been delayed: a short one by anything, a longer one by other programs.
            let may = |evidence: &Evidence| self.plain_seconds() < SHORT || evidence.clock == Clock::Work;
            let open =
                |evidence: Evidence| evidence.near || !evidence.within && evidence.times < DELAYED && may(&evidence);
            if !ended || !self.evidence(kind).is_some_and(open) || self.plain_seconds() >= 2.0 * SHORT {
                break;
            }
        }
        Ok(self.is_good(kind))
    }

    /// The program alone once more, if it is short and time is left: what is fast enough is a matter of all such runs.
    fn alone_again(&mut self) -> Result<(), Trial> {
        let plain = self.course.runs().plain();
        // If the only run alone was delayed, too small a limit looks fast enough.
        let left = if plain.runs.len() == 1 { 3.0 } else { 6.0 };
        if plain.seconds < LONG && self.left() >= left * plain.seconds {
            self.course.run(Trial { cold: Rc::clone(&self.plan.cold), ..Trial::plain(Some(self.left())) })?;
        }
        Ok(())
    }

    /// The least limit with which the program is fast enough, run until that is no matter of chance.
    fn fast(&mut self, way: &Way) -> Result<Option<u64>, Trial> {
        let reserve = RESERVE * self.left();
        for count in 0..RUNS {
            let threshold = self.threshold(way);
            let (low, high) = (threshold.good(1.0 - LIKELY), threshold.good(LIKELY));
            if close(high, low) || self.left() < reserve {
                break;
            }
            let ram = round_limit(threshold.good(if count % 2 == 0 { 0.5 } else { BELOW }));
            if !self.run(&self.cold(way, ram))? {
                self.note_end("further sizes were not run");
                break;
            }
            if count % REPEATS == 1 {
                self.alone_again()?;
            }
        }
        let mut ram = self.estimate(way);
        for _ in 0..MOVES {
            let kind = self.cold(way, ram);
            let good = self.repeated(&kind)? == Some(true);
            let Some(evidence) = self.evidence(&kind) else { break };
            if good && (evidence.judgement == Judgement::Yes || self.threshold(way).is_good(ram) >= SURE) {
                return Ok(Some(ram));
            }
            let next = Some(self.estimate(way)).filter(|next| *next > ram);
            ram = match ram >= self.whole() {
                // All that it takes without a limit may not be enough for a program that sizes itself by it.
                true if evidence.takes_less => round_limit((ram as f64 * LARGER) as u64),
                true => break,
                false if evidence.takes_less && !evidence.within && !evidence.near => {
                    self.known(way, ram).unwrap_or(self.whole())
                }
                false => next.unwrap_or(round_limit(ram + ram / 32)).min(self.whole()),
            };
        }
        // What it takes without a limit was counted; less was seen not to do.
        let seen = !self.kinds(way).is_empty();
        Ok(self.surest(way).or(self.known(way, ram)).or(seen.then_some(self.whole())))
    }

    /// All that it takes without a limit, as a limit.
    fn whole(&self) -> u64 {
        round_limit(self.peak())
    }

    /// The size that is as likely too small as too large, or one near it that was run.
    fn estimate(&self, way: &Way) -> u64 {
        let ram = round_limit(self.threshold(way).good(0.5));
        let sizes = self.kinds(way).into_iter().filter_map(|runs| runs.ram_bytes);
        let near = sizes.filter(|size| size.abs_diff(ram) <= ram / 32);
        near.min_by_key(|size| size.abs_diff(ram)).unwrap_or(ram)
    }

    /// Runs in a limit that read their files from the disk, by size.
    fn kinds(&self, way: &Way) -> Vec<Runs> {
        let cold = !self.plan.cold.is_empty();
        let kinds = self.course.runs().kinds().into_iter();
        kinds.filter(|(known, runs)| known == way && runs.cold == cold).map(|(_, runs)| runs).collect()
    }

    /// The least size that was run and fast enough, and is large enough after all runs.
    fn surest(&self, way: &Way) -> Option<u64> {
        let threshold = self.threshold(way);
        let sizes = self.kinds(way).into_iter().filter_map(|runs| runs.ram_bytes);
        let good = |ram: &u64| threshold.is_good(*ram) >= SURE && self.is_good(&self.cold(way, *ram)) == Some(true);
        sizes.filter(good).min()
    }

    /// Where the least fast size lies, after all runs until now: a later run alone may change what is fast enough.
    fn threshold(&self, way: &Way) -> Threshold {
        let mut threshold = Threshold::new(self.whole(), self.plan.guess);
        let plain = self.course.runs().plain();
        for runs in self.kinds(way) {
            for run in &runs.runs {
                let single = Runs { runs: vec![run.clone()], seconds: run.seconds, ..runs.clone() };
                let evidence = Evidence::judge(&plain, &single, self.plan.limits.slowdown);
                threshold.saw(runs.ram_bytes.unwrap_or(0), evidence.too_small);
            }
        }
        threshold
    }

    /// Runs a size again, near the limit more often; whether it is fast enough. `None`: no time was left for a run.
    fn repeated(&mut self, kind: &Trial) -> Result<Option<bool>, Trial> {
        loop {
            // Chance makes a run slow more often than fast.
            let slow = |evidence: &Evidence| !evidence.within && evidence.times < DELAYED && !evidence.takes_less;
            let open = |evidence: Evidence| evidence.near || slow(&evidence);
            let (seconds, open) = (self.plain_seconds(), self.evidence(kind).is_none_or(open));
            let wanted = match (seconds < SHORT, open) {
                (true, true) => REPEATS_NEAR,
                (true, false) => REPEATS,
                (false, true) if seconds < LONG => REPEATS,
                (false, false) if seconds < LONG => 2,
                (false, _) => 1,
            };
            let runs = self.course.runs().like(kind).unwrap_or_default();
            if runs.runs.len() >= wanted || runs.failed.is_some() || !self.run(kind)? {
                return Ok(self.is_good(kind));
            }
            self.alone_again()?;
        }
    }

    /// The least size beyond this one that was run, and is fast enough beyond doubt.
    fn known(&self, way: &Way, ram: u64) -> Option<u64> {
        let sizes =
            self.course.runs().kinds().into_iter().filter_map(|(_, runs)| runs.ram_bytes).filter(|size| *size > ram);
        let known = sizes.filter(|size| {
            let evidence = self.evidence(&self.cold(way, *size));
            evidence.is_some_and(|evidence| evidence.judgement == Judgement::Yes)
        });
        known.min()
    }

    /// The least size by another way that is fast enough, of some below `top`.
    fn swapped(&mut self, way: &Way, top: u64, given: Option<u64>) -> Result<Option<u64>, Trial> {
        if let Some(given) = given {
            self.measure(&self.cold(way, given))?;
        }
        let mut good = None;
        for part in SWAPPED {
            let ram = round_limit((top as f64 * part) as u64);
            match self.measure(&self.cold(way, ram))? {
                Some(true) => good = Some(ram),
                _ => break,
            }
        }
        if let Some(ram) = good.filter(|_| self.plain_seconds() < LONG) {
            self.run(&self.cold(way, ram))?;
        }
        Ok(good)
    }

    /// Runs smaller sizes until the least that lives is known.
    fn lives(&mut self, way: &Way) -> Result<(), Trial> {
        for _ in 0..LIVES {
            let Some(alive) = self.least_that_ended(way) else { break };
            let runs = self.course.runs();
            let dead = runs.kinds().into_iter().filter(|(known, runs)| known == way && runs.failed.is_some());
            let dead = dead.filter_map(|(_, runs)| runs.ram_bytes).max().unwrap_or(0);
            let ram = round_limit((alive + dead) / 2);
            if close(alive, dead)
                || ram >= alive
                || ram <= dead
                || !self.run_for(&self.cold(way, ram), PATIENCE_LIVES)?
            {
                break;
            }
            let kind = self.course.runs().like(&self.cold(way, ram));
            if kind.is_none_or(|runs| runs.more) {
                break;
            }
        }
        Ok(())
    }

    /// The least limit in which it ended as alone, and above which it did so in all runs.
    fn least_that_ended(&self, way: &Way) -> Option<u64> {
        let (runs, cold) = (self.course.runs(), !self.plan.cold.is_empty());
        let kinds = runs.kinds();
        let kinds = || kinds.iter().filter(|(known, runs)| known == way && runs.cold == cold).map(|(_, runs)| runs);
        let dead = kinds().filter(|runs| runs.failed.is_some()).filter_map(|runs| runs.ram_bytes).max();
        let ended = kinds().filter(|runs| runs.failed.is_none() && !runs.more).filter_map(|runs| runs.ram_bytes);
        ended.filter(|ram| Some(*ram) > dead).min()
    }

    /// Runs a smaller limit with a setting of the runtime, if that may do.
    fn setting(&mut self, runtime: Runtime, way: &Way, fast: u64) -> Result<(), Trial> {
        let used = self.course.runs().like(&self.cold(way, fast)).and_then(|runs| runs.runs.last()?.group);
        let Some((ram, setting)) = used.and_then(|used| runtime.setting(fast, &used)) else { return Ok(()) };
        let way = Way { setting: Some(Box::new(setting)), ..way.clone() };
        self.measure(&self.cold(&way, round_limit(ram))).map(drop)
    }

    /// The least limit where its files are in RAM already: with less it is tried while that is fast.
    fn warm(&mut self, way: &Way, fast: u64) -> Result<Option<u64>, Trial> {
        let group = self.course.runs().like(&self.cold(way, fast)).and_then(|runs| runs.runs.last()?.group);
        let files = group.map_or(0, |group: GroupUse| group.peak_bytes.saturating_sub(group.fixed_bytes));
        if self.plan.cold.is_empty() || (files as f64) < FILES * fast as f64 {
            return Ok(None);
        }
        let (mut good, mut bad) = (None, 0);
        let mut ram = round_limit(fast - files / 4 * 3);
        for _ in 0..REPEATS {
            if ram <= bad || good.is_some_and(|good| ram >= good || close(good, bad)) {
                break;
            }
            match self.measure(&Trial::paged(way, ram, 0.0))? {
                Some(true) => good = Some(ram),
                Some(false) => bad = ram,
                None => break,
            }
            ram = round_limit((good.unwrap_or(fast) + bad.max(fast - files)) / 2);
        }
        Ok(good)
    }

    fn note_end(&mut self, what: &str) {
        let why = if self.course.runs().signal() { "a signal came" } else { "no time was left" };
        self.remarks.push(format!("{what}: {why}"));
    }
}

fn close(good: u64, bad: u64) -> bool {
    good.saturating_sub(bad) <= CLOSE.1.max((good as f64 * CLOSE.0) as u64)
}
