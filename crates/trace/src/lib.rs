//! Reference traces: which memory a program touched, in which order, and how exactly this is known.
//!
//! ```text
//! lackey, din, ... --format--> Block --store::Writer--> FILE.parquet --store::Reader--> Block --> sim, report
//!  (text, .gz .xz .zst)         64 Ki rows                                               64 Ki rows
//! ```
//!
//! - [`Reference`] is one access; [`Block`] holds consecutive ones column by column. Every reader fills blocks.
//! - [`Writer`] and [`Reader`] keep blocks in a Parquet file that DuckDB, pandas and polars can open, too. Its
//!   [`Provenance`] gives the origin of the rows and, as a [`Fidelity`], the conclusions that they allow.
//! - [`swap`] reads swap traces, which hold no references.
//! - [`mod@format`] reads other tools' traces; [`import()`] turns one into a store, [`export()`] a store into another
//!   tool's trace, [`merge()`] several stores into one, [`mod@reduce`] one into a smaller one.
//!
//! The order of calls is always the same: open, read blocks until one comes back with 0 rows, drop. Every fallible call
//! returns a [`TraceError`], which names the file, the place in it and the remedy; nothing here prints, exits, reads
//! the environment or panics on bad input.
//!
//! Without the `std` feature only [`mod@reference`] and [`journal`] remain, so that the board can share its types.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod entries;
pub mod journal;
pub mod reference;
pub mod span;

#[cfg(feature = "std")]
pub mod block;
#[cfg(feature = "std")]
mod cut;
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
mod export;
#[cfg(feature = "std")]
pub mod fidelity;
#[cfg(feature = "std")]
pub mod format;
#[cfg(feature = "std")]
pub mod heat;
#[cfg(feature = "std")]
mod import;
#[cfg(feature = "std")]
mod merge;
#[cfg(feature = "std")]
pub mod provenance;
#[cfg(feature = "std")]
pub mod reduce;
#[cfg(feature = "std")]
pub mod store;
#[cfg(feature = "std")]
mod timeline;
#[cfg(feature = "std")]
pub mod window;

pub use reference::{Kind, Reference};

#[cfg(feature = "std")]
pub use block::{Block, Columns};
#[cfg(feature = "std")]
pub use cut::cut;
#[cfg(feature = "std")]
pub use error::{BadLine, TraceError};
#[cfg(feature = "std")]
pub use export::{export, Export, EXPORTS};
#[cfg(feature = "std")]
pub use fidelity::Fidelity;
#[cfg(feature = "std")]
pub use format::{open, parse_spec, swap, Facts, Format, Options, Progress, RowReader, Spec, FORMATS};
#[cfg(feature = "std")]
pub use import::import;
#[cfg(feature = "std")]
pub use merge::{merge, merged, Order};
#[cfg(feature = "std")]
pub use provenance::{Cut, Mapping, Part, ProcessFacts, ProgramFacts, Provenance, Reduction, Task};
#[cfg(feature = "std")]
pub use reduce::{reduce, Keep, Reduced};
#[cfg(feature = "std")]
pub use store::{Reader, Summary, Wanted, Writer};
#[cfg(feature = "std")]
pub use timeline::{timeline, Clock, TimelineError};
