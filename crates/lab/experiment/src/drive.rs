//! Runs settings over a trace, for each source of references: one string, tasks under a scheduler or in the
//! foreground, a kernel's swaps.

use std::path::Path;

use crate::error::ExperimentError;
use crate::progress::{Progress, Sink};
use crate::resolve::drive_of;
pub use crate::resolve::Drive;
use crate::result::RunResult;
use crate::settings::Settings;
use crate::sim_result::{Sections, SimResult};
use crate::string::{self, sha256, Ask};
use crate::swap::{self, SwapOutcome};
use crate::tasks::{self, TasksOutcome};
use crate::traced::Trace;

/// The results of one driver's runs.
pub enum Outcomes {
    String(Vec<RunResult>),
    /// Several tasks, under a scheduler or in the foreground in turn.
    Tasks(Vec<TasksOutcome>),
    SwapTrace(Vec<SwapOutcome>),
}

/// Swap traces are CSV; references come as Parquet.
pub fn is_swap_trace(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let bare = [".zst", ".gz", ".xz"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    bare.ends_with(".csv")
}

/// The driver for these configurations over this trace.
pub fn of(path: &Path, all: &[Settings]) -> Drive {
    match is_swap_trace(path) {
        true => Drive::SwapTrace,
        false => drive_of(all),
    }
}

/// Runs every configuration over the trace. If a receiver is given, it gets the first one's journal in pieces.
///
/// # Errors
/// Settings do not resolve or do not fit the trace, or the trace cannot be read; an oracle has no journal.
pub fn run(
    path: &Path,
    all: &[Settings],
    journal: Option<Sink<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcomes, ExperimentError> {
    Ok(match of(path, all) {
        Drive::String => {
            let ask = Ask { journal, ..Ask::default() };
            Outcomes::String(string::simulate(path, all, ask, progress)?)
        }
        Drive::Tasks | Drive::Foreground => Outcomes::Tasks(tasks::run_prefix(path, all, u64::MAX, journal, progress)?),
        Drive::SwapTrace => Outcomes::SwapTrace(swap::run(path, all, journal, progress)?),
    })
}

impl Outcomes {
    /// In the form of the JSON output.
    pub fn results(&self, path: &Path) -> Result<Vec<SimResult>, ExperimentError> {
        Ok(match self {
            Outcomes::String(all) => all.iter().map(SimResult::from).collect(),
            Outcomes::Tasks(all) => all.iter().map(SimResult::from).collect(),
            Outcomes::SwapTrace(all) => {
                let notes = all.first().map(|outcome| outcome.notes.clone()).unwrap_or_default();
                let (path, sha256) = (path.display().to_string(), sha256(path)?);
                let trace = Trace { path, sha256, notes, ..Trace::default() };
                let result = |of: &SwapOutcome| Sections::SwapTrace(of.result.clone());
                all.iter().map(|of| SimResult::new(trace.clone(), of.config.clone(), result(of))).collect()
            }
        })
    }
}
