//! A runner without programs, for tests of plans and of the sentences that they lead to: a table from RAM to seconds
//! and pages, on a machine with noise and drift, and programs that are killed, print something else, run once, or get a
//! signal.

use super::plan::Runner;
use super::trial::{Outcome, Refusal, Trial};
use crate::run::looks::group::GroupUse;
use crate::run::runs::{By, Run, Way};
use crate::run::streams::Output;

/// How a program behaves in less RAM by one pager.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// RAM in MiB, seconds and pages that come back, largest RAM first: between two sizes that of the smaller one.
    pub table: Vec<(u64, f64, u64)>,
    /// In less RAM than so many MiB the kernel kills it.
    pub killed_below: u64,
    /// Its exit code; 0: as alone.
    pub status: u8,
    /// What it prints; `None`: the same as alone.
    pub output: Option<&'static str>,
    /// Why it cannot be run so.
    pub refused: Option<&'static str>,
    /// The most memory of its group, or that can leave, in MiB.
    pub peak: u64,
    /// What its group has there; `None`: as without a limit.
    pub group: Option<GroupUse>,
    /// Whether our pager has no page to evict.
    pub evicts_nothing: bool,
}

/// A program and a machine.
#[derive(Clone, Debug)]
pub struct Fake {
    /// Its time alone, in seconds.
    pub seconds: f64,
    /// What it prints, run by run; the last one again and again.
    pub prints: Vec<&'static str>,
    /// Its exit code alone.
    pub status: u8,
    /// The most memory that was seen of it alone, in MiB.
    pub peak: u64,
    /// What its memory group has counted without a limit; `None`: it ran in none.
    pub group: Option<GroupUse>,
    /// By so many MiB each run alone takes more than the one before.
    pub grows: u64,
    /// By our pager, by the kernel with swap, and in a limit without swap.
    pub pager: Behaviour,
    /// The time of that many at a time, in seconds, and what they take in MiB; a server's is infinite. The kernel kills
    /// what takes more than the group's RAM.
    pub jobs: Vec<(u32, f64, u64)>,
    /// What a run takes after the first one, as a part of its time: it finds its work done.
    pub again: f64,
    /// By the kernel.
    pub kernel: Behaviour,
    /// In a limit without swap.
    pub limit: Behaviour,
    /// Each time is up to this part longer, by chance.
    pub noise: f64,
    /// Each run takes this part longer than the one before: the machine gets slower.
    pub drift: f64,
    /// Seconds by which other programs delay each run, again and again.
    pub delays: Vec<f64>,
    /// Why its input is lost after its first run.
    pub input_lost: Option<&'static str>,
    /// A signal ends the run of this number, from 0.
    pub signal_at: Option<usize>,
    /// The seed of chance.
    pub seed: u64,
    /// Seconds since the question was asked.
    pub clock: f64,
    /// The trials that were run.
    pub trials: Vec<Trial>,
}

impl Fake {
    /// A program that takes so many seconds alone, on a quiet machine.
    pub fn new(seconds: f64) -> Fake {
        Fake {
            seconds,
            prints: vec!["done"],
            status: 0,
            peak: 0,
            group: None,
            grows: 0,
            pager: Behaviour::default(),
            jobs: Vec::new(),
            again: 1.0,
            kernel: Behaviour::default(),
            limit: Behaviour::default(),
            noise: 0.0,
            drift: 0.0,
            delays: Vec::new(),
            input_lost: None,
            signal_at: None,
            seed: 1,
            clock: 0.0,
            trials: Vec::new(),
        }
    }

    /// A number from 0 to 1 for a run (splitmix64).
    fn chance(&self, run: usize) -> f64 {
        let mut bits = self.seed.wrapping_add((run as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
    }

    /// The run of that many at a time: what the table has for the largest number that is not larger.
    fn of_jobs(&self, trial: &Trial, jobs: u32, count: usize) -> Run {
        let row = self.jobs.iter().rfind(|(number, ..)| *number <= jobs).or(self.jobs.first());
        let (_, seconds, mib) = *row.expect("a table of jobs");
        let killed = trial.ram_bytes.is_some_and(|ram| mib << 20 > ram);
        let seconds = if killed { self.seconds / 2.0 } else { seconds };
        let part = if count > 0 { self.again } else { 1.0 };
        let fixed_bytes = (mib << 20).min(trial.ram_bytes.unwrap_or(u64::MAX));
        let group = Some(GroupUse { fixed_bytes, peak_bytes: fixed_bytes, ..GroupUse::default() });
        let status = if killed { 2 } else { self.status };
        Run { seconds: seconds * part, status, killed, group, ..Run::default() }
    }

    /// The run as the table has it.
    fn ended(&self, trial: &Trial, count: usize) -> Run {
        let printed = self.prints[count.min(self.prints.len() - 1)];
        let Some(ram) = trial.ram_bytes else {
            let output = Some(Output::digest(printed));
            let peak_bytes = self.peak << 20;
            let alone = self.trials.iter().filter(|trial| trial.ram_bytes.is_none()).count() as u64;
            let more = (alone.saturating_sub(1) * self.grows) << 20;
            let group = self.group.map(|group| GroupUse { peak_bytes: group.peak_bytes + more, ..group });
            return Run { seconds: self.seconds, status: self.status, output, peak_bytes, group, ..Run::default() };
        };
        let behaviour = self.behaviour(trial);
        let row = behaviour.table.iter().rfind(|(mib, ..)| *mib << 20 >= ram).or(behaviour.table.first());
        let (_, seconds, page_reads) = *row.unwrap_or(&(0, self.seconds, 0));
        let killed = ram < behaviour.killed_below << 20;
        // It dies before its end.
        let seconds = if killed && trial.way == Way::limit() { self.seconds / 2.0 } else { seconds };
        Run {
            seconds,
            status: if behaviour.status > 0 { behaviour.status } else { self.status },
            killed,
            page_reads,
            output: Some(Output::digest(behaviour.output.unwrap_or(printed))),
            peak_bytes: behaviour.peak << 20,
            managed_bytes: behaviour.peak << 20,
            evicted_nothing: behaviour.evicts_nothing,
            group: behaviour
                .group
                .or(self.group)
                .map(|group| GroupUse { peak_bytes: group.peak_bytes.min(ram), ..group }),
            ..Run::default()
        }
    }

    fn behaviour(&self, trial: &Trial) -> &Behaviour {
        match trial.way.by {
            By::Kernel if trial.way == Way::limit() => &self.limit,
            By::Kernel => &self.kernel,
            _ => &self.pager,
        }
    }
}

impl Runner for Fake {
    fn now(&self) -> f64 {
        self.clock
    }

    fn run(&mut self, trial: &Trial) -> Outcome {
        let count = self.trials.len();
        self.trials.push(trial.clone());
        if self.signal_at == Some(count) {
            return Outcome::Signal;
        }
        if let (Some(why), Some(_)) = (self.behaviour(trial).refused, trial.ram_bytes) {
            return Outcome::Refused(Refusal::new(4, why));
        }
        let mut run = trial.jobs.map_or_else(|| self.ended(trial, count), |jobs| self.of_jobs(trial, jobs, count));
        run.seconds *= (1.0 + self.noise * self.chance(count)) * (1.0 + self.drift).powi(count as i32);
        run.input_lost = self.input_lost.map(Into::into);
        // A machine that is busy delays a run; its work stays the same.
        let work = run.seconds;
        run.seconds += self.delays.get(count % self.delays.len().max(1)).copied().unwrap_or(0.0);
        run.group.iter_mut().filter(|group| group.others > 0.0).for_each(|group| {
            group.worked_seconds = Some(work);
            group.waited_seconds = Some(run.seconds - work);
        });
        if let Some(at_most) = trial.at_most.filter(|at_most| *at_most < run.seconds) {
            (run.seconds, run.too_long, run.output) = (at_most, true, None);
        }
        self.clock += run.seconds;
        Outcome::Ran(run)
    }
}
