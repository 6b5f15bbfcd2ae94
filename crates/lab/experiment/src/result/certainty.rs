//! How sure a count of misses is.

/// How sure the misses of a result are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    Exact,
    /// An estimate from a sample of the pages; the number is within this error of it with 95 %.
    Estimate {
        error: u64,
    },
    /// The number is between two bounds.
    Between {
        low: u64,
        /// The upper bound.
        high: u64,
    },
}

impl Certainty {
    /// The least and the most misses: equal if exact, and with 95 % if estimated.
    pub fn range(&self, misses: u64) -> (u64, u64) {
        match *self {
            Certainty::Exact => (misses, misses),
            Certainty::Estimate { error } => (misses.saturating_sub(error), misses + error),
            Certainty::Between { low, high } => (low, high),
        }
    }
}
