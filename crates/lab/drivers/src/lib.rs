//! # coldframe-drivers: what gives references to a machine in virtual time
//!
//! ```text
//!  trace block ── front end ──► page references ──► page table, 16 lanes an entry
//!  (addresses)    numbering,    u32 each:             │ all lanes mapped: set bits, done (a hit)
//!                 I-cache, TLB  page, write, quiet    │ else, for each lane that faults:
//!                                                     └► Lane: engine + clock + device ── Event/Command
//! ```
//!
//! The machine and its lanes are `coldframe-lane`. Here are the sources of references: [`run`] takes one string through
//! a [`front_end`] into any number of lanes; [`tasks`] takes tasks under a [`scheduler`] or in the
//! trace's own turns; [`swap`] a swap trace, for a swap area alone. Algorithms that need hits (LRU, OPT, ARC) are an
//! [`oracle`] and run beside the lanes.
//!
//! This crate names no paper's system: prices, sizes and readings are arguments.
#![forbid(unsafe_code)]

pub mod front_end;
pub mod oracle;
pub mod run;
pub mod scheduler;
pub mod shorten;
pub mod swap;
pub mod tasks;

pub use front_end::{FrontEnd, Stream};
pub use run::{Run, RunError};
