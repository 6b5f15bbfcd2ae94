//! Other tools' traces, and traces made from traces.
//!
//! ```text
//! lackey, din, ... --format--> Block --store::Writer--> FILE.parquet --store::Reader--> Block --export--> lackey, ...
//!  (text, .gz .xz .zst)         64 Ki rows                                               64 Ki rows
//! ```
//!
//! - [`mod@format`] reads other tools' traces; [`swap`] reads swap traces, which hold no references.
//! - [`import()`] turns one into a store, [`export()`] a store into another tool's trace, [`merge()`] several stores
//!   into one, [`cut()`] takes a part of one.

#![forbid(unsafe_code)]

mod cut;
mod export;
pub mod format;
mod import;
mod merge;

pub use cut::cut;
pub use export::{export, Export, EXPORTS};
pub use format::{open, parse_spec, swap, Facts, Format, Options, Progress, RowReader, Spec, FORMATS};
pub use import::import;
pub use merge::{merge, Order};
