//! Reference traces: which memory a program touched, in which order, and how exactly this is known.
//!
//! - [`Reference`] is one access; [`Block`] holds consecutive ones column by column. Every reader fills blocks.
//! - [`Writer`] and [`Reader`] keep blocks in a Parquet file that DuckDB, pandas and polars can open, too. Its
//!   [`Provenance`] gives the origin of the rows and, as a [`Fidelity`], the conclusions that they allow.
//! - [`mod@window`] makes a store of what a live pager recorded, and [`mod@heat`] the map of a store.
//!
//! The order of calls is always the same: open, read blocks until one comes back with 0 rows, drop. Every fallible call
//! returns a [`TraceError`], which names the file, the place in it and the remedy; nothing here prints, exits, reads
//! the environment or panics on bad input.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod block;
pub mod error;
pub mod fidelity;
pub mod heat;
pub mod provenance;
mod recorded;
pub mod reference;
pub mod store;
mod together;
pub mod window;

pub use block::{Block, Columns};
pub use error::{BadLine, TraceError};
pub use fidelity::Fidelity;
pub use provenance::{Cut, Mapping, Moment, Noise, Part, ProcessFacts, ProgramFacts, Provenance, Task};
pub use reference::{Kind, Reference};
pub use store::{Reader, Summary, Wanted, Writer};
