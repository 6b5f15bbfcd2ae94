//! The seam between what decides and what runs programs.
//!
//! ```text
//!   Plan ── Step::Run(trial) ──► Runner: our pager, the kernel, the program alone, or a fake
//!     ▲                            │
//!     └──── RunLog ◄── its outcome ┘          Step::Done(result) ends the loop, `carry_out`
//! ```
//! A plan is a pure function of the runs so far and of the time: no clock, no process, no random number. It is written
//! as if it ran programs one after the other: [`Course::run`] gives the outcome of a trial that the log has, or ends
//! the function with the trial that is to be run next. The loop runs that one and asks again, from the beginning.

use super::log::RunLog;
use super::trial::{Outcome, Trial};
use crate::listener::Listener;

/// Carries trials out.
pub trait Runner {
    /// Seconds since the question was asked.
    fn now(&self) -> f64;

    /// Runs the program.
    fn run(&mut self, trial: &Trial) -> Outcome;
}

/// What a plan wants next.
#[derive(Clone, PartialEq, Debug)]
pub enum Step<T> {
    /// This run.
    Run(Trial),
    /// Nothing: this is the result.
    Done(T),
}

/// Decides which runs a question takes, and what they mean.
pub trait Plan {
    /// The result.
    type Result;

    /// The decisions in their order. Each trial goes through [`Course::run`].
    ///
    /// # Errors
    /// The next trial, which has not run yet.
    fn decide(&self, course: &mut Course) -> Result<Self::Result, Trial>;

    /// What to do after these runs, of which those before `from` belong to an earlier plan, at this time.
    fn next(&self, runs: &RunLog, from: usize, now: f64) -> Step<Self::Result> {
        match self.decide(&mut Course { runs, place: from, now }) {
            Ok(result) => Step::Done(result),
            Err(trial) => Step::Run(trial),
        }
    }

    /// Says what is run next.
    fn announce(&self, _runs: &RunLog, trial: &Trial, listener: &dyn Listener) {
        listener.progress(0, None, &trial.words());
    }
}

/// The runs of a plan, one after the other, and the time after each.
pub struct Course<'a> {
    runs: &'a RunLog,
    place: usize,
    now: f64,
}

impl<'a> Course<'a> {
    /// The outcome of this trial.
    ///
    /// # Errors
    /// The trial itself, if it has not run yet.
    pub fn run(&mut self, trial: Trial) -> Result<&'a Outcome, Trial> {
        match self.runs.entries().get(self.place) {
            Some(entry) => {
                assert_eq!(entry.trial, trial, "a plan decides the same on the same runs");
                self.place += 1;
                Ok(&entry.outcome)
            }
            None => Err(trial),
        }
    }

    /// Seconds since the question was asked, before the next run.
    pub fn now(&self) -> f64 {
        self.runs.entries().get(self.place).map_or(self.now, |entry| entry.asked_at)
    }

    /// The runs until now.
    pub fn runs(&self) -> RunLog {
        self.runs.until(self.place)
    }
}

/// Carries a plan out. Its runs are added to the log.
pub fn carry_out<P: Plan>(plan: &P, runs: &mut RunLog, runner: &mut dyn Runner, listener: &dyn Listener) -> P::Result {
    let from = runs.entries().len();
    loop {
        let asked_at = runner.now();
        match plan.next(runs, from, asked_at) {
            Step::Done(result) => return result,
            Step::Run(trial) => {
                plan.announce(runs, &trial, listener);
                let outcome = runner.run(&trial);
                runs.add(trial, asked_at, outcome);
            }
        }
    }
}
