//! # coldframe-experiment: from settings to results
//!
//! ```text
//!   settings ─ resolve (systems' defaults) ─► a plan ─ string · tasks · swap ─► outcomes ─► sim_result: JSON
//! ```
//!
//! - [`settings`] are the user's input (`-c config.toml`, `--set`, flags); [`systems`] are sets of defaults.
//! - [`resolve`] turns both into a plan, and reports every name and number that cannot be.
//! - [`mod@string`] runs plans over a trace as one string of references, [`tasks`] under a scheduler or in
//!   turns on a phone, [`swap`] over a kernel's swaps. [`drive`] chooses among the three.
//! - [`sim_result`] is the outcome of any of the three as JSON.
//! - [`in_force`] are the settings of a result, [`traced`] its trace.
//! - [`info`] needs no run: it describes a trace.
#![forbid(unsafe_code)]

pub mod drive;
pub mod error;
mod fitness;
pub mod in_force;
pub mod info;
pub mod memory;
pub mod owner;
pub mod phone;
pub mod progress;
pub mod resolve;
pub mod result;
pub mod settings;
pub mod sim_result;
pub mod string;
pub mod swap;
pub mod swap_prices;
pub mod systems;
pub mod tasks;
pub mod traced;

pub use error::ExperimentError;
pub use progress::Progress;
pub use result::RunResult;
pub use settings::{Settings, Sweep};
