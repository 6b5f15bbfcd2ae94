//! The seam between what decides and what runs programs.
//!
//! ```text
//!   Plan ── Step::Run(trial) ──► Runner: our pager, the kernel, the program alone, or a fake
//!     ▲                            │
//!     └──── RunLog ◄── its outcome ┘          Step::Done(result) ends the loop, `carry_out`
//! ```
//! A plan is a pure function of the runs so far and of the time: no clock, no process, no random number. It is written
//! as if it ran programs one after the other: [`Course::run`] gives the outcome of a trial that the log has, or ends the
//! function with the trial that is to be run next. The loop runs that one and asks again, from the beginning.

use std::path::PathBuf;
use std::rc::Rc;

use coldframe_sheet::quantity::human_size;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::runs::{By, Run, Way};

use super::log::RunLog;

/// A run that a plan wants.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Who pages it.
    pub way: Way,
    /// Its RAM; `None`: without a limit.
    pub ram_bytes: Option<u64>,
    /// The program is ended after so many seconds; `None`: never.
    pub at_most: Option<f64>,
    /// Whether the user sees its output, and gives its input.
    pub shown: bool,
    /// Files that leave the page cache first.
    pub cold: Rc<[PathBuf]>,
}

impl Trial {
    /// The program alone.
    pub fn plain(at_most: Option<f64>) -> Trial {
        Trial { way: Way::plain(), ram_bytes: None, at_most, shown: false, cold: Rc::new([]) }
    }

    /// The program in that RAM.
    pub fn paged(way: &Way, ram_bytes: u64, at_most: f64) -> Trial {
        Trial { way: way.clone(), ram_bytes: Some(ram_bytes), at_most: Some(at_most), ..Trial::plain(None) }
    }

    /// For people who wait.
    pub fn words(&self) -> String {
        match (self.way.by, self.ram_bytes) {
            (By::Plain, _) | (_, None) => "running it alone".into(),
            (_, Some(ram)) => format!("running it in {}", human_size(ram)),
        }
    }
}

/// What became of a trial.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The program ran, and has ended.
    Ran(Run),
    /// It could not be run so.
    Refused(Refusal),
    /// A signal to coldframe ended it: there are no more runs.
    Signal,
}

/// Why a program could not be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is wrong, and the remedy.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Refusal {
    /// With its exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), code }
    }

    /// A signal came, and the question has no answer without more runs.
    pub fn stopped() -> Refusal {
        Refusal::new(130, "stopped; nothing is left behind")
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Refusal {
        Refusal::new(error.code(), error.to_string())
    }
}

impl From<Refusal> for AnswerError {
    fn from(refusal: Refusal) -> AnswerError {
        AnswerError::new(refusal.code, refusal.message)
    }
}

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
