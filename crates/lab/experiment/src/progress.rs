//! How far a run is, and where its journal goes.

use std::cell::Cell;

use crate::error::ExperimentError;

/// Takes a journal in pieces.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), ExperimentError>;

/// The unit of a run's progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Rows,
    Configurations,
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Rows => "rows",
            Unit::Configurations => "configurations",
        }
    }
}

/// The progress of a run. Its receiver may end the run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Rows of the trace, or configurations, that are finished.
    pub done: u64,
    pub total: u64,
    pub unit: Unit,
    stop: &'a Cell<bool>,
}

impl Progress<'_> {
    /// Ends the run before the next block, with [`ExperimentError::Stopped`].
    pub fn stop(&self) {
        self.stop.set(true);
    }
}

/// Reports the progress of a run.
///
/// # Errors
/// [`ExperimentError::Stopped`] if the receiver ends it.
pub fn tell(progress: &mut dyn FnMut(Progress), (done, total): (u64, u64), unit: Unit) -> Result<(), ExperimentError> {
    let stop = Cell::new(false);
    progress(Progress { done, total, unit, stop: &stop });
    if stop.get() {
        return Err(ExperimentError::Stopped);
    }
    Ok(())
}
