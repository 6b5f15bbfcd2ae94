//! From a question and a trace to the answer.

use std::path::Path;

use coldframe_core::Bytes;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::progress::Progress;
use coldframe_experiment::{string, tasks};
use coldframe_store::{Fidelity, Provenance, Reader};

use crate::advice::Advice;
use crate::first::First;
use crate::question::Question;
use crate::regions;
use crate::search::Tried;

/// Answers a question about a trace.
///
/// # Errors
/// As [`experiment::run`]; a limit needs a number that the trace or the device's sheet lacks.
pub fn advise(path: &Path, question: &Question, progress: &mut dyn FnMut(Progress)) -> Result<Advice, ExperimentError> {
    let trace = Reader::open(path)?.provenance().clone();
    check_fidelity(path, &trace)?;
    if question.base.limit.sample.is_some() {
        let reason = "estimates misses, and an answer for a board has prices; leave it out";
        return Err(ExperimentError::setting("limit.sample", reason));
    }
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

/// A trace without its hits cannot show the effect of RAM on a board.
fn check_fidelity(path: &Path, trace: &Provenance) -> Result<(), ExperimentError> {
    if trace.fidelity == Fidelity::Window && trace.program.is_some() {
        let trace = path.display();
        let reason = format!(
            "{trace} is a recording by this machine's pager, which is about this machine: type coldframe --trace \
             {trace}; a board needs every reference: coldframe-lab record"
        );
        return Err(ExperimentError::setting("trace", reason));
    }
    let reason = match trace.fidelity {
        Fidelity::ExactReferences | Fidelity::PageReferences => return Ok(()),
        Fidelity::Window => {
            "holds only the entries of pages into a window: the hits within it, and so the program's time, are not \
             in it"
        }
        Fidelity::BlockOnly | Fidelity::KeyRequests => {
            "holds only requests to a block device or a cache: the program's hits and its time are not in it"
        }
        Fidelity::Sampled => "is a sample: it shows working sets and heat, but no policy's misses",
    };
    let reason = format!("the trace {reason}; record every reference with `coldframe record`");
    Err(ExperimentError::Unfit { path: path.display().to_string(), reason })
}
