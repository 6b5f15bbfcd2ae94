//! Models of the dangerous parts of the live pager, under a scheduler that tries interleavings. The modules that
//! several threads use are compiled unchanged from `crates/product/live/src`. The scheduler's own sleeps (`sys`),
//! atomics and tables replace the machine's, and a table of pages (`kernel`) replaces the kernel. The models are tests,
//! in `tests/models`.
//!
//! Each wrong protocol that was found stays in the tests as a mutant: a model that cannot fail proves nothing. The
//! mutant's enum variant describes the error, and a test checks that the model fails.

// The pager's modules are public here, where not all of their functions are used.
#![allow(clippy::len_without_is_empty)]

mod error;
mod explore;
pub mod kernel;
pub mod log;
pub mod page;
mod scheduler;
pub mod sys;
pub mod task;

pub use error::LiveError;
pub use explore::{explore, explore_some, found_out, together, Model, DEADLOCK, WRONG};

/// Bytes of a model's page: one word.
pub const PAGE: usize = 8;
