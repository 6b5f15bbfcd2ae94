//! A configuration with its price.

use crate::cost::Cost;
use crate::point::Point;

/// A configuration with its price.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub point: Point,
    pub cost: Cost,
    /// The limits that it misses, in words; empty if it meets them all.
    pub misses: Vec<String>,
}
