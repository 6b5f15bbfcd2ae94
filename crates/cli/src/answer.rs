//! What a recorded program takes by RAM on this machine: the question that `advise --device here` and `coldframe -- PROGRAM` ask.

use std::path::Path;

use coldframe_device::here::Here;
use coldframe_device::quantity;
use coldframe_live::costs::Extent;
use coldframe_live::{FRAMES_MIN, PAGE};
use coldframe_report::advise::limits::percent;
use coldframe_report::here::json::DEVICE;
use coldframe_report::here::{answer, Answer, Pager, Question};
use coldframe_report::ReportError;
use coldframe_trace::{Fidelity, Reader};

use crate::advise::Asked;
use crate::failure::Failure;
use crate::here;
use crate::run::default_backing;

/// Whether the question is about this machine: it says so, or it names nothing else, the trace is one of this machine's recorder, and it is
/// known what the program takes by itself.
pub fn is_here(asked: &Asked) -> bool {
    let recorded = |path: &Path| {
        let provenance = Reader::open(path).ok().map(|reader| reader.provenance().clone());
        provenance
            .is_some_and(|p| p.fidelity == Fidelity::Window && (p.program.is_some() || asked.program_time.is_some()))
    };
    match asked.device.as_slice() {
        [] => asked.system.is_none() && recorded(&asked.trace),
        devices => devices.iter().any(|device| device == DEVICE),
    }
}

/// The answer.
///
/// # Errors
/// Options that mean nothing here, and as [`answer`].
pub fn of(asked: &Asked) -> Result<Answer, Failure> {
    if let Some(option) = asked.of_boards() {
        return Err(Failure::usage(format!(
            "{option} is for a board; give one with --device NAME, or leave {option} out and ask about this machine"
        )));
    }
    let slowdown = asked.max_slowdown.as_deref().map(|text| percent("max-slowdown", text)).transpose()?;
    let program_seconds = asked.program_time.as_deref().map(quantity::time).transpose();
    let program_seconds = program_seconds.map_err(|e| Failure::usage(format!("--program-time: {e}")))?;
    about(&asked.trace, slowdown.map(|percent| percent / 100.0), program_seconds.map(|time| time.0 as f64 / 1e12))
}

/// The answer about a trace.
///
/// # Errors
/// As [`answer`].
pub fn about(trace: &Path, slowdown: Option<f64>, program_seconds: Option<f64>) -> Result<Answer, Failure> {
    let (here, measured) = costs()?;
    let slowdown = slowdown.unwrap_or(Question::SLOWDOWN);
    let pager = Pager { ram_least: (FRAMES_MIN * PAGE) as u64, ..Pager::default() };
    Ok(answer(trace, &Question { here, measured, pager, slowdown, program_seconds })?)
}

/// What paging costs on this machine, and where that comes from.
fn costs() -> Result<(Here, String), Failure> {
    let sheet = here::sheet(&default_backing(), Extent::Whole, false)?;
    let measured = sheet.machine.as_ref().map_or(String::new(), |machine| machine.measured.clone());
    Ok((Here::of(&sheet).map_err(ReportError::from)?, format!("measured on {measured} by `coldframe calibrate`")))
}
