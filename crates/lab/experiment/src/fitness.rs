//! Which questions a trace can answer. Other questions are refused, with the reason.

use std::path::Path;

use coldframe_drivers::run::IdlePrices;
use coldframe_store::{Fidelity, Provenance};

use crate::error::ExperimentError;
use crate::resolve::Plan;
use crate::settings::Settings;
use crate::systems::{self, front_end};

/// Refuses configurations that need more than the trace has.
pub(crate) fn check(path: &Path, trace: &Provenance, plans: &[Plan]) -> Result<(), ExperimentError> {
    let reason = plans.iter().find_map(|plan| refusal(trace, plan));
    reason.map_or(Ok(()), |reason| Err(ExperimentError::Unfit { path: path.display().to_string(), reason }))
}

const REQUESTS: &str =
    "the trace holds only requests to a block device or a cache: the program's hits are not in it, and \
                        so neither its energy nor its time; leave out what prices accesses to memory, or record every \
                        reference";

/// Refuses settings that need the energy of a trace of requests. This comes first, before other missing things are
/// reported.
pub(crate) fn check_energy(path: &Path, trace: &Provenance, all: &[Settings]) -> Result<(), ExperimentError> {
    let own = |s: &Settings| Some(systems::of(s)?.defaults.front_end);
    let name = |s: &Settings| s.front_end.name.clone().or(own(s).map(Into::into));
    let prices = |s: &Settings| name(s).and_then(|name| front_end::find(&name)).is_some_and(|f| f.data_cache);
    if !trace.fidelity.of_a_program() && all.iter().any(prices) {
        return Err(ExperimentError::Unfit { path: path.display().to_string(), reason: REQUESTS.into() });
    }
    Ok(())
}

/// Why the trace cannot answer for a configuration.
fn refusal(trace: &Provenance, plan: &Plan) -> Option<String> {
    if !trace.fidelity.of_a_program() && (plan.memory.is_some() || plan.front.idle != IdlePrices::default()) {
        return Some(REQUESTS.into());
    }
    let every = trace.fidelity == Fidelity::ExactReferences;
    if let Some(front_end) = plan.front.front_end.filter(|_| !every) {
        let name = front_end.name;
        return Some(format!(
            "the front end {name} needs every reference, but the trace is reduced; record it with --level exact"
        ));
    }
    if trace.fidelity == Fidelity::Sampled {
        let reason =
            "the trace is sampled: it shows working sets and heat, but no policy's misses; record every reference";
        return Some(reason.into());
    }
    windowed(trace, plan)
}

/// A recording through a window bounds the misses of LRU and OPT from twice its size on.
fn windowed(trace: &Provenance, plan: &Plan) -> Option<String> {
    let window = trace.window?;
    let oracle = plan.oracle().map(|spec| spec.name);
    if !matches!(oracle, Some("lru" | "opt")) {
        let policy = &plan.policy;
        return Some(format!(
            "the trace was filtered by a window of {window} pages, which bounds the misses of lru and opt, but not \
             those of {policy}; \
             give --policy lru,opt, or record every reference"
        ));
    }
    let (frames, page) = (plan.frames as u64, 1u64 << plan.front.page_shift);
    let least = 2 * window;
    (frames < least).then(|| {
        format!(
            "{} bytes of RAM are asked for, but the trace was filtered by a window of {window} pages, which says \
             nothing below {} bytes; \
             give more RAM, or record it with a smaller --window",
            frames * page,
            least * page
        )
    })
}
