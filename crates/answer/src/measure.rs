//! What a program needs, in the best way that the machine allows: recorded by our pager, else watched by its referenced
//! bits.

use std::ffi::OsString;
use std::path::Path;

use coldframe_store::heat::Heat;
use coldframe_store::ProcessFacts;

use crate::error::AnswerError;
use crate::kinds::Answer;
use crate::listener::Listener;
use crate::machine::Machine;
use crate::program::{binary, pageable};
use crate::record::{served, Order, PATIENCE};
use crate::{watch, Limits, Reading};

/// Rows and columns of the map of touched memory: a page with it stays far below its bound.
pub const MAP: (usize, usize) = (40, 120);
/// An answer about a program, and what else its recording shows.
pub struct Measured {
    /// The answer.
    pub answer: Answer,
    /// Where and when memory was touched.
    pub heat: Option<Heat>,
    /// The processes of the command.
    pub group: Vec<ProcessFacts>,
    /// Why the answer is about less than the program does, one sentence each.
    pub remarks: Vec<String>,
}

/// Runs the program, and records or watches it. `folder`: where its trace is; `paged`: only the pager will do, and
/// why.
///
/// # Errors
/// There is no such program; it cannot be watched; it does not use enough memory.
pub fn measure(
    command: &[OsString],
    folder: &Path,
    limits: &Limits,
    paged: Option<&str>,
    listener: &dyn Listener,
) -> Result<Measured, AnswerError> {
    binary(command)?;
    match (pageable(command), paged) {
        (Ok(()), _) => recorded(command, folder, limits, paged, listener),
        (Err(why), Some(paged)) => Err(AnswerError::new(4, format!("{paged}, which is not possible: {why}"))),
        (Err(why), None) => watched(command, &why.to_string(), limits, listener),
    }
}

fn recorded(
    command: &[OsString],
    folder: &Path,
    limits: &Limits,
    paged: Option<&str>,
    listener: &dyn Listener,
) -> Result<Measured, AnswerError> {
    // Reports what this machine lacks before the program runs.
    let machine = Machine::known(listener)?;
    let trace = folder.join("trace.parquet");
    let order = Order { command, patience: PATIENCE, max_time: limits.time, ..Order::default() };
    let recording = match (served(&order, &trace)?, paged) {
        (Ok(recording), _) => recording,
        (Err(why), Some(paged)) => return Err(AnswerError::new(4, format!("{paged}, which is not possible: {why}"))),
        (Err(why), None) => {
            listener.warn(&format!("coldframe: {why}; running it again, to watch all of it\n"));
            let _ = std::fs::remove_file(&trace);
            return watched(command, &why, limits, listener);
        }
    };
    let reading = Reading::read(&trace, None, Some(MAP))?;
    let mut answer = machine.about(&reading, limits)?;
    answer.common.not_paged = recording.not_paged.clone();
    let answer = Answer::Recorder(answer);
    let (heat, group) = (reading.heat, reading.provenance.group);
    Ok(Measured { answer, heat, group, remarks: recording.remarks() })
}

fn watched(command: &[OsString], why: &str, limits: &Limits, listener: &dyn Listener) -> Result<Measured, AnswerError> {
    let answer = watch::program(command, why, limits, listener)?;
    let remarks = answer.common.notes.clone();
    Ok(Measured { answer: Answer::ReferencedBits(answer), heat: None, group: Vec::new(), remarks })
}
