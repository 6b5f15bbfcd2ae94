//! How sure a count of misses is, if the trace does not have every reference: two bounds.
//!
//! A recording through a window of N pages bounds the misses at C pages by those of its rows at C - N and C + N; see
//! `coldframe_store::window` for the proof. So every size is computed with its two neighbours.
//!
//! Misses of a sample are estimates. Each of its parts is simulated, too, as a sample of its own: the error is that of
//! the mean of the parts.

use coldframe_drivers::front_end::Sample;
use coldframe_store::Provenance;

use crate::resolve::Plan;
use crate::result::{Certainty, RunResult};

/// The configurations. For a recording through a window, each is followed by two more, with fewer and with more
/// frames by the window; for a sample, by its parts.
pub(super) fn with_neighbours(mut plans: Vec<Plan>, trace: &Provenance) -> Vec<Plan> {
    let part = |plan: &Plan, part| Some(plan.part(plan.front.sample?.part(part)));
    let parts = |plan| (0..Sample::PARTS).filter_map(move |i| part(plan, i));
    let parts: Vec<Plan> = plans.iter().flat_map(parts).collect();
    plans.extend(parts);
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
    let sampled = results.iter_mut().filter(|result| result.sample.is_some());
    for (result, parts) in sampled.zip(neighbours.chunks(Sample::PARTS as usize)) {
        let misses: Vec<f64> = parts.iter().map(|part| part.true_faults() as f64).collect();
        result.certainty = Certainty::Estimate { error: (STUDENT * error(&misses)).round() as u64 };
    }
    let windowed = results.iter_mut().filter(|result| result.sample.is_none());
    for (result, pair) in windowed.zip(neighbours.chunks(2)) {
        let bounds = (pair[1].true_faults(), pair[0].true_faults());
        result.certainty = Certainty::Between { low: bounds.0, high: bounds.1 };
    }
    results
}

/// 95 % of what is drawn from a normal distribution is within so many standard errors of the mean of 8 (Student's t
/// with 7 degrees of freedom).
const STUDENT: f64 = 2.365;

/// The standard error of the mean.
fn error(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_error_is_that_of_the_mean() {
        assert_eq!(super::error(&[5.0; 8]), 0.0);
        // Deviation 2 of 4 values: 2 / sqrt(4).
        let values = [10.0 - 3f64.sqrt(), 10.0 + 3f64.sqrt(), 10.0 - 3f64.sqrt(), 10.0 + 3f64.sqrt()];
        assert!((super::error(&values) - 1.0).abs() < 1e-12);
    }
}
