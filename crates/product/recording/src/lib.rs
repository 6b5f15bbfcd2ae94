//! # coldframe-recording: what the live pager and the answers agree on
//!
//! - [`span`] is the managed memory and the calls about it, as a recording notes them.
//! - [`entries`] is the file into which the pager records which page entered its window.
//! - [`plan`] has the pager's policy, batch, reserve and buffers by its sizes and measured times. The pager calls it at
//!   its start; an answer calls it to simulate the same pager.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod entries;
pub mod plan;
pub mod span;
