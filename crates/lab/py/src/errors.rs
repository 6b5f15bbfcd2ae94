//! Errors as Python exceptions: a class of `coldframe.errors` for each exit code of the command line, with the same
//! message.

use coldframe_experiment::ExperimentError;
use coldframe_store::TraceError;
use pyo3::prelude::*;

/// The exception for a failure of the report.
pub fn raise(error: ExperimentError) -> PyErr {
    of(error.code(), error.to_string())
}

/// The exception for a trace that cannot be read.
pub fn raise_trace(error: TraceError) -> PyErr {
    of(error.code(), error.to_string())
}

fn of(code: u8, message: String) -> PyErr {
    let made = |py: Python<'_>| {
        let made = py.import("coldframe.errors")?.getattr("of")?.call1((code, message))?;
        Ok(PyErr::from_value(made))
    };
    Python::attach(made).unwrap_or_else(|error: PyErr| error)
}
