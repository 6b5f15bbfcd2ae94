//! # coldframe-search: the smallest RAM of a board that meets the limits, its cost, and how sure the answer is
//!
//! - [`mod@question`] is the user's question, and [`limits`] are its conditions.
//! - `first` looks at the trace before the search, and [`after`] where the program's own work begins.
//! - [`point`] is the result of one configuration. [`mod@cost`] prices a point relative to the same configuration with
//!   all the RAM that it could use.
//! - [`search`] looks for the smallest RAM.
//! - [`regions`] names the memory that costs most; [`json`] is the answer for machines.
#![forbid(unsafe_code)]

mod advice;
mod advise;
pub mod after;
mod candidate;
pub mod cost;
mod first;
pub mod json;
pub mod limits;
pub mod point;
pub mod question;
pub mod regions;
pub mod search;

pub use advice::Advice;
pub use advise::advise;
pub use candidate::Candidate;
pub use cost::{Cost, Range};
pub use limits::Limits;
pub use point::Point;
pub use question::Question;
pub use regions::Region;
