//! What a program needs, in the best way that the machine allows: recorded by our pager, else watched by its referenced
//! bits; and then run again, plain and in less RAM, as far as it can be.

use std::path::Path;
use std::time::Instant;

use coldframe_store::heat::Heat;
use coldframe_store::ProcessFacts;

use super::alone::{only_once, Alone, Yardstick};
use super::files::{self, LessCache};
use super::log::RunLog;
use super::plan::{carry_out, Runner};
use super::runner::{swap_folder, Bench, Ways};
use super::search::LessRam;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::prices::swap_file;
use crate::nothing::Nothing;
use crate::predict::common::program as program_of;
use crate::predict::kinds::Answer;
use crate::predict::machine::Machine;
use crate::predict::measured::Measurements;
use crate::predict::question::{Limits, Reading};
use crate::predict::record::{served, RecordOrder, PATIENCE, PATIENCE_WITH_RUNS};
use crate::predict::watch;
use crate::run::child::{code, Signals};
use crate::run::program::{line, pageable, Executable};
use crate::run::runs::{Run, Runs};
use crate::run::streams::Streams;

/// Rows and columns of the map of touched memory: a page with it stays far below its bound.
pub const MAP: (usize, usize) = (40, 120);

/// An answer about a program, and what else its recording shows.
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Where and when memory was touched.
    pub heat: Option<Heat>,
    /// The processes of the command.
    pub group: Vec<ProcessFacts>,
    /// Why the answer is about less than the program does, one sentence each.
    pub remarks: Vec<String>,
    /// The exit code of its first run as a shell reports it; 0: coldframe ended it.
    pub status: u8,
}

/// Runs the program, and records or watches it; then it runs again.
///
/// # Errors
/// There is no such program; it cannot be watched; it does not use enough memory.
pub fn measure(
    command: &Executable,
    folder: &Path,
    limits: &Limits,
    listener: &dyn Listener,
) -> Result<Answered, AnswerError> {
    let streams = Streams::new()?;
    // What this machine lacks is reported before the program runs. It is measured once, which is no part of the
    // answer's time.
    let machine = pageable(command).map(|()| Machine::known(listener));
    let measuring = Measuring { command, folder, limits, streams: &streams, began: Instant::now(), listener };
    let answered = match machine {
        Ok(machine) => measuring.recorded(&machine?),
        Err(why) => measuring.watched(&why.to_string()),
    };
    answered.map_err(|error| match error {
        AnswerError::Failed(status) => AnswerError::new(code(status), error.to_string()),
        error => error,
    })
}

/// An answer that is being made.
struct Measuring<'a> {
    command: &'a Executable,
    /// The folder of its trace.
    folder: &'a Path,
    limits: &'a Limits,
    streams: &'a Streams,
    began: Instant,
    listener: &'a dyn Listener,
}

impl Measuring<'_> {
    fn recorded(&self, machine: &Machine) -> Result<Answered, AnswerError> {
        let trace = self.folder.join("trace.parquet");
        let streams = Some(self.streams);
        let order = RecordOrder {
            patience: if self.limits.once { PATIENCE } else { PATIENCE_WITH_RUNS },
            max_time: self.limits.time,
            streams,
            listener: Some(self.listener),
            ..RecordOrder::new(self.command)
        };
        let recording = match served(&order, &trace)? {
            Ok(recording) => recording,
            Err(why) => {
                self.listener.warn(&format!("coldframe: {why}; running it again, to watch all of it\n"));
                let _ = std::fs::remove_file(&trace);
                return self.watched(&why);
            }
        };
        let code = recording.shell_code();
        Nothing::refuse(program_of(Some(&line(self.command))), Some(code.into()), recording.managed_bytes)?;
        let status = recording.status.filter(|_| recording.limit.is_none());
        let left = (!recording.processes_left.is_empty()).then_some("it has gone to the background");
        let first = First::new(recording.seconds, status, left);
        let mut shown = (None, Vec::new());
        let answered = |seconds: Option<f64>| {
            self.listener.progress(0, None, "computing its time in less RAM");
            let reading = Reading::read(&trace, seconds, Some(MAP))?;
            let mut answer = machine.about(&reading, self.limits)?;
            answer.common.not_paged = recording.not_paged.clone();
            shown = (reading.heat, reading.provenance.group);
            Ok(Answer::Recorder(answer))
        };
        let (answer, more) = self.with_runs(first, answered)?;
        let (heat, group) = shown;
        Ok(Answered { answer, heat, group, remarks: [recording.remarks(), more].concat(), status: code })
    }

    fn watched(&self, why: &str) -> Result<Answered, AnswerError> {
        let watched = watch::program(self.command, self.limits, Some(self.streams), self.listener)?;
        let status = watched.ended.status.code().filter(|_| watched.ended.why.is_none());
        let first = First::new(watched.seconds(), status, None);
        let answered = |seconds| Ok(Answer::ReferencedBits(watched.answer(why, self.limits, seconds)?));
        let (answer, remarks) = self.with_runs(first, answered)?;
        Ok(Answered { answer, heat: None, group: Vec::new(), remarks, status: watched.shell_code() })
    }

    /// The answer, from its prediction, which takes the stand-alone time, and from measured runs as far as there can be
    /// any; and what to know of them.
    fn with_runs(
        &self,
        first: First,
        predicted: impl FnOnce(Option<f64>) -> Result<Answer, AnswerError>,
    ) -> Result<(Answer, Vec<String>), AnswerError> {
        let Some(first) = first.run.filter(|_| !self.limits.once).zip(Some(first.once)) else {
            return Ok((predicted(None)?, Vec::new()));
        };
        let (first, once) = first;
        if let Some(why) = only_once(first.seconds, once.or_else(|| self.streams.lost())) {
            return Ok((predicted(None)?, vec![why]));
        }
        let (folder, signals) = (swap_folder()?, Signals::catch()?);
        let (program, streams, began, folder) = (self.command, self.streams, self.began, folder.path());
        let mut bench = Bench { program, folder, streams, signals: &signals, began, files_known: false };
        let alone = Alone { recorded_seconds: first.seconds, limits: *self.limits };
        let mut runs = RunLog::after(Run { output: streams.first_output(), ..first });
        let yardstick = carry_out(&alone, &mut runs, &mut bench, self.listener);
        let prediction = predicted(yardstick.seconds)?;
        if yardstick.seconds.is_none() {
            self.listener.finish();
            return Ok((prediction, yardstick.remarks));
        }
        let ways = Ways::find(program, folder);
        let done = with_less(prediction, yardstick, &ways, &mut runs, self.limits, &mut bench, self.listener);
        self.listener.finish();
        Ok(done)
    }
}

/// The run in which the program was recorded or watched.
struct First {
    /// `None`: it did not end by itself.
    run: Option<Run>,
    /// Why it cannot be run again.
    once: Option<&'static str>,
}

impl First {
    fn new(seconds: f64, status: Option<i32>, once: Option<&'static str>) -> First {
        First { run: status.map(|status| Run { seconds, status: status as u8, ..Run::default() }), once }
    }
}

/// The answer from its prediction and from runs in less RAM, and what to know of these.
pub fn with_less(
    prediction: Answer,
    yardstick: Yardstick,
    ways: &Ways,
    runs: &mut RunLog,
    limits: &Limits,
    runner: &mut dyn Runner,
    listener: &dyn Listener,
) -> (Answer, Vec<String>) {
    let plain = runs.plain();
    let prediction = prediction.after(&plain);
    let (pager, kernel) = (ways.pager.clone().ok(), ways.kernel.clone().ok());
    let top = prediction.needed_bytes;
    let limit = limits.longest(plain.seconds);
    let left = (yardstick.until - runner.now()).max(0.0);
    let search = LessRam {
        // Our pager runs what it has recorded.
        ways: pager.filter(|_| prediction.recorded().is_some()).into_iter().chain(kernel).collect(),
        given: prediction.given_ram_bytes,
        sizes: (prediction.ram_bytes.unwrap_or(top), top),
        limits: *limits,
        until: yardstick.until - files::reserve(&prediction, limit, left),
    };
    let found = carry_out(&search, runs, runner, listener);
    let less_cache = LessCache::new(&prediction, &ways.kernel, found.limit, yardstick.until);
    let less_cache = less_cache.map(|plan| carry_out(&plan, runs, runner, listener));
    // A swap file of these runs is gone; the user makes another one.
    let pasted = |swap: String| if Path::new(&swap).is_absolute() { swap_file() } else { swap };
    let kinds = runs.kinds().into_iter().filter(|(way, _)| !way.in_all);
    let less_ram = kinds.map(|(_, runs)| Runs { swap: runs.swap.clone().map(pasted), ..runs }).collect();
    let size = (!search.ways.is_empty()).then_some(found.size);
    // Later runs alone count, too.
    let measurements = Measurements { plain: runs.plain(), less_ram, size, less_cache };
    (prediction.measured(measurements), [yardstick.remarks, found.remarks].concat())
}
