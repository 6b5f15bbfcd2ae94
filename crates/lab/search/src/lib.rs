//! # coldframe-search: the smallest RAM of a board that meets the limits, its cost, and how sure the answer is
//!
//! - [`mod@question`] is the user's question, and [`limits`] are its conditions.
//! - `first` looks at the trace before the search.
//! - [`point`] is the result of one configuration. [`mod@cost`] prices a point relative to the same configuration with
//!   all the RAM that it could use.
//! - [`search`] looks for the smallest RAM.
//! - [`regions`] names the memory that costs most; [`json`] is the answer for machines.
#![forbid(unsafe_code)]

pub mod cost;
mod first;
pub mod json;
pub mod limits;
pub mod point;
pub mod question;
pub mod regions;
pub mod search;

use std::path::Path;

use coldframe_core::Bytes;
use coldframe_store::{Fidelity, Provenance, Reader};

use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::progress::Progress;
use coldframe_experiment::result::RunResult;
use coldframe_experiment::string;
use coldframe_experiment::tasks;

pub use cost::{Cost, Range};
use first::First;
pub use limits::Limits;
pub use point::Point;
pub use question::Question;
pub use regions::Region;
use search::Tried;

/// A configuration with its price.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub point: Point,
    pub cost: Cost,
    /// The limits that it misses, in words; empty if it meets them all.
    pub misses: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Advice {
    /// The trace, its hash and its fidelity.
    pub trace: coldframe_experiment::sim_result::Trace,
    /// Bytes of all pages that the trace touches: with this RAM no page is ever evicted.
    pub footprint: Bytes,
    /// The smallest RAM that meets the limits; `None` if no RAM does.
    pub best: Option<Candidate>,
    /// The next smaller RAM that was tried with the same configuration. It shows which limit binds.
    pub below: Option<Candidate>,
    /// The limits that bind, if no RAM meets them.
    pub binds: Vec<String>,
    /// The least slowdown for each RAM, as long as more RAM means less slowdown; RAM ascending.
    pub front: Vec<Candidate>,
    /// Everything that was tried on the whole trace: one list for each family, RAM ascending.
    pub curves: Vec<Vec<Candidate>>,
    /// The regions that cost most under the best configuration.
    pub regions: Vec<Region>,
    /// The best configuration's run, with its latencies, stages and energy; `None` for several tasks.
    pub run: Option<RunResult>,
    pub search: search::Searched,
    pub assumptions: Vec<String>,
    pub limits: Limits,
}

/// Answers a question about a trace.
///
/// # Errors
/// As [`experiment::run`]; a limit needs a number that the trace or the device's sheet lacks.
pub fn advise(path: &Path, question: &Question, progress: &mut dyn FnMut(Progress)) -> Result<Advice, ExperimentError> {
    let trace = Reader::open(path)?.provenance().clone();
    check_fidelity(path, &trace)?;
    let question = question.priced(&trace)?;
    let families = question.families();
    let first = First::look(path, &question, &families[0], &trace, progress)?;
    let footprint = first.footprint;
    let facts = string::facts(path, &trace)?;
    let mut tried = Tried::new((path, &facts), &question, families, first, progress)?;
    let searched = tried.search()?;
    let page = tried.page();
    let best = tried.best();
    let below = best.as_ref().and_then(|best| tried.below(best));
    let binds = if best.is_none() { tried.binds() } else { Vec::new() };
    let (front, curves) = (tried.front(), tried.curves());
    let (run, regions) = match &best {
        Some(best) if question.is_of_tasks() => {
            let outcomes = tasks::run(path, &[best.point.config.settings()?], &mut |_| {})?;
            (None, outcomes.first().map(regions::costliest_tasks).unwrap_or_default())
        }
        Some(best) => {
            let (run, costs) = tried.run_of(best)?;
            (Some(run), regions::costliest(costs, &trace))
        }
        None => (None, Vec::new()),
    };
    drop(tried);
    let assumptions = question.assumptions(&trace, best.as_ref());
    let footprint = Bytes(footprint as u64 * page.0);
    let limits = question.limits.clone();
    let search = searched;
    Ok(Advice { trace: facts, footprint, best, below, binds, front, curves, regions, run, search, assumptions, limits })
}

/// A trace without its hits cannot show the effect of RAM.
fn check_fidelity(path: &Path, trace: &Provenance) -> Result<(), ExperimentError> {
    let reason = match trace.fidelity {
        Fidelity::ExactReferences | Fidelity::PageReferences => return Ok(()),
        Fidelity::Window => {
            "holds only the entries of pages into a window: the hits within it, and so the program's time, are not \
             in it"
        }
        Fidelity::BlockOnly => "holds only what reached a block device: the program's hits and its time are not in it",
        Fidelity::Sampled => "is a sample: it shows working sets and heat, but no policy's misses",
    };
    let reason = format!("the trace {reason}; record every reference with `coldframe record`");
    Err(ExperimentError::Unfit { path: path.display().to_string(), reason })
}
