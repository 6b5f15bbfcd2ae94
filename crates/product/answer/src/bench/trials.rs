//! Measured runs of an answer: the program alone, and in less RAM where the recommendation is decided.
//!
//! ```text
//!   recorded run ─► alone (3 runs if it takes less than 1 s, else 1)
//!                ─► the curve's size by our pager and by the kernel: the faster one goes on
//!                ─► at most 5 sizes of RAM: too slow: more RAM; fast enough: less RAM; after each a short program alone again
//!                ─► the recommended size once more, and by the other pager
//! ```
//! All of them together take no longer than [`budget`]. A run that exceeds its share is ended, and counts as "more than".
//! The machine's speed drifts by some percent within seconds, so runs alone lie between those in less RAM, and the median
//! of all is the program's time.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_live::FRAMES_MIN;
use coldframe_proc::{FileLooks, Files};
use coldframe_recording::span::PAGE;

use crate::bench::runner::{Bench, Way};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::curve::round;
use crate::predict::question::Limits;
use crate::run::runs::{By, Measured, Ran};
use crate::run::streams::{Difference, Output};

/// The least time that runs may take, and the whole answer.
const LEAST: f64 = 20.0;
/// Times the program's own time that further runs may take, and the whole answer.
const RUNS: f64 = 2.0;
const WHOLE: f64 = 5.0;
/// Seconds of it for the last run's end, and for the page.
const LAST: f64 = 1.0;
/// A program that takes longer is not run again.
const LONGEST: f64 = 600.0;
/// A shorter run is repeated: three runs, of which the median counts.
pub(crate) const SHORT: f64 = 1.0;
pub(crate) const REPEATS: usize = 3;
/// Runs alone in all, if time is left for them: of a short program, and of others.
const ALONE: (usize, usize) = (9, 2);
/// Sizes that are run by one pager.
const SIZES: usize = 5;
/// A run this near to the limit, as a part of it, is repeated.
const NEAR: f64 = 0.1;
/// The search ends when the next smaller size is this near.
const CLOSE: f64 = 1.0 / 16.0;

/// How the recorded run ended, which the others are held against.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// Its exit code, as a shell reports it.
    pub status: u8,
    /// Its output, if it is known.
    pub output: Option<Output>,
    /// How long it took.
    pub seconds: f64,
}

/// The runs of one answer.
pub struct Trials<'a> {
    bench: &'a Bench<'a>,
    listener: &'a dyn Listener,
    first: First,
    /// The end of all runs.
    pub(crate) until: Instant,
    limits: Limits,
    /// The longest run that is good, in seconds.
    pub(crate) limit: f64,
    /// All runs, by kind.
    pub measured: Vec<Measured>,
    /// The most anonymous memory that the program has had in RAM at a time when it ran alone; 0: not known.
    pub peak_bytes: u64,
    /// The files that it mapped then.
    pub files: Files,
    /// Why there are no more runs, or what to know of these, one sentence each.
    pub remarks: Vec<String>,
}

/// Seconds that runs may take together, if the program alone takes so many.
pub fn budget(plain: f64) -> f64 {
    LEAST.max(RUNS * plain)
}

/// Why a program is not run again, if that is known from its recorded run. `seconds`: how long it took.
pub fn once(seconds: f64, lost_input: Option<&str>) -> Option<String> {
    if let Some(why) = lost_input {
        return Some(format!("{why}, so it was not run again, and all times are predicted"));
    }
    let long =
        format!("it took over {:.0} minutes, so it was not run again, and all times are predicted", LONGEST / 60.0);
    (seconds > LONGEST).then_some(long)
}

impl<'a> Trials<'a> {
    /// Runs the program alone. `began`: the start of the answer.
    ///
    /// # Errors
    /// It cannot be started again.
    pub fn alone(
        bench: &'a Bench<'a>,
        first: First,
        began: Instant,
        limits: &Limits,
        listener: &'a dyn Listener,
    ) -> Result<Trials<'a>, AnswerError> {
        let until = Instant::now() + Duration::from_secs_f64(budget(first.seconds));
        let (measured, files, remarks) = (Vec::new(), Files::new(), Vec::new());
        let (limits, limit, peak_bytes) = (*limits, 0.0, 0);
        let mut trials = Trials { bench, listener, first, until, limits, limit, measured, peak_bytes, files, remarks };
        // One run is enough to know its files.
        let looks = Mutex::new(None::<FileLooks>);
        let look = |process| looks.lock().unwrap().get_or_insert_with(|| FileLooks::of(process)).look();
        let mut plain = Measured::new(By::Plain, None, None);
        loop {
            listener.progress(0, None, "running it alone");
            let ran = match bench.plain(Some(trials.left()), if plain.runs.is_empty() { &look } else { &|_| {} }) {
                Ok(ran) => ran,
                Err(_) if bench.signals.came() => {
                    trials.remarks.push("stopped by a signal: what was not measured until then is predicted".into());
                    return Ok(trials);
                }
                Err(error) => return Err(error),
            };
            let late = ran.too_long.then(|| format!("it took over {:.0} s", ran.seconds));
            if let Some(why) = late.or_else(|| trials.unlike(&ran)) {
                trials
                    .remarks
                    .push(format!("when it ran again, {why}: it was not run any more, and all times are predicted"));
                return Ok(trials);
            }
            plain.add(&ran);
            trials.peak_bytes = trials.peak_bytes.max(ran.peak_bytes);
            if plain.runs.len() >= REPEATS || plain.seconds >= SHORT {
                break;
            }
        }
        trials.until = (Instant::now() + Duration::from_secs_f64(budget(plain.seconds)))
            .min(began + Duration::from_secs_f64(LEAST.max(WHOLE * plain.seconds) - LAST));
        trials.limit = limits.longest(plain.seconds);
        trials.files = looks.into_inner().unwrap().map(|looks| looks.files).unwrap_or_default();
        trials.measured.push(plain);
        Ok(trials)
    }

    /// The time of the program alone; `None`: it is not known, and there are no other runs.
    pub fn plain(&self) -> Option<f64> {
        self.measured.first().map(|plain| plain.seconds)
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn note(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// How a run differs from the recorded one. An output that differs in numbers, such as times, is noted.
    fn unlike(&mut self, ran: &Ran) -> Option<String> {
        if ran.too_long {
            return None;
        }
        if ran.killed {
            return Some("the kernel killed it for lack of memory".into());
        }
        if ran.status != self.first.status {
            return Some(format!("it ended with exit code {} instead of {}", ran.status, self.first.status));
        }
        let before = *self.first.output.get_or_insert(ran.output?);
        match ran.output?.differs(&before) {
            Difference::None => None,
            Difference::Numbers => {
                self.note("its output differs in numbers from run to run".into());
                None
            }
            Difference::Words => Some("its output was another one".into()),
        }
    }

    /// Finds the smallest RAM with which the program is fast enough, and measures it again. `start`: the size to begin
    /// with; `top`: the largest size. Returns its RAM.
    /// `keep`: how many runs of the program's length are left for later.
    pub fn search(&mut self, way: Way, start: u64, top: u64, keep: f64) -> Option<u64> {
        let mut search = Search::new(start, top);
        for size in 0..SIZES {
            let Some(ram) = search.next() else { break };
            // One size is measured, whatever else has no time then.
            let keep = if size == 0 { 0.0 } else { keep };
            let Some(good) = self.known(way, ram).or_else(|| self.at(way, ram, keep)) else {
                let why = match (self.bench.signals.came(), self.left().as_secs_f64() < (1.0 + keep) * self.limit) {
                    (true, _) => "a signal came",
                    (false, true) => "no time was left",
                    (false, false) => "that run could not be started",
                };
                self.note(format!("further sizes of RAM were not run: {why}"));
                break;
            };
            self.alone_again(keep);
            search.note(ram, good);
        }
        // The search prefers sizes whose run happened to be fast.
        while let Some(ram) = search.good {
            match self.again(way, ram) {
                Some(false) => search.good = self.larger(way, ram),
                Some(true) | None => break,
            }
        }
        search.good
    }

    /// Whether a run in this RAM was fast enough, if there was one.
    fn known(&self, way: Way, ram: u64) -> Option<bool> {
        Some(self.of(way, ram)?.within(self.limit))
    }

    /// The runs in this RAM.
    fn of(&self, way: Way, ram: u64) -> Option<&Measured> {
        self.measured.iter().find(|one| one.by == By::from(way) && one.ram_bytes == Some(ram))
    }

    /// The faster one of two ways in this RAM, of which each is tried; the first one if no run is possible.
    pub fn faster<'w>(&mut self, ways: [Way<'w>; 2], ram: u64, keep: f64) -> [Way<'w>; 2] {
        for way in ways {
            self.at(way, ram, keep);
        }
        let [first, second] = ways.map(|way| self.of(way, ram).map_or(f64::INFINITY, |one| one.seconds));
        if second < first {
            [ways[1], ways[0]]
        } else {
            ways
        }
    }

    /// Who was the fastest in this RAM, and fast enough.
    pub fn best(&self, ram: u64) -> Option<By> {
        let good = self.measured.iter().filter(|one| one.ram_bytes == Some(ram) && one.within(self.limit));
        good.min_by(|one, other| one.seconds.total_cmp(&other.seconds)).map(|one| one.by)
    }

    /// Whether a run in this RAM or more was too slow.
    pub fn refutes(&self, ram: u64) -> bool {
        self.measured.iter().any(|one| one.ram_bytes.is_some_and(|size| size >= ram) && !one.within(self.limit))
    }

    /// The next larger size that was good.
    fn larger(&self, way: Way, ram: u64) -> Option<u64> {
        let good = self.measured.iter().filter(|one| one.by == By::from(way) && one.within(self.limit));
        good.filter_map(|one| one.ram_bytes).filter(|other| *other > ram).min()
    }

    /// Runs the program in this RAM; whether that was fast enough. `None`: no time is left, or it cannot be run so.
    pub fn at(&mut self, way: Way, ram: u64, keep: f64) -> Option<bool> {
        let mut all = Measured::new(way.into(), way.swap, Some(ram));
        while self.run(way, &mut all, keep).is_some() {
            let near = (all.seconds / self.limit - 1.0).abs() < NEAR;
            if all.failed.is_some() || all.more || !near || all.seconds >= SHORT || all.runs.len() >= REPEATS {
                break;
            }
        }
        if all.runs.is_empty() {
            return None;
        }
        let good = all.within(self.limit);
        self.measured.push(all);
        Some(good)
    }

    /// The program alone once more, if time is left. The last sizes do not change the limit any more.
    fn alone_again(&mut self, keep: f64) {
        let most = if self.measured[0].seconds < SHORT { ALONE.0 } else { ALONE.1 };
        let needed = (2.0 + keep) * self.limit;
        if keep == 0.0 || self.measured[0].runs.len() >= most || self.left().as_secs_f64() < needed {
            return;
        }
        self.listener.progress(0, None, "running it alone");
        let Ok(ran) = self.bench.plain(Some(self.left()), &|_| {}) else { return };
        if !ran.too_long && self.unlike(&ran).is_none() {
            self.measured[0].add(&ran);
            self.limit = self.limits.longest(self.measured[0].seconds);
        }
    }

    /// Measures a size again: a short program's three times in all, and near the limit five times.
    fn again(&mut self, way: Way, ram: u64) -> Option<bool> {
        let place = self.measured.iter().position(|one| one.by == By::from(way) && one.ram_bytes == Some(ram))?;
        let mut all = self.measured[place].clone();
        let wanted = |all: &Measured, limit: f64| match (all.seconds < SHORT, (all.seconds / limit - 1.0).abs() < NEAR)
        {
            (true, true) => REPEATS + 2,
            (true, false) => REPEATS,
            (false, _) => 2,
        };
        while all.runs.len() < wanted(&all, self.limit)
            && all.failed.is_none()
            && self.run(way, &mut all, 0.0).is_some()
        {}
        let good = all.within(self.limit);
        self.measured[place] = all;
        Some(good)
    }

    /// One more run. `None`: no time is left, it cannot be run so, or a signal came.
    fn run(&mut self, way: Way, all: &mut Measured, keep: f64) -> Option<()> {
        let (left, ram) = (self.left().as_secs_f64() - keep * self.limit, all.ram_bytes?);
        if left < self.limit {
            return None;
        }
        let share = (left / SIZES as f64).min(PATIENT.1 * self.limit).max(PATIENT.0 * self.limit + LATE).min(left);
        // It reads its files first.
        let share = if way.in_all { left / 2.0 } else { share };
        let words = format!("running it in {}", coldframe_sheet::quantity::human_size(ram));
        self.listener.progress(0, None, &words);
        let (ran, _) = self.bench.paged(way, ram, Duration::from_secs_f64(share)).ok()?;
        all.failed = self.unlike(&ran);
        all.add(&ran);
        Some(())
    }
}

/// Times the limit that a run may take before it is ended: at least, and at most.
const PATIENT: (f64, f64) = (1.2, 5.0);
/// And so many seconds, which may be a hiccup of the machine.
const LATE: f64 = 0.2;

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
        let least = FRAMES_MIN as u64 * PAGE;
        Search { start: start.min(top).max(least), top: top.max(least), bad: None, good: None }
    }

    fn note(&mut self, ram: u64, good: bool) {
        match good {
            true => self.good = Some(self.good.map_or(ram, |best| best.min(ram))),
            false => self.bad = Some(self.bad.map_or(ram, |worst| worst.max(ram))),
        }
    }

    /// The next size; `None`: it is found, or there is none.
    fn next(&self) -> Option<u64> {
        let least = FRAMES_MIN as u64 * PAGE;
        let close = |good: u64, bad: u64| (good - bad) as f64 <= CLOSE * good as f64;
        let next = match (self.bad, self.good) {
            (None, None) => self.start,
            // All of its RAM needs no run: that is what is recommended if no smaller size is good.
            (Some(bad), None) if bad >= self.top || close(self.top, bad) => return None,
            (Some(bad), None) => ((bad as f64) * (self.top as f64)).sqrt() as u64,
            (None, Some(good)) => (good as f64 * LESS) as u64,
            (Some(bad), Some(good)) => ((bad as f64) * (good as f64)).sqrt() as u64,
        };
        let next = round(next as f64).max(least);
        let open = self.good.is_none_or(|good| next < good) && self.bad.is_none_or(|bad| next > bad);
        let found = self.good.zip(self.bad).is_some_and(|(good, bad)| good <= bad || close(good, bad));
        (open && !found).then_some(next)
    }
}

/// The next size after a good one, as a part of it.
const LESS: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that are run, in MiB, if those from `least` MiB on are good, and the result.
    fn searched(start: u64, top: u64, least: u64) -> (Vec<u64>, Option<u64>) {
        let (mut search, mut all) = (Search::new(start << 20, top << 20), Vec::new());
        for _ in 0..SIZES {
            let Some(ram) = search.next() else { break };
            all.push(ram >> 20);
            search.note(ram, ram >= least << 20);
        }
        (all, search.good.map(|good| good >> 20))
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

    #[test]
    fn a_program_that_cannot_be_run_again_is_known_by_its_input_and_its_time() {
        assert!(once(1.0, Some("it reads from the terminal")).unwrap().contains("terminal"));
        assert!(once(601.0, None).unwrap().contains("10 minutes") && once(599.0, None).is_none());
    }
}
