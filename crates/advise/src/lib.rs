//! # coldframe-advise: how little RAM, and what it costs
//!
//! - [`board`] searches for the smallest RAM of a board that meets limits on time, energy and flash life.
//! - [`predict`] simulates a live run, fault by fault.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod board;
mod interleave;
pub mod predict;
