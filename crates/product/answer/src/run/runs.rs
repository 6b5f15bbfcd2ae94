//! A run that has ended, and the runs of one kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::streams::Output;

/// A run that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Its time.
    pub seconds: f64,
    /// Its exit code, as a shell reports it.
    pub status: u8,
    /// It was ended because it took too long.
    pub too_long: bool,
    /// The kernel has killed a process for lack of memory.
    pub killed: bool,
    /// What it wrote; `None`: a process in the background still writes.
    pub output: Option<Output>,
    /// Pages that came back from the device.
    pub page_reads: u64,
    /// The most anonymous memory that its first process has had in RAM at a time, or all memory of its group; 0: not known.
    pub peak_bytes: u64,
}

/// Who pages a measured run.
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

/// Measured runs of one kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Who paged them.
    pub by: By,
    /// The swap that was made for them; `None`: that of the machine.
    pub swap: Option<String>,
    /// `--ram`; `None`: without a limit.
    pub ram_bytes: Option<u64>,
    /// The median of the runs, in seconds.
    pub seconds: f64,
    /// Most of them were ended after this time: they take longer.
    pub more: bool,
    /// Each run, in seconds.
    pub runs: Vec<f64>,
    /// Pages that came back from the device, in the last run.
    pub page_reads: u64,
    /// Why they do not count: they ended otherwise than the recorded run.
    pub failed: Option<String>,
    /// Runs that were ended because they took too long.
    #[serde(skip)]
    late: usize,
    /// The most memory of its group; 0: not known.
    #[serde(skip)]
    pub(crate) peak_bytes: u64,
}

impl Measured {
    /// Whether it ended as the recorded run, within so many seconds.
    pub fn within(&self, seconds: f64) -> bool {
        self.failed.is_none() && !self.more && self.seconds <= seconds
    }

    /// The shortest and the longest run; `None`: there is one run.
    pub fn range(&self) -> Option<(f64, f64)> {
        let ends = self.runs.iter().fold((f64::INFINITY, 0.0f64), |(low, high), run| (low.min(*run), high.max(*run)));
        (self.runs.len() > 1).then_some(ends)
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, ran: &Ran) {
        self.runs.push(ran.seconds);
        self.late += usize::from(ran.too_long);
        self.more = 2 * self.late > self.runs.len();
        (self.page_reads, self.peak_bytes) = (ran.page_reads, ran.peak_bytes);
        let mut sorted = self.runs.clone();
        sorted.sort_by(f64::total_cmp);
        self.seconds = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    }
}

impl Measured {
    /// No run yet.
    pub(crate) fn new(by: By, swap: Option<&str>, ram_bytes: Option<u64>) -> Measured {
        Measured { by, swap: swap.map(Into::into), ram_bytes, ..Measured::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_one_run_has_no_range() {
        let ran = |seconds| Ran { seconds, page_reads: 7, ..Ran::default() };
        let mut all = Measured::new(By::Pager, None, Some(1 << 20));
        all.add(&ran(2.0));
        assert_eq!((all.seconds, all.range()), (2.0, None));
        [9.0, 3.0].into_iter().for_each(|seconds| all.add(&ran(seconds)));
        assert_eq!((all.seconds, all.range()), (3.0, Some((2.0, 9.0))));
        assert!(all.within(3.0) && !all.within(2.9));
        // A run that was ended is longer than the median, and most runs decide.
        all.add(&Ran { too_long: true, ..ran(9.0) });
        assert!(all.within(6.0) && !all.more);
        (0..5).for_each(|_| all.add(&Ran { too_long: true, ..ran(9.0) }));
        assert!(all.more && !all.within(10.0));
    }
}
