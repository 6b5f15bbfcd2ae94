//! The plan of `coldframe fit`: 1, 2, 4 ... at a time in a group of that RAM, until one does not live; then between.
//!
//! ```text
//!   1 ─► 2 ─► 4 ─► ... ─► killed ─► bisection: the largest that lives ─► beside the fastest ─► the near ones again
//! ```
//! A server has no time, so its search ends with the largest number that lives.

use super::super::log::RunLog;
use super::super::plan::{Course, Plan};
use super::super::rules::{REPEATS, SHORT};
use super::super::trial::{Outcome, Refusal, Trial};
use super::counted::{cheapest, fastest, name, HowManyFit, JobRuns, JobsEnd, NUMBER};
use crate::listener::Listener;
use crate::run::runs::{Way, NO_SWAP};
use crate::SCHEMA_VERSION;

/// A run is ended after so many times the time of one, and so many seconds.
const PATIENCE: (f64, f64) = (5.0, 10.0);
/// Two at a time that take less than this part of the time of one: did the first run more than the others?
const FAST: f64 = 0.4;
/// A second run of one that takes less than this part of the first one's, and so many seconds less, had no work.
const NO_WORK: (f64, f64) = (0.2, 0.05);
/// Numbers that are run beside the fastest.
const BESIDE: usize = 16;

/// Searches the fastest number, and the largest that lives.
#[derive(Clone, Debug)]
pub struct HowMany {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The group's swap.
    pub way: Way,
    /// The group's RAM.
    pub ram_bytes: u64,
    /// It is a server, which lives if it runs for so many seconds.
    pub served: Option<f64>,
    /// What runs before each run.
    pub prepare: Option<String>,
    /// The largest number that is run.
    pub up_to: u32,
}

/// Why the decisions do not go on.
enum Stop {
    /// This run comes next.
    Next(Trial),
    /// There is no answer.
    End(Refusal),
}

impl From<Trial> for Stop {
    fn from(trial: Trial) -> Stop {
        Stop::Next(trial)
    }
}

impl Plan for HowMany {
    type Result = Result<(), Refusal>;

    fn decide(&self, course: &mut Course) -> Result<Self::Result, Trial> {
        match (Counting { plan: self, course }).search() {
            Ok(()) => Ok(Ok(())),
            Err(Stop::End(why)) => Ok(Err(why)),
            Err(Stop::Next(trial)) => Err(trial),
        }
    }

    fn announce(&self, runs: &RunLog, trial: &Trial, listener: &dyn Listener) {
        let name = name(&self.program, trial.jobs.unwrap_or(1));
        listener.progress(runs.entries().len() as u64, None, &format!("running {name}"));
    }
}

impl HowMany {
    /// Whether the number is that of copies.
    fn copies(&self) -> bool {
        !self.program.iter().any(|word| word.contains(NUMBER))
    }

    /// What the runs have shown.
    pub fn counted(&self, runs: &RunLog) -> HowManyFit {
        let (sizes, copies) = (JobRuns::each(runs, self.served.is_some()), self.copies());
        let groups = || runs.entries().iter().filter_map(|entry| entry.outcome.ran()?.group);
        let counted = groups().filter(|group| group.worked_seconds.is_some()).count() as f64;
        HowManyFit {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            program: self.program.clone(),
            copies,
            ram_bytes: self.ram_bytes,
            swap: self.way.swap.clone().unwrap_or_else(|| NO_SWAP.into()),
            served_seconds: self.served,
            prepare: self.prepare.clone(),
            up_to: self.up_to,
            fastest: fastest(&sizes, copies).filter(|_| self.served.is_none()).map(|size| size.jobs),
            largest: sizes.iter().rfind(|size| size.lives()).map(|size| size.jobs),
            each_more_bytes: None,
            shared_bytes: None,
            others: (counted > 0.0).then(|| groups().map(|group| group.others).sum::<f64>() / counted),
            sizes,
        }
        .with_memory()
    }
}

/// A search under way.
struct Counting<'a, 'b> {
    plan: &'a HowMany,
    course: &'a mut Course<'b>,
}

impl Counting<'_, '_> {
    fn search(&mut self) -> Result<(), Stop> {
        let plan = self.plan;
        let (mut jobs, mut lives) = (1, self.measure(1)?);
        self.same_work()?;
        self.first_succeeded()?;
        while lives && jobs < plan.up_to {
            jobs = jobs.saturating_mul(2).min(plan.up_to);
            lives = self.measure(jobs)?;
            if jobs == 2 && plan.served.is_none() && self.is_suspicious() {
                while self.runs(1) < REPEATS {
                    self.run(1)?;
                    self.same_work()?;
                }
            }
        }
        while let Some(between) = self.between(|size| !size.lives()) {
            self.measure(between)?;
        }
        if plan.served.is_some() {
            return Ok(());
        }
        for _ in 0..BESIDE {
            let Some(beside) = self.beside() else { break };
            self.measure(beside)?;
        }
        while let Some(near) = self.near() {
            self.run(near)?;
        }
        Ok(())
    }

    fn sizes(&self) -> Vec<JobRuns> {
        JobRuns::each(&self.course.runs(), self.plan.served.is_some())
    }

    fn size(&self, jobs: u32) -> Option<JobRuns> {
        JobRuns::judge(&self.course.runs(), jobs, self.plan.served.is_some())
    }

    fn runs(&self, jobs: u32) -> usize {
        self.size(jobs).map_or(0, |size| size.runs)
    }

    /// One more run of a number; whether it lives.
    fn run(&mut self, jobs: u32) -> Result<bool, Stop> {
        let plan = self.plan;
        let (times, seconds) = PATIENCE;
        let part = if plan.copies() { f64::from(jobs) } else { 1.0 };
        // The first run of one has all the time that it wants.
        let patience = self.size(1).map(|one| seconds + times * part * one.range_seconds.1);
        let at_most = plan.served.or(patience);
        let trial = Trial { at_most, jobs: Some(jobs), ..Trial::paged(&plan.way, plan.ram_bytes, 0.0) };
        match self.course.run(trial)? {
            Outcome::Ran(_) => Ok(self.size(jobs).is_some_and(|size| size.lives())),
            Outcome::Refused(why) => Err(Stop::End(why.clone())),
            Outcome::Signal => Err(Stop::End(Refusal::stopped())),
        }
    }

    /// Runs a number, if its runs are short three times; whether it lives.
    fn measure(&mut self, jobs: u32) -> Result<bool, Stop> {
        let mut lives = self.run(jobs)?;
        let short = |size: JobRuns| size.seconds < SHORT && size.runs < REPEATS;
        while lives && self.size(jobs).is_some_and(short) {
            lives = self.run(jobs)?;
        }
        Ok(lives)
    }

    /// An error if one alone fails: there is nothing to fit.
    fn first_succeeded(&self) -> Result<(), Stop> {
        let Some(one) = self.size(1).filter(|size| size.end == JobsEnd::Failed) else { return Ok(()) };
        let (name, status) = (name(&self.plan.program, 1), one.status);
        let remedy = match self.plan.served {
            Some(_) => "a server runs on; without --for its end counts",
            None => "mend it, and fit again",
        };
        Err(Stop::End(Refusal::new(3, format!("{name} ended with exit code {status}: {remedy}"))))
    }

    /// Whether two took so little that the first run of one may have had other work.
    fn is_suspicious(&self) -> bool {
        let (one, two) = (self.size(1), self.size(2));
        one.zip(two).is_some_and(|(one, two)| two.lives() && two.seconds < FAST * one.seconds)
    }

    /// An error if one ran again and had nothing left to do.
    fn same_work(&self) -> Result<(), Stop> {
        let runs = self.course.runs().of_jobs(1).runs;
        let (part, less) = NO_WORK;
        let [first, later @ ..] = runs.as_slice() else { return Ok(()) };
        let done = |seconds: f64| seconds < part * first.seconds && seconds < first.seconds - less;
        let Some(idle) = later.iter().find(|run| done(run.seconds)).filter(|_| self.plan.prepare.is_none()) else {
            return Ok(());
        };
        let message = format!(
            "cannot tell: {} took {:.2} s, and {:.2} s when it ran again, so little was left to do; give --prepare \
             with what undoes it ('make clean'), or fit once more if only its files had to be read",
            name(&self.plan.program, 1),
            first.seconds,
            idle.seconds
        );
        Err(Stop::End(Refusal::new(6, message)))
    }

    /// The number in the middle between the least one for which that holds and the largest below it, if there is one.
    fn between(&self, holds: impl Fn(&JobRuns) -> bool) -> Option<u32> {
        let sizes = self.sizes();
        let place = sizes.iter().position(holds).filter(|place| *place > 0)?;
        middle(sizes[place - 1].jobs, sizes[place].jobs)
    }

    /// The number in the middle of the wider gap beside the fastest one.
    fn beside(&self) -> Option<u32> {
        let sizes = self.sizes();
        let living: Vec<&JobRuns> = sizes.iter().filter(|size| size.lives()).collect();
        let best = fastest(&sizes, self.plan.copies())?.jobs;
        let gaps = living.windows(2).map(|pair| (pair[0].jobs, pair[1].jobs));
        let gaps = gaps.filter(|(low, high)| (*low == best || *high == best) && high - low > 1);
        gaps.max_by_key(|(low, high)| high - low).and_then(|(low, high)| middle(low, high))
    }

    /// The number to run again, so that it is known which one is fastest, and whether the next one is slower: the one
    /// of them with fewest runs. All repeats take no longer than the first runs of each number.
    fn near(&self) -> Option<u32> {
        let (sizes, copies) = (self.sizes(), self.plan.copies());
        let (cheapest, best) = (cheapest(&sizes, copies)?, fastest(&sizes, copies)?);
        let next = sizes.iter().find(|size| size.jobs > best.jobs && size.lives());
        let next = next.filter(|next| !next.is_slower(best, copies)).map(|next| next.jobs);
        let open = |size: &&JobRuns| {
            let as_fast = size.jobs <= cheapest.jobs && size.lives() && !size.is_slower(cheapest, copies);
            as_fast || size.jobs == best.jobs || Some(size.jobs) == next
        };
        let open: Vec<&JobRuns> = sizes.iter().filter(open).collect();
        let runs = self.course.runs();
        let of = |size: &JobRuns| runs.of_jobs(size.jobs).runs.iter().map(|run| run.seconds).collect::<Vec<f64>>();
        let (mut first, mut repeats) = (0.0, 0.0);
        sizes.iter().map(of).for_each(|seconds| {
            first += seconds[0];
            repeats += seconds[1..].iter().sum::<f64>();
        });
        let again = open.iter().filter(|size| size.runs < REPEATS).min_by_key(|size| size.runs);
        again.filter(|_| open.len() > 1 && repeats <= first).map(|size| size.jobs)
    }
}

/// The middle of two numbers, if another one lies between them.
fn middle(low: u32, high: u32) -> Option<u32> {
    (high - low > 1).then(|| low + (high - low) / 2)
}
