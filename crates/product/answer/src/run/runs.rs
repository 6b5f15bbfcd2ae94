//! A run that has ended, and the runs of one way in one size of RAM.

use std::fmt;

use coldframe_kernel::SwapKind;
use coldframe_proc::Files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::looks::group::GroupUse;
use crate::run::runtime::Setting;
use crate::run::streams::Output;

/// Who pages a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Nobody: the program alone.
    #[default]
    Plain,
    /// Our pager.
    Pager,
    /// The kernel.
    Kernel,
}

/// The swap of a group whose data cannot leave.
pub const NO_SWAP: &str = "none";

/// Who pages a run, with which swap, and what its RAM is for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// Who pages.
    pub by: By,
    /// The swap that is made for it, if the kernel pages it; `None`: that of the machine.
    pub swap: Option<String>,
    /// A setting of the program's runtime.
    pub setting: Option<Box<Setting>>,
}

impl Way {
    /// The program alone.
    pub fn plain() -> Way {
        Way::default()
    }

    /// By our pager.
    pub fn pager() -> Way {
        Way { by: By::Pager, ..Way::default() }
    }

    /// In a memory group with a limit and without swap, as in most containers.
    pub fn limit() -> Way {
        Way::kernel(Some(NO_SWAP.into()))
    }

    /// By the kernel, with that swap.
    pub fn kernel(swap: Option<String>) -> Way {
        Way { by: By::Kernel, swap, ..Way::default() }
    }
}

/// A run that has ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its time.
    pub seconds: f64,
    /// Its exit code, as a shell reports it.
    pub status: u8,
    /// It was ended because it took too long.
    pub too_long: bool,
    /// The kernel has killed a process for lack of memory.
    pub killed: bool,
    /// It took more RAM than its limit: by our pager, memory that is not paged cannot be held back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_limit: bool,
    /// It ended as the program alone.
    pub alike: bool,
    /// Pages that came back from the device.
    pub page_reads: u64,
    /// What it wrote; `None`: not known, or a process in the background still writes.
    #[serde(skip)]
    pub output: Option<Output>,
    /// Alone: the most anonymous memory that its first process has had in RAM at a time, and for a run that the user
    /// saw all memory of that process. Where the RAM is for all memory: the most of its group. 0: not known.
    #[serde(skip)]
    pub peak_bytes: u64,
    /// In less RAM: the most memory that can leave and was in RAM at one time.
    #[serde(skip)]
    pub managed_bytes: u64,
    /// Whether our pager had no page to evict.
    #[serde(skip)]
    pub evicted_nothing: bool,
    /// What its memory group has counted; `None`: it ran in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupUse>,
    /// The files that it mapped, if that was looked at.
    #[serde(skip)]
    pub files: Files,
    /// Why the program cannot run again with the same input.
    #[serde(skip)]
    pub input_lost: Option<String>,
}

/// How a run ended otherwise than the program alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// The kernel killed it.
    Killed,
    /// It took more RAM than its limit.
    OverLimit,
    /// Its exit code, and that of the program alone.
    Status(u8, u8),
    /// Its output differs in more than numbers.
    Output,
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlike::Killed => f.write_str("the kernel killed it for lack of memory"),
            Unlike::OverLimit => f.write_str("it took more RAM than its limit"),
            Unlike::Status(status, alone) => write!(f, "it ended with exit code {status} instead of {alone}"),
            Unlike::Output => f.write_str("its output was another one"),
        }
    }
}

/// The runs of one way in one size of RAM.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Who paged them.
    pub by: By,
    /// The swap that was made for them; `None`: that of the machine.
    pub swap: Option<String>,
    /// The setting of the program's runtime that it ran with, as `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The limit; `None`: there was none.
    pub ram_bytes: Option<u64>,
    /// The files that the program maps left the page cache before each run, so that its group pays for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// The median of the runs, in seconds.
    pub seconds: f64,
    /// Most of them were ended after this time: they take longer.
    pub more: bool,
    /// Each run.
    pub runs: Vec<Run>,
    /// Pages that came back from the device, in the last run.
    pub page_reads: u64,
    /// How the first of these ended, or why there is no run; `None`: all ended as the program alone.
    pub failed: Option<String>,
}

impl Runs {
    /// No run yet.
    pub fn new(way: &Way, ram_bytes: Option<u64>) -> Runs {
        let setting = way.setting.as_ref().map(|setting| setting.words());
        Runs { by: way.by, swap: way.swap.clone(), setting, ram_bytes, ..Runs::default() }
    }

    /// Adds a run. `unlike`: how it ended otherwise than the program alone.
    pub fn add(&mut self, run: &Run, unlike: Option<Unlike>) {
        self.runs.push(Run { alike: unlike.is_none(), ..run.clone() });
        self.page_reads = run.page_reads;
        if let (Some(unlike), None) = (unlike, &self.failed) {
            self.failed = Some(unlike.to_string());
        }
        let late = self.runs.iter().filter(|run| run.too_long).count();
        self.more = 2 * late > self.runs.len();
        self.seconds = median(&sorted(self.runs.iter())).unwrap_or(0.0);
    }

    /// The times of the runs that ended by themselves and as the program alone, the shortest first.
    pub fn ended(&self) -> Vec<f64> {
        sorted(self.runs.iter().filter(|run| run.alike && !run.too_long))
    }

    /// The median of these; `None`: there are none.
    pub fn ended_seconds(&self) -> Option<f64> {
        median(&self.ended())
    }

    /// Whether they ended as the program alone, within so many seconds.
    pub fn within(&self, seconds: f64) -> bool {
        self.failed.is_none() && !self.more && self.seconds <= seconds
    }

    /// Whether they ran in a limit without swap, and as the program's runtime is.
    pub fn is_limit(&self) -> bool {
        self.by == By::Kernel && self.swap.as_deref() == Some(NO_SWAP) && self.setting.is_none()
    }

    /// Where their pages went, for people: `none`, the kind of swap, `our pager`.
    pub fn swap_words(&self) -> &'static str {
        match (self.by, self.swap.as_deref()) {
            (By::Pager, _) => "our pager",
            (By::Plain, _) => NO_SWAP,
            (By::Kernel, None) => "this machine's",
            (By::Kernel, Some(swap)) => SwapKind::parse(swap).word(),
        }
    }

    /// The shortest and the longest run; `None`: there is one run, or none.
    pub fn range(&self) -> Option<(f64, f64)> {
        let times = sorted(self.runs.iter());
        (times.len() > 1).then(|| (times[0], times[times.len() - 1]))
    }

    /// The range of the runs as a part of their median; 0: of one run.
    pub fn noise(&self) -> f64 {
        self.range().map_or(0.0, |(low, high)| (high - low) / self.seconds.max(f64::MIN_POSITIVE))
    }

    /// What the group of the run was charged that took most; `None`: they ran in none.
    pub fn group(&self) -> Option<GroupUse> {
        self.runs.iter().filter_map(|run| run.group).max_by_key(|group| group.peak_bytes)
    }

    /// The most that the group of one of the runs was charged; `None`: they ran in none.
    pub fn group_peak(&self) -> Option<u64> {
        self.group().map(|group| group.peak_bytes)
    }

    /// The most memory that one of the runs has had; 0: not known.
    pub fn peak_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.peak_bytes).max().unwrap_or(0)
    }
}

/// The times of these runs, the shortest first.
fn sorted<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<f64> {
    let mut times: Vec<f64> = runs.map(|run| run.seconds).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The median of sorted times; of an even number the shorter one in the middle, since other programs only make runs
/// longer. `None`: there are none.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_one_run_has_no_range() {
        let run = |seconds| Run { seconds, page_reads: 7, ..Run::default() };
        let mut runs = Runs::new(&Way::pager(), Some(1 << 20));
        runs.add(&run(2.0), None);
        assert_eq!((runs.seconds, runs.range(), runs.noise()), (2.0, None, 0.0));
        [9.0, 3.0].into_iter().for_each(|seconds| runs.add(&run(seconds), None));
        assert_eq!((runs.seconds, runs.range()), (3.0, Some((2.0, 9.0))));
        assert!(runs.within(3.0) && !runs.within(2.9));
        // A run that was ended is longer than the median, and most runs decide.
        runs.add(&Run { too_long: true, ..run(9.0) }, None);
        assert!(runs.within(3.0) && !runs.more);
        (0..5).for_each(|_| runs.add(&Run { too_long: true, ..run(9.0) }, None));
        assert!(runs.more && !runs.within(10.0));
    }

    #[test]
    fn runs_of_which_one_ended_otherwise_are_not_within() {
        for unlike in [Unlike::Killed, Unlike::Status(3, 0), Unlike::Output] {
            let mut runs = Runs::new(&Way::pager(), Some(1 << 20));
            runs.add(&Run { seconds: 1.0, ..Run::default() }, None);
            runs.add(&Run { seconds: 1.0, ..Run::default() }, Some(unlike));
            assert!(!runs.within(9.0) && runs.ended() == [1.0], "{runs:?}");
            assert_eq!(runs.failed, Some(unlike.to_string()));
        }
    }
}
