//! How sure a count of misses is, if the trace does not have every reference: two bounds, or an estimate with its
//! error.
//!
//! - A recording through a window of N pages bounds the misses at C pages by those of its rows at C - N and C + N;
//!   see `coldframe_store::window` for the proof. So every size is computed with its two neighbours.
//! - A hash sample with the share R of the pages has, in R x C pages, R times as many misses as the whole trace in C
//!   pages. First references are an exception, but their number is known (SHARDS: Waldspurger et al., FAST 2015,
//!   section 3). The sample is divided by hash into [`CLASSES`] samples. Their results differ by chance alone, which
//!   gives the standard error.

use coldframe_drivers::oracle::lru::Curve;
use coldframe_drivers::oracle::{Oracle, OracleCounts};
use coldframe_lane::PageRef;
use coldframe_store::{Provenance, Reduction};

use crate::resolve::Plan;
use crate::result::{Certainty, RunResult, Simulated};
use crate::reuse::{class, mean, CLASSES};

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

/// The oracles for a sample: one for all of it, and one for each part.
pub(super) fn sampled_lru(frames: &[usize], rate: f64) -> Vec<Box<dyn Oracle>> {
    let whole: Box<dyn Oracle> = Box::new(Curve::new(&sizes(frames, rate)));
    let part = |number| {
        let curve = Curve::new(&sizes(frames, rate / CLASSES as f64));
        Box::new(Part { number, curve, references: Vec::new() }) as Box<dyn Oracle>
    };
    std::iter::once(whole).chain((0..CLASSES).map(part)).collect()
}

/// The sample's size for each number of frames, rounded down and up.
fn sizes(frames: &[usize], rate: f64) -> Vec<usize> {
    let scaled = frames.iter().map(|frames| *frames as f64 * rate);
    scaled.flat_map(|size| [size.floor() as usize, size.ceil() as usize]).collect()
}

/// LRU over one part of a sample.
struct Part {
    number: usize,
    curve: Curve,
    references: Vec<PageRef>,
}

impl Oracle for Part {
    fn feed(&mut self, references: &[PageRef]) {
        let number = self.number;
        self.references.clear();
        self.references.extend(references.iter().filter(|r| class(r.page(), CLASSES) == number));
        self.curve.feed(&self.references);
    }

    fn finish(&mut self, pages: &[u64]) -> Vec<OracleCounts> {
        self.curve.finish(pages)
    }
}

/// The estimates of the oracles of [`sampled_lru`] for the whole trace, for each number of frames.
pub(super) fn estimates(
    answers: &[Vec<OracleCounts>],
    frames: &[usize],
    whole: &Reduction,
    rate: f64,
) -> Vec<(Simulated, Certainty)> {
    let at = |index: usize| {
        let again = |answer: &[OracleCounts], rate: f64| {
            let size = frames[index] as f64 * rate;
            let misses = |counts: &OracleCounts| (counts.true_faults - counts.cold_faults) as f64;
            let (below, above) = (misses(&answer[2 * index]), misses(&answer[2 * index + 1]));
            (below + (above - below) * size.fract()) / rate
        };
        let parts: Vec<f64> = answers[1..].iter().map(|part| again(part, rate / CLASSES as f64)).collect();
        let misses = whole.pages + again(&answers[0], rate).round() as u64;
        let counts = OracleCounts { true_faults: misses, cold_faults: whole.pages, ..OracleCounts::default() };
        (Simulated::Oracle(counts), Certainty::Estimated { error: mean(&parts).1 })
    };
    (0..frames.len()).map(at).collect()
}
