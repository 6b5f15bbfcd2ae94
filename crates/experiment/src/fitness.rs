//! Which questions a trace can answer. Other questions are refused, with the reason.

use std::path::Path;

use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::Stream;
use coldframe_formats::reduce::Method;
use coldframe_store::{Fidelity, Provenance, Reduction};

use crate::error::ExperimentError;
use crate::resolve::Plan;
use crate::reuse::CLASSES;
use crate::settings::Settings;
use crate::systems::{self, front_end};

/// Refuses configurations that need more than the trace has.
pub(crate) fn check(path: &Path, trace: &Provenance, plans: &[Plan]) -> Result<(), ExperimentError> {
    let reason = plans.iter().find_map(|plan| refusal(trace, plan));
    reason.map_or(Ok(()), |reason| Err(ExperimentError::Unfit { path: path.display().to_string(), reason }))
}

const BLOCK_ONLY: &str =
    "the trace holds only what reached a block device: the program's hits are not in it, and so neither its energy \
                          nor its time; leave out what prices accesses to memory, or record every reference";

/// Refuses settings that need the energy of a block trace. This comes first, before other missing things are
/// reported.
pub(crate) fn check_energy(path: &Path, trace: &Provenance, all: &[Settings]) -> Result<(), ExperimentError> {
    let own = |s: &Settings| Some(systems::of(s)?.defaults.front_end);
    let name = |s: &Settings| s.front_end.name.clone().or(own(s).map(Into::into));
    let prices = |s: &Settings| name(s).and_then(|name| front_end::find(&name)).is_some_and(|f| f.data_cache);
    if trace.fidelity == Fidelity::BlockOnly && all.iter().any(prices) {
        return Err(ExperimentError::Unfit { path: path.display().to_string(), reason: BLOCK_ONLY.into() });
    }
    Ok(())
}

/// Why the trace cannot answer for a configuration.
fn refusal(trace: &Provenance, plan: &Plan) -> Option<String> {
    if trace.fidelity == Fidelity::BlockOnly && (plan.memory.is_some() || plan.front.idle != IdlePrices::default()) {
        return Some(BLOCK_ONLY.into());
    }
    let every = trace.fidelity == Fidelity::ExactReferences;
    if let Some(front_end) = plan.front.front_end.filter(|_| !every) {
        let name = front_end.name;
        return Some(format!(
            "the front end {name} needs every reference, but the trace is reduced; record it with --level exact"
        ));
    }
    match (trace.fidelity, &trace.reduction, oracle(plan)) {
        (Fidelity::Sampled, ..) => Some(
            "the trace is sampled: it shows working sets and heat, but no policy's misses; record every reference or fault".into(),
        ),
        (Fidelity::Faults, _, Some(_)) => {
            Some("an oracle needs every reference, but the trace holds faults only; record it anew".into())
        }
        (_, Some(reduction), name) => reduced(trace, reduction, plan, name),
        (_, None, name) => windowed(trace, plan, name),
    }
}

fn oracle(plan: &Plan) -> Option<&'static str> {
    plan.oracle().map(|spec| spec.name)
}

/// A recording through a window bounds the misses of LRU and OPT from twice its size on.
fn windowed(trace: &Provenance, plan: &Plan, oracle: Option<&str>) -> Option<String> {
    let window = trace.window?;
    if !matches!(oracle, Some("lru" | "opt")) {
        let policy = &plan.policy;
        return Some(format!(
            "the trace was filtered by a window of {window} pages, which bounds the misses of lru and opt, but not those of {policy}; \
             give --policy lru,opt, or record every reference"
        ));
    }
    let (frames, page) = (plan.frames as u64, 1u64 << plan.front.page_shift);
    let least = 2 * window;
    (frames < least).then(|| {
        format!(
            "{} bytes of RAM are asked for, but the trace was filtered by a window of {window} pages, which says nothing below {} bytes; \
             give more RAM, or record it with a smaller --window",
            frames * page,
            least * page
        )
    })
}

/// Checks against what a reduction preserves.
fn reduced(trace: &Provenance, reduction: &Reduction, plan: &Plan, oracle: Option<&str>) -> Option<String> {
    let policy = &plan.policy;
    let (front, frames) = (&plan.front, plan.frames as f64);
    if front.skip > 0 || front.accesses.is_some() {
        return Some(
            "limit.* counts references that the reduced trace does not have; cut the whole trace, then reduce it"
                .into(),
        );
    }
    if front.stream != Stream::Both && !only(trace, front.stream) {
        let stream = front.stream.name();
        return Some(format!(
            "the trace was reduced with all its references, which says nothing of stream {stream} alone; give ID"
        ));
    }
    match (reduction.method, reduction.rate().unwrap_or(1.0)) {
        (Method::Compaction { .. }, _) if !matches!(oracle, Some("lru" | "opt")) => Some(format!(
            "the trace is compacted, which keeps the misses of lru and opt, but not those of {policy}; give --policy lru,opt, or the whole trace"
        )),
        (Method::Compaction { pages }, _) if plan.frames < pages as usize => Some(format!(
            "{} frames are asked for, but the trace is compacted, which keeps misses from {pages} frames on; give more RAM, or \
             reduce the whole trace with a smaller --above",
            plan.frames
        )),
        (Method::HashSample { .. }, _) if oracle != Some("lru") => Some(format!(
            "the trace is a sample of pages, which estimates the misses of lru; {policy} needs the other pages, too; give --policy lru, or the whole trace"
        )),
        (Method::HashSample { .. }, _) if trace.page_size != Some(1 << front.page_shift) => Some(format!(
            "the pages of {} bytes were sampled, which is no sample of pages of {} bytes; give --page {0}",
            trace.page_size.unwrap_or_default(),
            1u64 << front.page_shift
        )),
        (Method::HashSample { .. }, rate) if frames * rate < CLASSES as f64 => Some(format!(
            "{frames} frames are asked for, of which the sample's {CLASSES} parts have less than one each; give {} frames or more, or a larger sample",
            (CLASSES as f64 / rate).ceil()
        )),
        _ => None,
    }
}

/// Whether the trace has no other references than those of the stream.
fn only(trace: &Provenance, stream: Stream) -> bool {
    let data = trace.reads + trace.writes;
    match stream {
        Stream::Instructions => data == 0,
        Stream::Data => trace.instructions == 0,
        Stream::Both => true,
    }
}
