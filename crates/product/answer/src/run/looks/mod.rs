//! Looks at a program that runs: at its memory group, and at what it has beside paged memory.

pub(crate) mod beside;
pub mod group;
mod resting;
