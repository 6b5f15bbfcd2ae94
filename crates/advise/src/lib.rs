//! # coldframe-advise: how little RAM, and what it costs
//!
//! - [`predict`] simulates a live run, fault by fault.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod interleave;
pub mod predict;
