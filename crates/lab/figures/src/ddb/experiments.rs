//! The runs behind the figures: one program without and with the scheme, with main memory from 0.3 to 1.2 of its
//! working set.

use std::path::{Path, PathBuf};

use coldframe_experiment::result::RunResult;
use coldframe_experiment::settings::{Limit, Settings};
use coldframe_experiment::string;
use coldframe_experiment::systems::ddb;
use coldframe_experiment::ExperimentError;

/// The paper's programs and our recordings of them.
pub const PROGRAMS: [(&str, &str); 3] =
    [("cjpeg", "cjpeg.parquet"), ("djpeg", "djpeg.parquet"), ("fft", "fft.parquet")];

/// The handler without the scheme, as on NAND: load, move, run (section II.2 and figure 3).
const PLAIN: &str = "sequential";

/// Accesses below the caches that the paper simulates (section III.2).
pub const ACCESSES: u64 = 100_000;

/// Main memory in tenths of the working set (figures 6 and 7).
pub const TENTHS: std::ops::RangeInclusive<u64> = 3..=12;

/// The largest main memory in KiB for which the working set is searched.
const LARGEST: u64 = 128;

/// The same program and RAM without and with the scheme.
pub struct Pair {
    pub before: RunResult,
    pub after: RunResult,
}

impl Pair {
    /// t_total with the scheme, percent of that without.
    pub fn time(&self) -> f64 {
        percent(total(&self.after), total(&self.before))
    }

    /// e_paging with the scheme, percent of that without.
    pub fn energy(&self) -> f64 {
        percent(energy(&self.after), energy(&self.before))
    }
}

/// t_total in milliseconds, equation 2.
pub fn total(result: &RunResult) -> f64 {
    result.t_total().map_or(f64::NAN, |t| t.0 as f64 / 1e9)
}

/// t_paging in milliseconds, equation 1.
fn paging(result: &RunResult) -> f64 {
    total(result) - result.idle.map_or(f64::NAN, |t| t.0 as f64 / 1e9)
}

/// e_paging in millijoules, equation 3.
pub fn energy(result: &RunResult) -> f64 {
    result.e_paging().map_or(f64::NAN, |e| e.total().0 as f64 / 1e9)
}

pub fn percent(a: f64, b: f64) -> f64 {
    a / b * 100.0
}

pub struct Program {
    /// The paper's name for it.
    pub name: &'static str,
    pub path: PathBuf,
    pub working_set: u64,
    /// One for each of `TENTHS`.
    pub pairs: Vec<Pair>,
    /// The same up to the first part of the accesses, which a warm window leaves out.
    start: Vec<Pair>,
}

/// The part of the accesses after which main memory counts as warm. The paper does not say where in its programs the
/// 100,000 accesses are. Chosen before any result.
const START: u64 = 5;

impl Program {
    /// Finds the working set, if none is given, and runs the pairs.
    pub fn measure(
        name: &'static str,
        path: &Path,
        known_working_set: Option<u64>,
    ) -> Result<Program, ExperimentError> {
        let working_set = known_working_set.map_or_else(|| working_set(path), Ok)?;
        let upto = |accesses| {
            let limit = Limit { accesses: Some(accesses), ..Limit::default() };
            let all = TENTHS.flat_map(|t| pair(frames(working_set, t)));
            let all: Vec<_> = all.map(|one| Settings { limit: limit.clone(), ..one }).collect();
            let mut results = string::run(path, &all, &mut |_| {})?.into_iter();
            let mut pairs = Vec::new();
            while let (Some(before), Some(after)) = (results.next(), results.next()) {
                pairs.push(Pair { before, after });
            }
            Ok::<_, ExperimentError>(pairs)
        };
        let pairs = upto(ACCESSES)?;
        let start = upto(accesses(&pairs) / START)?;
        Ok(Program { name, path: path.into(), working_set, pairs, start })
    }

    /// A window without the first part of the accesses: t_total and e_paging with the scheme, percent of those without.
    /// Idle time is so much for each access.
    pub fn warm(&self, tenths: u64, idle_ms: f64) -> [f64; 2] {
        let (whole, start) = (self.at(tenths), &self.start[(tenths - TENTHS.start()) as usize]);
        let idle = idle_ms * (self.accesses() - accesses(&self.start)) as f64;
        let time = |whole: &RunResult, start: &RunResult| paging(whole) - paging(start) + idle;
        let joules = |whole: &RunResult, start: &RunResult| energy(whole) - energy(start);
        let part = |of: &dyn Fn(&RunResult, &RunResult) -> f64| {
            percent(of(&whole.after, &start.after), of(&whole.before, &start.before))
        };
        [part(&time), part(&joules)]
    }

    pub fn at(&self, tenths: u64) -> &Pair {
        &self.pairs[(tenths - TENTHS.start()) as usize]
    }

    /// Accesses below the caches that were simulated.
    pub fn accesses(&self) -> u64 {
        accesses(&self.pairs)
    }
}

fn accesses(pairs: &[Pair]) -> u64 {
    let front = &pairs[0].before.front_end;
    front.memory_reads + front.memory_writes
}

/// Frames for this many tenths of a working set, to the nearest page.
fn frames(working_set: u64, tenths: u64) -> u64 {
    ((working_set * tenths + 5) / 10).max(1)
}

fn settings(handler: &str, frames: u64) -> Settings {
    Settings {
        system: Some("ddb".into()),
        handler: Some(handler.into()),
        frames: Some(frames),
        limit: Limit { accesses: Some(ACCESSES), ..Limit::default() },
        ..Settings::default()
    }
}

/// Without the scheme, then with it.
pub fn pair(frames: u64) -> [Settings; 2] {
    [PLAIN, ddb::DELAYED].map(|handler| settings(handler, frames))
}

/// The paper finds its working sets where more main memory changes nearly nothing any more, and less makes the time
/// grow steeply (section III.3, on figure 5). It prints no rule. Ours: the least main memory with which the program
/// without the scheme takes at most twice as long as with main memory for all of its pages. Below that, loading pages
/// again takes longer than everything else.
fn working_set(path: &Path) -> Result<u64, ExperimentError> {
    let mut all: Vec<_> = (1..=LARGEST).map(|kib| settings(PLAIN, kib)).collect();
    all.push(Settings { frames: None, ram: Some("100%".into()), ..settings(PLAIN, 1) });
    let results = string::run(path, &all, &mut |_| {})?;
    let (everything, sizes) = results.split_last().expect("there are some");
    let smallest = sizes.iter().find(|result| total(result) <= 2.0 * total(everything));
    smallest.map(|result| result.frames as u64).ok_or_else(|| ExperimentError::Unfit {
        path: path.display().to_string(),
        reason: format!("its working set is more than {LARGEST} KiB; record a smaller program"),
    })
}
