//! How sure a count of misses is.

use coldframe_formats::reduce::Method;

use super::TraceFacts;
use crate::reuse::CLASSES;

/// How sure the misses of a result are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    /// The number is exact.
    Exact,
    /// The number is between two bounds.
    Between {
        /// The lower bound.
        low: u64,
        /// The upper bound.
        high: u64,
    },
    /// The number is an estimate.
    Estimated {
        /// Standard error, in misses.
        error: f64,
    },
}

impl Certainty {
    /// The least and the most misses: equal if exact, plus and minus one standard error for an estimate.
    pub fn range(&self, misses: u64) -> (u64, u64) {
        match *self {
            Certainty::Exact => (misses, misses),
            Certainty::Between { low, high } => (low, high),
            Certainty::Estimated { error } => {
                let error = error.ceil() as u64;
                (misses.saturating_sub(error), misses + error)
            }
        }
    }
}

/// A note for readers of results, if the trace does not have every reference.
pub fn caveat(trace: &TraceFacts) -> Option<String> {
    let cuts = trace.cuts.iter().map(|cut| format!("A part of a trace: {cut}."));
    let all: Vec<String> = reduction_note(trace).into_iter().chain(cuts).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// What the recording or the reduction has kept.
fn reduction_note(trace: &TraceFacts) -> Option<String> {
    if let Some(window) = trace.window {
        return Some(format!(
            "Recorded through a window of {window} pages: true faults are bounds, the rows' own with more and less RAM by the window; \
             hits were not seen, so there is no miss ratio."
        ));
    }
    let whole = trace.reduction?;
    let of = format!("of {} references to {} pages", whole.references, whole.pages);
    Some(match whole.method {
        Method::Compaction { pages } => format!("Compacted, {of}: misses of lru and opt are those of the whole trace from {pages} frames on."),
        Method::HashSample { .. } => format!(
            "A sample of {:.4} % of the pages, {of}: misses are estimates with their standard error, from {CLASSES} parts of the sample.",
            100.0 * whole.rate().unwrap_or(1.0)
        ),
    })
}
