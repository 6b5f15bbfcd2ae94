//! All runs of one question, in order, and the one rule by which a run *ends as alone*.

use crate::run::runs::{By, Run, Runs, Unlike, Way};
use crate::run::streams::Difference;

use super::trial::{Outcome, Trial};

/// A trial, when it was asked for, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The trial.
    pub trial: Trial,
    /// Seconds since the question was asked.
    pub asked_at: f64,
    /// What became of it.
    pub outcome: Outcome,
}

/// All runs of one question.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    /// The run before them, in which the program was recorded or watched.
    first: Option<Run>,
    entries: Vec<Entry>,
}

impl RunLog {
    /// After a run in which the program was recorded or watched.
    pub fn after(first: Run) -> RunLog {
        RunLog { first: Some(first), entries: Vec::new() }
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds what became of a trial.
    pub fn add(&mut self, trial: Trial, asked_at: f64, outcome: Outcome) {
        self.entries.push(Entry { trial, asked_at, outcome });
    }

    /// The first so many.
    pub fn until(&self, count: usize) -> RunLog {
        RunLog { first: self.first.clone(), entries: self.entries[..count].to_vec() }
    }

    /// Whether a signal ended a run.
    pub fn signal(&self) -> bool {
        self.entries.iter().any(|entry| entry.outcome == Outcome::Signal)
    }

    fn ran(&self) -> impl Iterator<Item = (&Trial, &Run)> {
        self.entries.iter().filter_map(|entry| Some((&entry.trial, entry.outcome.ran()?)))
    }

    /// The runs that others are held against: the recorded one, and those alone that ended.
    fn alone(&self) -> impl Iterator<Item = &Run> {
        let plain = self.ran().filter(|(trial, run)| trial.way.by == By::Plain && !run.too_long);
        self.first.iter().chain(plain.map(|(_, run)| run))
    }

    /// Whether the program's output is another one each time, so that outputs are not compared: it differs in more than
    /// numbers between runs alone.
    pub fn varies(&self) -> bool {
        let mut outputs = self.alone().filter_map(|run| run.output);
        outputs.next().is_some_and(|first| outputs.any(|other| first.differs(&other) == Difference::Words))
    }

    /// Whether the output of a run differs in numbers, such as times.
    pub fn differs_in_numbers(&self) -> bool {
        let Some(first) = self.alone().find_map(|run| run.output) else { return false };
        self.ran().filter_map(|(_, run)| run.output).any(|other| first.differs(&other) == Difference::Numbers)
    }

    /// How a run ended otherwise than the program alone. A run that was ended because it took too long is judged by its
    /// time. An output that is not known is like any other.
    pub fn unlike(&self, run: &Run) -> Option<Unlike> {
        if run.too_long {
            return None;
        }
        if run.killed {
            return Some(Unlike::Killed);
        }
        if run.over_limit {
            return Some(Unlike::OverLimit);
        }
        let first = self.alone().next()?;
        if run.status != first.status {
            return Some(Unlike::Status(run.status, first.status));
        }
        let differs = |alone: &Run| Some(alone.output?.differs(&run.output?));
        let other = self.alone().find_map(differs) == Some(Difference::Words);
        (other && !self.varies()).then_some(Unlike::Output)
    }

    /// The runs alone that ended as the first one: those that read their files from the disk, if there are any. Without
    /// any of them, the first run itself.
    pub fn plain(&self) -> Runs {
        let mut runs = Runs::new(&Way::plain(), None);
        let plain = || self.ran().filter(|(trial, run)| trial.way.by == By::Plain && !run.too_long);
        let cold = plain().any(|(trial, _)| !trial.cold.is_empty());
        let plain = plain().filter(|(trial, run)| trial.cold.is_empty() != cold && self.unlike(run).is_none());
        plain.for_each(|(_, run)| runs.add(run, None));
        if runs.runs.is_empty() {
            self.first.iter().for_each(|first| runs.add(first, None));
        }
        runs.cold = cold;
        runs
    }

    /// Seconds from the question to the end of the last run.
    pub fn seconds(&self) -> f64 {
        self.entries.last().map_or(0.0, |entry| match &entry.outcome {
            Outcome::Ran(run) => entry.asked_at + run.seconds,
            _ => entry.asked_at,
        })
    }

    /// The exit code of the first run.
    pub fn status(&self) -> u8 {
        self.alone().next().map_or(0, |run| run.status)
    }

    /// How often the program has run.
    pub fn count(&self) -> usize {
        self.ran().count() + usize::from(self.first.is_some())
    }

    /// The runs of this kind; `None`: there are none.
    pub fn like(&self, trial: &Trial) -> Option<Runs> {
        let kind = |(way, runs): &(Way, Runs)| {
            *way == trial.way && runs.ram_bytes == trial.ram_bytes && runs.cold != trial.cold.is_empty()
        };
        self.kinds().into_iter().find(kind).map(|kind| kind.1)
    }

    /// The runs of one way in that RAM; `None`: there are none.
    pub fn paged(&self, way: &Way, ram_bytes: u64) -> Option<Runs> {
        self.kinds()
            .into_iter()
            .find(|(known, runs)| known == way && runs.ram_bytes == Some(ram_bytes))
            .map(|kind| kind.1)
    }

    /// The runs of that many at a time.
    pub fn of_jobs(&self, jobs: u32) -> Runs {
        let mut runs = Runs::default();
        self.ran().filter(|(trial, _)| trial.jobs == Some(jobs)).for_each(|(_, run)| runs.add(run, None));
        runs
    }

    /// Why the program could not be run by this way in that RAM; `None`: it could.
    pub fn refusal(&self, way: &Way, ram_bytes: u64) -> Option<String> {
        self.entries.iter().find_map(|entry| match &entry.outcome {
            Outcome::Refused(why) if entry.trial.way == *way && entry.trial.ram_bytes == Some(ram_bytes) => {
                Some(why.message.clone())
            }
            _ => None,
        })
    }

    /// The runs in less RAM by way and size, in the order of their first runs.
    pub fn kinds(&self) -> Vec<(Way, Runs)> {
        let mut kinds: Vec<(Way, Runs)> = Vec::new();
        for (trial, run) in self.ran().filter(|(trial, _)| trial.way.by != By::Plain) {
            let cold = !trial.cold.is_empty();
            let known = kinds
                .iter()
                .position(|(way, runs)| *way == trial.way && runs.ram_bytes == trial.ram_bytes && runs.cold == cold);
            let place = known.unwrap_or_else(|| {
                kinds.push((trial.way.clone(), Runs { cold, ..Runs::new(&trial.way, trial.ram_bytes) }));
                kinds.len() - 1
            });
            kinds[place].1.add(run, self.unlike(run));
        }
        kinds
    }
}
