//! # coldframe-fuzz: every reader against mutated input
//!
//! Each [`Target`] is a reader and some valid inputs. Inputs are mutated and read: bytes are flipped, cut, repeated,
//! spliced, or replaced by special values. A reader may return any result, but may not panic. The fuzzer runs on stable
//! Rust without instrumentation, so coverage does not guide it; the mutations are chosen for text with numbers and for
//! length-prefixed binaries. A failure prints the seed, which replays it.
#![forbid(unsafe_code)]

mod mutate;
mod targets;

pub use mutate::{mutate, one};
pub use targets::{targets, Target};
