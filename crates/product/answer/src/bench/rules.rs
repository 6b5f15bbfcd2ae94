//! The numbers that the plans share: when a run is repeated, and how long a run may take.

use crate::run::runs::Runs;

/// A shorter run is repeated, in seconds: three runs, of which the median counts.
pub const SHORT: f64 = 1.0;
/// Runs of a short program.
pub const REPEATS: usize = 3;
/// The most runs of a kind near the limit.
pub const REPEATS_NEAR: usize = REPEATS + 2;
/// A median this near to the limit, as a part of it, is measured again.
pub const NEAR: f64 = 0.1;

/// A run of more times the program's own time was delayed by its limit, and not by other programs alone.
pub const DELAYED: f64 = 1.6;

/// Whether the median of these runs is so near to this limit that more runs may say otherwise.
pub fn is_near(runs: &Runs, limit: f64) -> bool {
    (runs.seconds / limit - 1.0).abs() < NEAR
}

/// Whether more runs alone are needed before there is a limit.
pub fn is_short(plain: &Runs) -> bool {
    plain.runs.len() < REPEATS && plain.seconds < SHORT
}
