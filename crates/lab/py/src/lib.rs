//! # coldframe for Python: the bindings
//!
//! The module `coldframe._native`. It turns text into settings, calls pure functions of `experiment` and `advise` as
//! the command line does, and returns their JSON as text. So a number in Python is the number that `--format json`
//! prints. The convenient interface is written in Python, under `python/coldframe`.
//!
//! A simulation releases the interpreter's lock. [`mod@watch`] takes the lock from time to time, to see Ctrl-C and to
//! report progress.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use pyo3::prelude::*;

mod advise;
mod errors;
mod policy;
mod settings;
mod simulate;
mod trace;
mod watch;

/// The bindings that `coldframe` calls; use `coldframe` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::advise::advise;
    #[pymodule_export]
    use crate::settings::{key, settings, settings_file, settings_toml, size};
    #[pymodule_export]
    use crate::simulate::{check, simulate, simulate_policy};
    #[pymodule_export]
    use crate::trace::{footprint, info, provenance, sha256};

    /// The version of the package and of the simulator.
    #[pymodule_export]
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// The RAM sizes of a sweep that names none, in percent of the trace's footprint.
    #[pymodule_export]
    pub const RAM_DEFAULT: [&str; 6] = coldframe_experiment::settings::SIZES_DEFAULT;
}
