//! # coldframe-report: from names to results
//!
//! - [`settings`] are the user's input (`-c config.toml`, `--set`, flags).
//! - [`experiment`] turns settings and a trace into simulator runs and results. [`mod@swap`] does so for swap traces,
//!   [`foreground`] for tasks that take turns on a phone, [`tasks`] for several tasks on one processor.
//! - [`predict`] simulates a live run.
//! - [`table`] and [`plot`] show results to a person.
//!
//! The command line and the Python package both call this crate and decide nothing themselves.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod advise;
pub mod certainty;
pub mod drive;
pub mod error;
pub mod experiment;
mod fitness;
pub mod foreground;
pub mod here;
pub mod html;
pub mod info;
pub mod interleave;
pub mod memory;
pub mod owner;
pub mod plot;
pub mod png;
pub mod predict;
pub mod resolve;
pub mod result;
pub mod reuse;
pub mod settings;
pub mod slots;
pub mod swap;
pub mod swap_analysis;
pub mod swap_table;
pub mod systems;
pub mod table;
pub mod tasks;

pub use error::ReportError;
pub use experiment::{run, Progress};
pub use result::RunResult;
pub use settings::{Settings, Sweep};
