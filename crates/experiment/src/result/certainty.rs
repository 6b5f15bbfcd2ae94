//! How sure a count of misses is.

/// How sure the misses of a result are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    Exact,
    /// The number is between two bounds.
    Between {
        low: u64,
        /// The upper bound.
        high: u64,
    },
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
