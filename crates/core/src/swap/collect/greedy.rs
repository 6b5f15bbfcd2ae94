//! Greedy (GR): the block with the fewest valid slots. It is the cheapest choice now, but a block with cold pages is
//! copied again and again. Wu and Zwaenepoel: *eNVy: A Non-Volatile, Main Memory Storage System*, ASPLOS 1994, section
//! 4.1.

use super::{Candidates, Collector, Facts, Ratio};
use crate::ids::BlockId;

/// The entry of the table of collectors.
pub const COLLECTOR: Collector =
    Collector { name: "greedy", summary: "fewest valid slots (GR)", with_age: false, victim, score };

fn victim(candidates: &Candidates<'_>) -> Option<BlockId> {
    (0..=candidates.slots()).find_map(|valid| candidates.with_valid(valid).next())
}

fn score(facts: &Facts) -> Ratio {
    Ratio { num: facts.valid.into(), den: 1 }
}
