//! Cost-age-times with age (CATA): the least u / (1 - u) * erases / age.
//!
//! Cost-age-times: Chiang, Lee and Chang: *Using Data Clustering to Improve Cleaning Performance for Flash Memory*,
//! Software: Practice and Experience 1999. The age of a block is the mean age of its valid pages, as in Han, Ryu and
//! Yim: *CATA: A Garbage Collection Scheme for Flash Memory File Systems*, UIC 2006.
//!
//! One is added to the erases: otherwise every block that was never erased scores 0, whatever pages it holds.

use super::{Collector, Facts, Ratio};

/// The entry of the table of collectors.
pub const COLLECTOR: Collector = Collector {
    name: "cost-age-times",
    summary: "least u / (1 - u) * (erases + 1) / mean age of valid pages (CATA)",
    with_age: true,
    score,
};

/// v / (n - v) * (e + 1) / (age_sum / v).
fn score(facts: &Facts) -> Ratio {
    let Facts { slots, valid, erases, age_sum, .. } = *facts;
    let valid = u128::from(valid);
    let age_sum = u128::from(age_sum.max(1));
    Ratio { num: valid * valid * (u128::from(erases) + 1), den: (u128::from(slots) - valid) * age_sum }
}
