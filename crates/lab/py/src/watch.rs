//! Runs work next to the interpreter, and asks the interpreter from time to time whether to continue.

use std::time::{Duration, Instant};

use coldframe_experiment::{ExperimentError, Progress};
use pyo3::prelude::*;

use crate::errors::raise;

/// The pause between two queries: well below the delay that a person notices after Ctrl-C, and long compared with
/// blocks of 64 Ki rows.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter's lock. After each pause it looks for Ctrl-C and calls `progress(rows,
/// rows_total)`. An exception of either ends the work and is the outcome.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, ExperimentError> + Send,
) -> PyResult<T> {
    py.detach(|| {
        let mut raised = None;
        let mut last: Option<Instant> = None;
        let mut report = |p: Progress| {
            let due = p.done == p.total || last.is_none_or(|at| at.elapsed() >= PAUSE);
            if due {
                last = Some(Instant::now());
                if let Err(error) = Python::attach(|py| ask(py, progress.as_ref(), p.done, p.total)) {
                    raised = Some(error);
                    p.stop();
                }
            }
        };
        let done = work(&mut report);
        done.map_err(|error| raised.unwrap_or_else(|| raise(error)))
    })
}

fn ask(py: Python<'_>, progress: Option<&Py<PyAny>>, rows: u64, total: u64) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |call| call.call1(py, (rows, total)).map(drop))
}
