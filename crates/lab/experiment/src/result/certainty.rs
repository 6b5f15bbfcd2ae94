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
}

impl Certainty {
    /// The least and the most misses: equal if exact.
    pub fn range(&self, misses: u64) -> (u64, u64) {
        match *self {
            Certainty::Exact => (misses, misses),
            Certainty::Between { low, high } => (low, high),
        }
    }
}
