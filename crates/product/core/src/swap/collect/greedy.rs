//! Greedy (GR): the block with the fewest valid slots. It is the cheapest choice now, but a block with cold pages is
//! copied again and again. Wu and Zwaenepoel: *eNVy: A Non-Volatile, Main Memory Storage System*, ASPLOS 1994, section
//! 4.1.

use super::{Collector, Facts, Ratio};

/// The entry of the table of collectors.
pub const COLLECTOR: Collector =
    Collector { name: "greedy", summary: "fewest valid slots (GR)", with_age: false, score };

fn score(facts: &Facts) -> Ratio {
    Ratio { num: facts.valid.into(), den: 1 }
}
