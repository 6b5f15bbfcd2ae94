//! The results of a comparison: the runs of each way of paging at each size of RAM, and the fastest way.

use schemars::JsonSchema;
use serde::Serialize;

use crate::run::runs::Runs;

/// A way of paging at a size of RAM, and its runs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// The command that runs the program so, as a shell reads it.
    pub command: String,
    /// Why coldframe could not run it.
    pub refused: Option<String>,
    /// Its runs; none if it took too long in a larger limit.
    #[serde(flatten)]
    pub runs: Runs,
}

/// A limit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SizeRuns {
    /// The limit, in bytes.
    pub ram_bytes: u64,
    /// The ways of paging.
    pub ways: Vec<Contender>,
}

/// The fastest way over all sizes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fastest {
    /// Its name.
    pub name: String,
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
    /// The most that its memory group was charged without a limit; percentages are of it.
    pub peak_bytes: u64,
    /// Whether it ran in groups. Otherwise the peak is what its processes had in RAM.
    pub in_group: bool,
    /// The runs without a limit, which the others are held against.
    pub plain: Runs,
    /// Their output is another one each time, so that outputs are not compared.
    pub varies: bool,
    /// The limits.
    pub sizes: Vec<SizeRuns>,
    /// Why other ways were left out.
    pub left_out: Vec<String>,
    /// The fastest way; null: no way ended as the plain run did, in each run at each size.
    pub fastest: Option<Fastest>,
}

impl Contender {
    /// What became of the runs, the worst first. `varies`: outputs are not compared. Not run: it took too long in a
    /// larger limit.
    pub fn output(&self, varies: bool) -> String {
        let runs = &self.runs.runs;
        let killed = runs.iter().filter(|run| run.killed).count();
        let late = runs.iter().filter(|run| run.too_long).count();
        let other = runs.iter().filter(|run| !run.alike).count();
        match (killed, late, other) {
            _ if self.refused.is_some() => "failed".into(),
            _ if runs.is_empty() => "not run".into(),
            (0, 0, 0) if varies => "not compared".into(),
            (0, 0, 0) => "same".into(),
            (0, 0, n) => format!("{n} of {} other", runs.len()),
            (0, n, _) => format!("{n} of {} late", runs.len()),
            (n, ..) => format!("{n} of {} killed", runs.len()),
        }
    }

    /// The median, if all runs ended by themselves and as the program alone.
    fn seconds(&self) -> Option<f64> {
        let ended = self.runs.ended().len() == self.runs.runs.len();
        self.runs.ended_seconds().filter(|_| ended && self.refused.is_none())
    }
}

/// Of the ways whose runs all ended as the plain run did.
pub fn fastest(plain: &Runs, sizes: &[SizeRuns]) -> Option<Fastest> {
    let seconds = |size: &SizeRuns, name: &str| size.ways.iter().find(|way| way.name == name)?.seconds();
    let mean = |name: &str| {
        let times: Option<Vec<f64>> = sizes.iter().map(|size| seconds(size, name)).collect();
        let times = times?.into_iter().map(|time| (time / plain.seconds.max(1e-9)).ln()).collect::<Vec<_>>();
        Some((times.iter().sum::<f64>() / times.len() as f64).exp())
    };
    let ways = sizes.first()?.ways.iter();
    let means = ways.filter_map(|way| Some(Fastest { name: way.name.clone(), times_plain: mean(&way.name)? }));
    means.min_by(|a, other| a.times_plain.total_cmp(&other.times_plain))
}

impl Compared {
    /// The command of the fastest way at the first size.
    pub fn command(&self) -> Option<&str> {
        let fastest = self.fastest.as_ref()?;
        let way = self.sizes.first()?.ways.iter().find(|way| way.name == fastest.name);
        way.map(|way| way.command.as_str())
    }
}
