//! Cost-benefit (CB): the largest age * (1 - u) / 2u, where the age is the time since the block last changed.
//!
//! Rosenblum and Ousterhout: *The Design and Implementation of a Log-Structured File System*, ACM TOCS 1992, section
//! 3.5, divide by 1 + u, because they read the whole segment. Kawaguchi, Nishioka and Motoda: *A Flash-Memory Based
//! File System*, USENIX 1995, section 3.2, divide by 2u: a page is read and written.

use super::{Collector, Facts, Ratio};

/// The entry of the table of collectors.
pub const COLLECTOR: Collector =
    Collector { name: "cost-benefit", summary: "largest age * (1 - u) / 2u (CB)", with_age: false, score };

/// The inverse, so that the least is best: 2u / ((1 - u) * age) = 2v / ((n - v) * age).
fn score(facts: &Facts) -> Ratio {
    let Facts { slots, valid, idle, .. } = *facts;
    Ratio { num: 2 * u128::from(valid), den: u128::from(slots - valid) * u128::from(idle) }
}
