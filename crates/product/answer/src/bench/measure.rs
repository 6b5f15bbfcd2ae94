//! What a program needs, in the best way that the machine allows.
//!
//! ```text
//!   a memory group can be made ─► alone, shown ─► alone, files cold ─► in limits ─► recorded: a LimitAnswer
//!   none can                   ─► recorded by our pager, else watched by its bits ─► by our pager: an Answer
//! ```

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use coldframe_kernel::SwapKind;
use coldframe_sheet::quantity::human_size;
use coldframe_store::ProcessFacts;

use super::alone::{only_once, Alone, Yardstick};
use super::fit::{Fit, InGroup};
use super::limit_answer::LimitAnswer;
use super::log::RunLog;
use super::plan::{carry_out, Runner};
use super::runner::{swap_folder, Bench, Ways};
use super::search::LessRam;
use super::trial::{Outcome, Refusal, Trial};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::prices::swap_file;
use crate::nothing::Nothing;
use crate::predict::bits::touched::{Touched, MAP};
use crate::predict::common::program as program_of;
use crate::predict::kinds::{Answer, Method};
use crate::predict::machine::Machine;
use crate::predict::measured::Measurements;
use crate::predict::question::{Limits, Reading};
use crate::predict::record::{served, RecordOrder, PATIENCE, PATIENCE_WITH_RUNS};
use crate::predict::watch;
use crate::run::by_kernel::ready;
use crate::run::child::code;
use crate::run::program::{line, pageable, Executable};
use crate::run::runs::{Run, Runs};
use crate::run::runtime::Runtime;
use crate::run::signals::Signals;
use crate::run::streams::Streams;

/// The part of the answer's time that is kept for the recording.
const RECORDING: f64 = 0.2;
/// An answer about a program, and what else its recording shows.
pub struct Answered {
    /// The answer.
    pub answer: Kind,
    /// Where and when memory was touched, and who owns it.
    pub touched: Option<Touched>,
    /// The processes of the command.
    pub group: Vec<ProcessFacts>,
    /// Why the answer is about less than the program does, one sentence each.
    pub remarks: Vec<String>,
    /// The exit code of its first run as a shell reports it; 0: coldframe ended it.
    pub status: u8,
}

/// The two kinds of an answer about a program.
#[expect(clippy::large_enum_variant, reason = "a program makes one")]
pub enum Kind {
    /// Measured in a memory group.
    Measured(LimitAnswer),
    /// Predicted, and measured as far as our pager runs it: no group can be made here, or the program is to run once.
    Estimated(Answer),
}

/// Runs the program, and measures, records or watches it.
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
    let measuring = Measuring { command, folder, limits, streams: &streams, began: Instant::now(), listener };
    let why = match ready(Some(SwapKind::None)) {
        _ if limits.once => "it ran once",
        _ if limits.time.is_some() => "it was ended after --for",
        Ok(_) => return measuring.in_group(),
        Err(_) => "none can be made here; run it as root, or in a session of systemd",
    };
    // What this machine lacks is reported before the program runs. It is measured once, which is no part of the
    // answer's time.
    let answered = match pageable(command).map(|()| Machine::known(listener)) {
        Ok(machine) => Measuring { began: Instant::now(), ..measuring }.recorded(&machine?),
        Err(why) => measuring.watched(&why.to_string()),
    };
    let estimated = |answered: Answered| {
        let range = match &answered.answer {
            Kind::Estimated(answer) => {
                let (all, least) = (human_size(answer.needed_bytes), answer.ram_bytes.map(human_size));
                let from = match answer.method() {
                    Method::Recorder => "",
                    Method::ReferencedBits => " from its pages' referenced bits",
                };
                match least.filter(|least| *least != all) {
                    Some(least) => format!(" between {least} and {all} is estimated{from}"),
                    None => format!(" of {all} is estimated{from}"),
                }
            }
            Kind::Measured(_) => String::new(),
        };
        let estimate = format!("a limit{range}, not measured in a memory group: {why}");
        Answered { remarks: [vec![estimate], answered.remarks].concat(), ..answered }
    };
    answered.map(estimated).map_err(|error| match error {
        AnswerError::Failed(status) => AnswerError::new(code(status), error.to_string()),
        error => error,
    })
}

/// What a recording shows: a prediction, the map, the processes.
type Shown = (Option<Answer>, Option<Touched>, Vec<ProcessFacts>);

/// The map of a recording, and its processes.
fn touched(reading: Reading) -> (Option<Touched>, Vec<ProcessFacts>) {
    let (made, rows) = (&reading.provenance.mappings, &reading.rows);
    let recorded = |heat| Touched::recorded(heat, made, rows.facts.recorded_seconds, rows.sample);
    (reading.heat.map(recorded), reading.provenance.group)
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
    /// In memory groups.
    fn in_group(&self) -> Result<Answered, AnswerError> {
        let (folder, signals) = (swap_folder()?, Signals::catch()?);
        let (program, streams, folder) = (self.command, self.streams, folder.path());
        let mut bench = Bench { began: self.began, ..Bench::new(program, folder, streams, &signals, true) };
        let first = match bench.run(&Trial { shown: true, ..Trial::plain(None) }) {
            Outcome::Ran(run) => run,
            Outcome::Refused(why) => return Err(why.into_error()),
            Outcome::Signal => return Err(Refusal::stopped().into_error()),
        };
        let (first_seconds, status) = (first.seconds, first.status);
        let (mut runs, command) = (RunLog::after(first), line(program));
        let done = |runs: &RunLog, fit: Fit, remarks: Vec<String>| {
            let answer = Kind::Measured(LimitAnswer::new(&command, runs, fit, self.limits, remarks));
            Answered { answer, touched: None, group: Vec::new(), remarks: Vec::new(), status }
        };
        if let Some(why) = only_once(first_seconds, streams.lost()) {
            return Ok(done(&runs, Fit::default(), vec![why]));
        }
        let mapped = bench.mapped.lock().map(|files| files.clone()).unwrap_or_default();
        let cold = bench.mapped_files();
        let alone = Alone { first_seconds, cold: Rc::clone(&cold) };
        let yardstick = carry_out(&alone, &mut runs, &mut bench, self.listener);
        if yardstick.seconds.is_none() {
            self.listener.finish();
            return Ok(done(&runs, Fit::default(), yardstick.remarks));
        }
        // Those of cold runs: the first one may have found its files in RAM.
        let alone = runs.plain().runs.iter().filter_map(|run| run.group).max_by_key(|group| group.peak_bytes);
        let alone = alone.unwrap_or_default();
        let files = alone.peak_bytes.saturating_sub(alone.fixed_bytes);
        let ways = Ways::find(program, folder);
        let reserve = RECORDING * (yardstick.until - self.now());
        let plan = InGroup {
            guess: (alone.fixed_bytes > 0).then_some(alone.fixed_bytes + files / 2),
            given: self.limits.ram,
            runtime: Runtime::find(program.binary(), &mapped),
            others: ways.kernel.ok().into_iter().chain(ways.pager.ok()).collect(),
            cold,
            limits: *self.limits,
            until: yardstick.until - reserve,
        };
        let fit = carry_out(&plan, &mut runs, &mut bench, self.listener);
        let Answered { answer, .. } = done(&runs, fit, yardstick.remarks);
        let Kind::Measured(answer) = answer else { unreachable!("it is measured") };
        let left = Duration::try_from_secs_f64(yardstick.until - self.now()).unwrap_or_default();
        let recorded = self.recording(answer.program_seconds, left);
        self.listener.finish();
        let (prediction, touched, group) = recorded.unwrap_or_default();
        let answer = Kind::Measured(LimitAnswer { prediction, ..answer });
        Ok(Answered { answer, touched, group, remarks: Vec::new(), status })
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// What a recording shows, which nobody sees and which ends after this time. `None`: our pager does not serve it,
    /// or the time is too short. It predicts something if this machine was measured before: that takes some 10 s.
    fn recording(&self, seconds: f64, left: Duration) -> Option<Shown> {
        if left.as_secs_f64() <= seconds {
            return None;
        }
        if pageable(self.command).is_err() {
            return self.referenced(left);
        }
        let trace = self.folder.join("trace.parquet");
        let order = RecordOrder {
            patience: PATIENCE_WITH_RUNS,
            max_time: Some(left),
            streams: Some(self.streams),
            listener: Some(self.listener),
            ..RecordOrder::new(self.command)
        };
        let recording = served(&order, &trace).ok()?.ok()?;
        self.listener.progress(0, None, "reading what it touched");
        let reading = Reading::read(&trace, Some(seconds), Some(MAP)).ok()?;
        let predicted = Machine::measured_before().and_then(|machine| machine.about(&reading, self.limits).ok());
        let answer = predicted.map(|mut answer| {
            answer.common.not_paged = recording.not_paged;
            Answer::Recorder(answer)
        });
        let touched = touched(reading);
        Some((answer, touched.0, touched.1))
    }

    /// What referenced bits show in a run that ends after this time, where our pager cannot record it.
    fn referenced(&self, left: Duration) -> Option<Shown> {
        let limits = Limits { time: Some(left), ..*self.limits };
        let watched = watch::program(self.command, &limits, Some(self.streams), self.listener).ok()?;
        Some((None, watched.touched(), Vec::new()))
    }

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
        Nothing::refuse(program_of(Some(&line(self.command))), Some(code.into()), recording.managed_bytes)
            .map_err(|nothing| Nothing { ended_early: recording.limit.is_some(), ..nothing })?;
        let status = recording.status.filter(|_| recording.limit.is_none());
        let left = (!recording.processes_left.is_empty()).then_some("it has gone to the background");
        let first = First::new(recording.seconds, status, left);
        let mut shown = (None, Vec::new());
        let answered = |seconds: Option<f64>| {
            self.listener.progress(0, None, "computing its time in less RAM");
            let reading = Reading::read(&trace, seconds, Some(MAP))?;
            let mut answer = machine.about(&reading, self.limits)?;
            answer.common.not_paged = recording.not_paged.clone();
            shown = touched(reading);
            Ok(Answer::Recorder(answer))
        };
        let (answer, more) = self.with_runs(first, answered)?;
        let (touched, group) = shown;
        let (answer, remarks) = (Kind::Estimated(answer), [recording.remarks(), more].concat());
        Ok(Answered { answer, touched, group, remarks, status: code })
    }

    fn watched(&self, why: &str) -> Result<Answered, AnswerError> {
        let watched = watch::program(self.command, self.limits, Some(self.streams), self.listener)?;
        let status = watched.ended.status.code().filter(|_| watched.ended.why.is_none());
        let first = First::new(watched.seconds(), status, None);
        let answered = |seconds| Ok(Answer::ReferencedBits(watched.answer(why, self.limits, seconds)?));
        let (answer, remarks) = self.with_runs(first, answered)?;
        let (answer, status) = (Kind::Estimated(answer), watched.shell_code());
        Ok(Answered { answer, touched: watched.touched(), group: Vec::new(), remarks, status })
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
        let (program, streams, folder) = (self.command, self.streams, folder.path());
        let mut bench = Bench { began: self.began, ..Bench::new(program, folder, streams, &signals, false) };
        let alone = Alone { first_seconds: first.seconds, cold: Rc::new([]) };
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
    let search = LessRam {
        // Our pager runs what it has recorded.
        ways: pager.filter(|_| prediction.recorded().is_some()).into_iter().chain(kernel).collect(),
        given: prediction.given_ram_bytes,
        sizes: (prediction.ram_bytes.unwrap_or(top), top),
        limits: *limits,
        until: yardstick.until,
    };
    let found = carry_out(&search, runs, runner, listener);
    // A swap file of these runs is gone; the user makes another one.
    let pasted = |swap: String| if Path::new(&swap).is_absolute() { swap_file() } else { swap };
    let kinds = runs.kinds().into_iter();
    let less_ram = kinds.map(|(_, runs)| Runs { swap: runs.swap.clone().map(pasted), ..runs }).collect();
    let size = (!search.ways.is_empty()).then_some(found.size);
    // Later runs alone count, too.
    let measurements = Measurements { plain: runs.plain(), less_ram, size };
    (prediction.measured(measurements), [yardstick.remarks, found.remarks].concat())
}
