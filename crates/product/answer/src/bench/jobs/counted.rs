//! What the runs of each number have shown: the fastest number, the largest that lives, and the RAM of one.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::log::RunLog;
use super::super::rules::REPEATS;
use crate::run::program::line;
use crate::run::runs::NO_SWAP;

/// Where the number stands in a command line.
pub const NUMBER: &str = "{n}";
/// One or two runs of each differ if they differ by more than this part.
const SINGLE: f64 = 0.25;
/// Three runs of each differ by more than this part if no run of the one is as short as one of the other. Of runs that
/// do not differ, these are so by chance in one of 20 cases.
const REPEATED: f64 = 0.05;
/// With swap, memory that is this part of the limit may have been more.
const FULL: f64 = 0.9;

/// What became of a number of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobsEnd {
    /// It ended well; a server was there until the end of its time.
    Lives,
    /// The kernel has killed a process of it for lack of memory.
    Killed,
    /// It ended with an exit code other than 0; a server ended by itself.
    Failed,
    /// It took so long that it was ended.
    Late,
}

/// The runs of one number.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct JobRuns {
    /// The number.
    pub jobs: u32,
    /// The worst end of its runs.
    pub end: JobsEnd,
    /// The exit code of the last run.
    pub status: u8,
    /// The median of its runs, in seconds; of runs that did not end well, until then.
    pub seconds: f64,
    /// The shortest and the longest of them.
    pub range_seconds: (f64, f64),
    /// Runs.
    pub runs: usize,
    /// The most RAM that cannot leave without swap: all but files; 0: not seen.
    pub fixed_bytes: u64,
    /// Files in the cache beside it.
    pub files_bytes: u64,
}

impl JobRuns {
    /// Of the runs of a number; `None`: there are none. `serves`: its end is no good one.
    pub fn judge(log: &RunLog, jobs: u32, serves: bool) -> Option<JobRuns> {
        let kind = log.of_jobs(jobs);
        let (last, runs) = (kind.runs.last()?, &kind.runs);
        let end = match () {
            () if runs.iter().any(|run| run.killed) => JobsEnd::Killed,
            () if serves && runs.iter().all(|run| run.too_long) => JobsEnd::Lives,
            () if serves || runs.iter().any(|run| !run.too_long && run.status != 0) => JobsEnd::Failed,
            () if kind.more => JobsEnd::Late,
            () => JobsEnd::Lives,
        };
        let groups = || runs.iter().filter_map(|run| run.group);
        Some(JobRuns {
            jobs,
            end,
            status: last.status,
            seconds: kind.seconds,
            range_seconds: kind.range().unwrap_or((kind.seconds, kind.seconds)),
            runs: runs.len(),
            fixed_bytes: groups().map(|group| group.fixed_bytes).max().unwrap_or(0),
            files_bytes: groups().map(|group| group.files_bytes).max().unwrap_or(0),
        })
    }

    /// Of each number that has run, the least first.
    pub fn each(log: &RunLog, serves: bool) -> Vec<JobRuns> {
        let mut jobs: Vec<u32> = log.entries().iter().filter_map(|entry| entry.trial.jobs).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.into_iter().filter_map(|jobs| JobRuns::judge(log, jobs, serves)).collect()
    }

    /// Whether it lives.
    pub fn lives(&self) -> bool {
        self.end == JobsEnd::Lives
    }

    /// Seconds of its work: of copies, of one of them.
    pub fn cost(&self, copies: bool) -> f64 {
        self.seconds / self.share(copies)
    }

    fn share(&self, copies: bool) -> f64 {
        if copies {
            f64::from(self.jobs)
        } else {
            1.0
        }
    }

    /// Whether it was measured as slower than another number.
    pub fn is_slower(&self, other: &JobRuns, copies: bool) -> bool {
        let part = if self.runs.min(other.runs) >= REPEATS { REPEATED } else { SINGLE };
        let (shortest, longest) =
            (self.range_seconds.0 / self.share(copies), other.range_seconds.1 / other.share(copies));
        self.cost(copies) > (1.0 + part) * other.cost(copies) && shortest > longest
    }
}

/// Of those that live, the one whose work takes least.
pub fn cheapest(sizes: &[JobRuns], copies: bool) -> Option<&JobRuns> {
    let living = sizes.iter().filter(|size| size.lives());
    living.min_by(|a, other| a.cost(copies).total_cmp(&other.cost(copies)))
}

/// Of those that live, the least number that is not slower than any.
pub fn fastest(sizes: &[JobRuns], copies: bool) -> Option<&JobRuns> {
    let cheapest = cheapest(sizes, copies)?;
    sizes.iter().find(|size| size.lives() && !size.is_slower(cheapest, copies))
}

/// How many at a time fit into so much RAM.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct HowManyFit {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The program and its arguments, `{n}` where the number stands.
    pub program: Vec<String>,
    /// There is no `{n}`: the number is that of copies at a time.
    pub copies: bool,
    /// The RAM.
    pub ram_bytes: u64,
    /// The swap beside it.
    pub swap: String,
    /// It is a server, which was left running for so long; null: it ends by itself.
    pub served_seconds: Option<f64>,
    /// What ran before each run, outside of its time.
    pub prepare: Option<String>,
    /// No larger number was wanted.
    pub up_to: u32,
    /// The least number that is not slower than any; null: none lives, or it is a server.
    pub fastest: Option<u32>,
    /// The largest number that lives; null: not even one does.
    pub largest: Option<u32>,
    /// What each further one takes on average, up to the largest that lives; null: not seen.
    pub each_more_bytes: Option<u64>,
    /// What the first one takes more than that: shared, or not in use at the same time.
    pub shared_bytes: Option<u64>,
    /// Processors that other programs used meanwhile; null: this kernel does not count them.
    pub others: Option<f64>,
    /// Each number that was run, the least first.
    pub sizes: Vec<JobRuns>,
}

impl HowManyFit {
    /// The runs of one number; `None`: there are none.
    pub fn size(&self, jobs: u32) -> Option<&JobRuns> {
        self.sizes.iter().find(|size| size.jobs == jobs)
    }

    /// The least number above that was run.
    pub fn above(&self, jobs: u32) -> Option<&JobRuns> {
        self.sizes.iter().find(|size| size.jobs > jobs)
    }

    /// The least number that does not live.
    pub fn dead(&self) -> Option<&JobRuns> {
        self.sizes.iter().find(|size| !size.lives())
    }

    /// The command line with that number; of copies, how many of it.
    pub fn name(&self, jobs: u32) -> String {
        name(&self.program, jobs)
    }

    /// The number as the command line has it: `-j4`, `-w 4`, `4 copies`.
    pub fn short(&self, jobs: u32) -> String {
        let Some(place) = self.program.iter().position(|word| word.contains(NUMBER)) else { return copies(jobs) };
        let with = |word: &str| word.replace(NUMBER, &jobs.to_string());
        match (&self.program[place], self.program[..place].last()) {
            (word, Some(option)) if word == NUMBER && option.starts_with('-') => format!("{option} {jobs}"),
            (word, _) if word.contains(char::is_whitespace) || word == NUMBER => format!("n = {jobs}"),
            (word, _) => with(word),
        }
    }

    /// What one takes and what each further one does, from the numbers that live.
    pub(super) fn with_memory(mut self) -> HowManyFit {
        let pair = self.largest.filter(|jobs| *jobs > 1).and_then(|jobs| self.size(1).zip(self.size(jobs)));
        let full = |size: &JobRuns| self.swap != NO_SWAP && size.fixed_bytes as f64 > FULL * self.ram_bytes as f64;
        let seen = pair.filter(|(one, many)| one.fixed_bytes > 0 && many.fixed_bytes > 0 && !full(many));
        let each = |(one, many): (&JobRuns, &JobRuns)| {
            let each = many.fixed_bytes.saturating_sub(one.fixed_bytes) / u64::from(many.jobs - 1);
            (each, one.fixed_bytes.saturating_sub(each))
        };
        (self.each_more_bytes, self.shared_bytes) = seen.map(each).unzip();
        self
    }
}

/// The command line with that number; of copies, how many of it.
pub(super) fn name(program: &[String], jobs: u32) -> String {
    let words: Vec<String> = program.iter().map(|word| word.replace(NUMBER, &jobs.to_string())).collect();
    match program.iter().any(|word| word.contains(NUMBER)) {
        true => line(&words),
        false => format!("{} of {}", copies(jobs), line(&words)),
    }
}

fn copies(jobs: u32) -> String {
    if jobs == 1 {
        "1 copy".into()
    } else {
        format!("{jobs} copies")
    }
}
