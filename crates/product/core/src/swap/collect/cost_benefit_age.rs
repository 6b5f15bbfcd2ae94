//! Cost-benefit with age (CBA): the largest age * (1 - u) / 2u, where the age is the mean age of the block's valid
//! pages. The slides name it with CATA and print no formula; this is cost-benefit with CATA's age.

use super::{Collector, Facts, Ratio};

/// The entry of the table of collectors.
pub const COLLECTOR: Collector = Collector {
    name: "cost-benefit-age",
    summary: "largest mean age of valid pages * (1 - u) / 2u (CBA)",
    with_age: true,
    score,
};

/// The inverse: 2v / (n - v) / (age_sum / v).
fn score(facts: &Facts) -> Ratio {
    let Facts { slots, valid, age_sum, .. } = *facts;
    let valid = u128::from(valid);
    Ratio { num: 2 * valid * valid, den: (u128::from(slots) - valid) * u128::from(age_sum.max(1)) }
}
