//! What a program needs, in the best way that the machine allows: recorded by our pager, else watched by its referenced
//! bits; and then run again, plain and in less RAM, as far as it can be.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use coldframe_store::heat::Heat;
use coldframe_store::ProcessFacts;

use crate::bench::page_cache::{less, others_until};
use crate::bench::runner::{kernel_swap, Bench, Way};
use crate::bench::trials::{once, First, Trials};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::prices::swap_file;
use crate::nothing::Nothing;
use crate::predict::common::program as program_of;
use crate::predict::kinds::Answer;
use crate::predict::machine::Machine;
use crate::predict::question::{Limits, Reading};
use crate::predict::record::{served, Order, PATIENCE, PATIENCE_WITH_RUNS};
use crate::predict::watch;
use crate::run::child::Signals;
use crate::run::pager::Pager;
use crate::run::program::{binary, default_backing, line, pageable};
use crate::run::runs::By;
use crate::run::streams::Streams;

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

/// Runs the program, and records or watches it; then it runs again.
///
/// # Errors
/// There is no such program; it cannot be watched; it does not use enough memory.
pub fn measure(
    command: &[OsString],
    folder: &Path,
    limits: &Limits,
    listener: &dyn Listener,
) -> Result<Measured, AnswerError> {
    binary(command)?;
    let streams = Streams::new()?;
    // What this machine lacks is reported before the program runs. It is measured once, which is no part of the answer's time.
    let machine = pageable(command).map(|()| Machine::known(listener));
    let measuring = Measuring { command, folder, limits, streams: &streams, began: Instant::now(), listener };
    match machine {
        Ok(machine) => measuring.recorded(&machine?),
        Err(why) => measuring.watched(&why.to_string()),
    }
}

/// A program that takes less than so many seconds has its peak between two looks.
const LEAST: f64 = 0.1;

/// An answer that is being made.
struct Measuring<'a> {
    command: &'a [OsString],
    /// The folder of its trace.
    folder: &'a Path,
    limits: &'a Limits,
    streams: &'a Streams,
    began: Instant,
    listener: &'a dyn Listener,
}

impl Measuring<'_> {
    fn recorded(&self, machine: &Machine) -> Result<Measured, AnswerError> {
        let trace = self.folder.join("trace.parquet");
        let streams = (!self.limits.once).then_some(self.streams);
        let order = Order {
            command: self.command,
            patience: if self.limits.once { PATIENCE } else { PATIENCE_WITH_RUNS },
            max_time: self.limits.time,
            streams,
            listener: Some(self.listener),
            ..Order::default()
        };
        let recording = match served(&order, &trace)? {
            Ok(recording) => recording,
            Err(why) => {
                self.listener.warn(&format!("coldframe: {why}; running it again, to watch all of it\n"));
                let _ = std::fs::remove_file(&trace);
                return self.watched(&why);
            }
        };
        Nothing::refuse(program_of(Some(&line(self.command))), recording.status, recording.managed_bytes)?;
        let status = recording.status.filter(|_| recording.limit.is_none());
        let left = (!recording.processes_left.is_empty()).then_some("it has gone to the background");
        let first = Run { seconds: recording.seconds, status: status.map(|status| status as u8), once: left };
        let mut shown = (None, Vec::new());
        let answered = |seconds: Option<f64>| {
            self.listener.progress(0, None, "computing its time in less RAM");
            let reading = Reading::read(&trace, seconds, Some(MAP))?;
            let mut answer = machine.about(&reading, self.limits)?;
            answer.common.not_paged = recording.not_paged.clone();
            shown = (reading.heat, reading.provenance.group);
            Ok(Answer::Recorder(answer))
        };
        let (answer, more) = self.with_runs(&first, answered)?;
        let (heat, group) = shown;
        Ok(Measured { answer, heat, group, remarks: [recording.remarks(), more].concat() })
    }

    fn watched(&self, why: &str) -> Result<Measured, AnswerError> {
        let streams = (!self.limits.once).then_some(self.streams);
        let watched = watch::program(self.command, self.limits, streams, self.listener)?;
        let status = watched.ended.status.code().filter(|_| watched.ended.why.is_none());
        let first = Run { seconds: watched.seconds(), status: status.map(|status| status as u8), once: None };
        let answered = |seconds| Ok(Answer::ReferencedBits(watched.answer(why, self.limits, seconds)?));
        let (answer, remarks) = self.with_runs(&first, answered)?;
        Ok(Measured { answer, heat: None, group: Vec::new(), remarks })
    }

    /// The answer, which takes the stand-alone time, with measured runs as far as there can be any; and what to know of
    /// them.
    fn with_runs(
        &self,
        first: &Run,
        answered: impl FnOnce(Option<f64>) -> Result<Answer, AnswerError>,
    ) -> Result<(Answer, Vec<String>), AnswerError> {
        let Some(status) = first.status.filter(|_| !self.limits.once) else {
            return Ok((answered(None)?, Vec::new()));
        };
        if let Some(why) = once(first.seconds, first.once.or_else(|| self.streams.lost())) {
            return Ok((answered(None)?, vec![why]));
        }
        let folder = tempfile::Builder::new().prefix("coldframe-runs-").tempdir_in(default_backing());
        let folder = folder.map_err(|e| AnswerError::new(5, format!("no folder for swap files: {e}; set TMPDIR")))?;
        let signals = Signals::catch()?;
        let (program, streams) = (self.command, self.streams);
        let bench = Bench { program, folder: folder.path(), streams, signals: &signals };
        let first = First { status, output: streams.first_output(), seconds: first.seconds };
        let mut trials = Trials::alone(&bench, first, self.began, self.limits, self.listener)?;
        let mut answer = answered(trials.plain())?;
        if let (Answer::Recorder(answer), Some(LEAST..)) = (&mut answer, trials.plain()) {
            answer.common.only_read(trials.peak_bytes);
        }
        if trials.plain().is_some() {
            if let Answer::Recorder(answer) = &mut answer {
                answer.common.not_paged.get_or_insert_default().see(&trials.files);
            }
            let until = trials.until;
            trials.until = others_until(&trials, &answer);
            less_ram(&mut trials, &mut answer, folder.path());
            trials.until = until;
            let runs = less(&mut trials, &answer, folder.path());
            answer.common_mut().not_paged.iter_mut().for_each(|all| (all.runs, all.no_runs) = runs.clone());
        }
        // Later runs alone count, too.
        let common = answer.common_mut();
        common.program_seconds = trials.plain().unwrap_or(common.program_seconds);
        self.listener.finish();
        if let (Answer::Recorder(answer), true) = (&mut answer, trials.measured.iter().any(|one| one.by == By::Kernel))
        {
            answer.kernel = None;
        }
        let common = answer.common_mut();
        common.runs = trials.measured;
        // A swap file of these runs is gone; the user makes another one.
        let own = swap_file();
        let made = folder.path().display().to_string();
        let gone = |swap: &&mut String| swap.starts_with(&made);
        common.runs.iter_mut().filter_map(|run| run.swap.as_mut()).filter(gone).for_each(|swap| swap.clone_from(&own));
        Ok((answer, trials.remarks))
    }
}

/// The recorded run.
struct Run {
    seconds: f64,
    /// Its exit code; `None`: a signal ended it.
    status: Option<u8>,
    /// Why it cannot be run again.
    once: Option<&'static str>,
}

/// Runs it in less RAM: by our pager if that has recorded it, and by the kernel if that is possible here.
fn less_ram(trials: &mut Trials, answer: &mut Answer, folder: &Path) {
    let top = answer.needed_bytes;
    let start = answer.ram_bytes.unwrap_or(answer.needed_bytes);
    let ours = answer.recorded().is_some();
    let swap = kernel_swap(folder);
    let kernel = swap.as_ref().map(|swap| Way { by: Pager::Kernel, swap: swap.as_deref(), in_all: false });
    let pager = Way { by: Pager::Ours, swap: None, in_all: false };
    if let (Some(ram), Some(way)) = (answer.given_ram_bytes, if ours { Some(pager) } else { kernel }) {
        trials.at(way, ram, 2.0);
    }
    let start = start.min(top);
    let ways = match (ours.then_some(pager), kernel) {
        (Some(pager), Some(kernel)) => Vec::from(trials.faster([pager, kernel], start, 1.0)),
        (one, other) => one.or(other).into_iter().collect(),
    };
    // The faster way is searched, the other one tried with the size that was found, or searched if there is none.
    let mut found = None;
    for way in &ways {
        match found {
            // Something is left for the same size once more.
            None => found = trials.search(*way, start, top, 1.0),
            Some(ram) => _ = trials.at(*way, ram, 0.0),
        }
    }
    if ways.is_empty() {
        return;
    }
    let common = answer.common_mut();
    // What no run has refuted stays recommended, as a prediction.
    let unrefuted = common.ram_bytes.filter(|ram| !trials.refutes(*ram));
    (common.ram_bytes, common.by) = match found.or(unrefuted) {
        Some(ram) => (Some(ram), trials.best(ram)),
        None => (Some(top), Some(By::Plain)),
    };
}
