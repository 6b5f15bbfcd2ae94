//! How sure a count of misses is, if the trace does not have every reference: two bounds.
//!
//! A recording through a window of N pages bounds the misses at C pages by those of its rows at C - N and C + N; see
//! `coldframe_store::window` for the proof. So every size is computed with its two neighbours.

use coldframe_store::Provenance;

use crate::resolve::Plan;
use crate::result::{Certainty, RunResult};

/// The configurations. For a recording through a window, each is followed by two more, with fewer and with more
/// frames by the window.
pub(super) fn with_neighbours(mut plans: Vec<Plan>, trace: &Provenance) -> Vec<Plan> {
    let Some(window) = trace.window else { return plans };
    for at in 0..plans.len() {
        let [fewer, more] = neighbours(&plans[at], window as usize);
        let with = |frames| Plan { frames, ..plans[at].clone() };
        let pair = [with(fewer), with(more)];
        plans.extend(pair);
    }
    plans
}

/// OPT misses at least as often as the rows do in the same number of frames, LRU at least as often as the rows do in
/// as many frames plus the window.
fn neighbours(plan: &Plan, window: usize) -> [usize; 2] {
    let optimal = plan.oracle().is_some_and(|spec| spec.name == "opt");
    [plan.frames.saturating_sub(window), if optimal { plan.frames } else { plan.frames + window }]
}

/// Removes the neighbours again and turns them into bounds of the first `requested` results.
pub(super) fn bracket(mut results: Vec<RunResult>, requested: usize) -> Vec<RunResult> {
    let neighbours = results.split_off(requested);
    for (result, pair) in results.iter_mut().zip(neighbours.chunks(2)) {
        let bounds = (pair[1].true_faults(), pair[0].true_faults());
        result.certainty = Certainty::Between { low: bounds.0, high: bounds.1 };
    }
    results
}
