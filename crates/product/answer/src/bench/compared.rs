//! The results of a comparison: the runs of each way of paging at each size of RAM, their statistics, the fastest way.

use schemars::JsonSchema;
use serde::Serialize;

/// One run.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Timed {
    /// Wall time.
    pub seconds: f64,
    /// Exit code.
    pub status: u8,
    /// Its output is the first plain run's.
    pub equal: bool,
    /// It was ended because it took too long.
    pub too_long: bool,
    /// The kernel has killed a process for lack of memory.
    pub killed: bool,
}

/// The runs without a limit, which the others are held against.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Plain {
    /// The median of their times.
    pub median_seconds: f64,
    /// Their output is another one each time.
    pub varies: bool,
    /// The runs.
    pub runs: Vec<Timed>,
}

/// A way of paging at a size of RAM, and its runs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Arm {
    /// Its name.
    pub by: &'static str,
    /// The median of the runs that ended as the plain one did.
    pub median_seconds: Option<f64>,
    /// Why coldframe could not run it.
    pub failed: Option<String>,
    /// The command that runs the program so, as a shell reads it.
    pub command: String,
    /// Its runs.
    pub runs: Vec<Timed>,
}

/// A size of RAM.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Size {
    /// Bytes.
    pub ram_bytes: u64,
    /// The ways of paging.
    pub arms: Vec<Arm>,
}

/// The fastest way over all sizes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fastest {
    /// Its name.
    pub by: &'static str,
    /// Its time as a multiple of the plain run's: the geometric mean over the sizes.
    pub times_plain: f64,
}

/// All results.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Bytes of the program's memory that can leave.
    pub memory_bytes: u64,
    /// The plain runs.
    pub plain: Plain,
    /// The sizes of RAM.
    pub sizes: Vec<Size>,
    /// Why other ways were left out.
    pub left_out: Vec<String>,
    /// The fastest way; null: no way ended as the plain run did, in each run at each size.
    pub fastest: Option<Fastest>,
}

impl Plain {
    fn is_like(&self, run: &Timed) -> bool {
        let status = self.runs.first().map_or(0, |run| run.status);
        (run.equal || self.varies) && run.status == status && !run.too_long && !run.killed
    }
}

impl Arm {
    /// Whether more runs are of use: it has not failed, and none took too long.
    pub fn goes_on(&self) -> bool {
        self.failed.is_none() && !self.runs.iter().any(|run| run.too_long)
    }

    /// The sorted times of the runs that ended as the plain one did.
    pub fn times(&self, plain: &Plain) -> Vec<f64> {
        sorted(self.runs.iter().filter(|run| plain.is_like(run)))
    }

    /// What became of the runs, the worst first.
    pub fn output(&self, plain: &Plain) -> String {
        let (all, count) =
            (self.runs.len(), |is: &dyn Fn(&Timed) -> bool| self.runs.iter().filter(|run| is(run)).count());
        let (killed, late) = (count(&|run| run.killed), count(&|run| run.too_long));
        match (killed, late, count(&|run| !plain.is_like(run))) {
            _ if self.failed.is_some() => "failed".into(),
            (0, 0, 0) if plain.varies => "not compared".into(),
            (0, 0, 0) => "same".into(),
            (0, 0, n) => format!("{n} of {all} other"),
            (0, n, _) => format!("{n} of {all} late"),
            (n, ..) => format!("{n} of {all} killed"),
        }
    }
}

/// The times of these runs, the shortest first.
pub fn sorted<'a>(runs: impl IntoIterator<Item = &'a Timed>) -> Vec<f64> {
    let mut seconds: Vec<f64> = runs.into_iter().map(|run| run.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// Of sorted seconds; `None`: there are none.
fn median(seconds: &[f64]) -> Option<f64> {
    let n = seconds.len();
    (n > 0).then(|| (seconds[(n - 1) / 2] + seconds[n / 2]) / 2.0)
}

impl Compared {
    /// Computes the statistics of the runs.
    pub fn finish(&mut self) {
        let plain = &mut self.plain;
        plain.median_seconds = median(&sorted(&plain.runs)).unwrap_or(0.0).max(1e-9);
        plain.varies = plain.runs.iter().any(|run| !run.equal);
        for arm in self.sizes.iter_mut().flat_map(|size| &mut size.arms) {
            arm.median_seconds = median(&arm.times(plain));
        }
        self.fastest = self.fastest();
    }

    /// Of the ways whose runs all ended as the plain run did.
    fn fastest(&self) -> Option<Fastest> {
        let plain = &self.plain;
        let time = |size: &Size, by: &str| {
            let arm = size.arms.iter().find(|arm| arm.by == by)?;
            let all = arm.failed.is_none() && arm.times(plain).len() == arm.runs.len();
            arm.median_seconds.filter(|_| all)
        };
        let mean = |by| {
            let times: Option<Vec<f64>> = self.sizes.iter().map(|size| time(size, by)).collect();
            times.map(|times| {
                (times.iter().map(|time| (time / plain.median_seconds).ln()).sum::<f64>() / times.len() as f64).exp()
            })
        };
        let arms = self.sizes.first()?.arms.iter();
        let means = arms.filter_map(|arm| Some(Fastest { by: arm.by, times_plain: mean(arm.by)? }));
        means.min_by(|a, b| a.times_plain.total_cmp(&b.times_plain))
    }

    /// The command of the fastest way at the first size.
    pub fn command(&self) -> Option<&str> {
        let fastest = self.fastest.as_ref()?;
        let arm = self.sizes.first()?.arms.iter().find(|arm| arm.by == fastest.by);
        arm.map(|arm| arm.command.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(by: &'static str, seconds: &[f64], killed: bool) -> Arm {
        let run = |seconds: &f64| Timed { seconds: *seconds, equal: true, killed, ..Timed::default() };
        Arm { by, runs: seconds.iter().map(run).collect(), ..Arm::default() }
    }

    fn compared() -> Compared {
        let at = |ram_bytes, fast, killed| Size {
            ram_bytes,
            arms: vec![arm("slow", &[3.0, 4.0, 5.0], false), arm("fast", &[fast], false), arm("dead", &[0.1], killed)],
        };
        let plain = Plain { runs: arm("", &[1.0, 2.0, 9.0], false).runs, ..Plain::default() };
        let sizes = vec![at(2 << 20, 1.9, false), at(1 << 20, 7.0, true)];
        let mut all = Compared {
            schema_version: 1,
            version: "0",
            program: vec![],
            memory_bytes: 4 << 20,
            plain,
            sizes,
            left_out: vec![],
            fastest: None,
        };
        all.finish();
        all
    }

    #[test]
    fn the_fastest_is_the_one_whose_runs_all_ended_as_the_plain_run_did() {
        let fastest = compared().fastest.unwrap();
        // slow: 4/2 and 4/2. fast: 1.9/2 and 7/2, mean 1.82. dead is faster, but was killed at the second size.
        assert!(fastest.by == "fast" && (fastest.times_plain - (0.95f64 * 3.5).sqrt()).abs() < 1e-9, "{fastest:?}");
    }

    #[test]
    fn runs_that_failed_or_print_another_output_each_time_are_apart() {
        let mut all = compared();
        all.sizes
            .iter_mut()
            .flat_map(|at| &mut at.arms)
            .flat_map(|arm| &mut arm.runs)
            .for_each(|run| run.equal = false);
        all.sizes[1].arms[1].failed = Some("no space".into());
        all.finish();
        assert!(all.fastest.is_none() && all.sizes[0].arms[0].output(&all.plain) == "3 of 3 other");
        all.plain.runs[1].equal = false;
        all.finish();
        assert!(all.fastest.as_ref().is_some_and(|best| best.by == "slow"), "{all:?}");
        assert_eq!(all.sizes[0].arms[0].output(&all.plain), "not compared");
    }
}
