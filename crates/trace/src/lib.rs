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

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod block;
mod cut;
pub mod error;
mod export;
pub mod fidelity;
pub mod format;
pub mod heat;
mod import;
mod merge;
pub mod provenance;
pub mod reduce;
pub mod reference;
pub mod store;
mod timeline;
pub mod window;

pub use block::{Block, Columns};
pub use cut::cut;
pub use error::{BadLine, TraceError};
pub use export::{export, Export, EXPORTS};
pub use fidelity::Fidelity;
pub use format::{open, parse_spec, swap, Facts, Format, Options, Progress, RowReader, Spec, FORMATS};
pub use import::import;
pub use merge::{merge, merged, Order};
pub use provenance::{Cut, Mapping, Noise, Part, ProcessFacts, ProgramFacts, Provenance, Reduction, Task};
pub use reduce::{reduce, Keep, Reduced};
pub use reference::{Kind, Reference};
pub use store::{Reader, Summary, Wanted, Writer};
pub use timeline::{timeline, Clock, TimelineError};
