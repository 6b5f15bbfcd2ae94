//! Yes or no about a program's memory: it is recorded, or watched where that is not possible, and its need is compared
//! with a limit.

use coldframe_sheet::Sheet;

use crate::bench::limit::InLimit;
use crate::bench::log::RunLog;
use crate::bench::need::{Need, NOISE};
use crate::bench::plan::carry_out;
use crate::bench::runner::{swap_folder, Bench, Ways};
use crate::bench::trial::Refusal;
use crate::bench::verdict::{growth, median, noise, Verdict, RECORDINGS};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::common::program;
use crate::predict::kinds::Answer;
use crate::predict::machine::Machine;
use crate::predict::question::{Limits, Reading};
use crate::predict::record::{served, RecordOrder, PATIENCE_OF_CHECK};
use crate::predict::watch;
use crate::run::child::Signals;
use crate::run::program::{line, pageable, Executable};
use crate::run::runs::Runs;
use crate::run::streams::Streams;
use std::sync::Mutex;
use std::time::Instant;

/// The question.
pub struct Check<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// The most RAM.
    pub max_ram: Option<u64>,
    /// The longest extra run time, as a part of the stand-alone time.
    pub slowdown: Option<f64>,
    /// The stand-alone time, if it is known.
    pub seconds: Option<f64>,
    /// What the program needed earlier, and the name of its file.
    pub baseline: Option<(&'a str, &'a Need)>,
    /// Whether a new baseline is wanted: the median of several recordings.
    pub writes_baseline: bool,
    /// Whether the need is wanted, too, which takes a recording.
    pub need: bool,
}

/// The answer to a check.
pub struct Checked {
    /// Yes or no.
    pub verdict: Verdict,
    /// What the program needs, and the answer about it, if it was recorded or watched.
    pub need: Option<(Need, Answer)>,
}

/// Runs the program alone and in its RAM, and decides. If there is no such limit, or the program cannot be run so, it
/// is recorded or watched, and again if the answer is no, and its need is compared.
///
/// # Errors
/// No limit; the program failed, or can only be measured in another way than its baseline.
pub fn check(check: &Check, listener: &dyn Listener) -> Result<Checked, AnswerError> {
    let limit = check.max_ram.or(check.baseline.map(|(_, need)| growth(need.need_bytes, NOISE)));
    if limit.is_none() && !check.writes_baseline {
        return Err(AnswerError::usage("check -- PROGRAM needs a limit: --max-ram SIZE, or --baseline NEED.json"));
    }
    let slowdown = check.limits().slowdown;
    // What the program prints is shown once, by its first run of any kind.
    let streams = Streams::new()?;
    let runs = check.max_ram.map(|ram| check.in_limit(ram, slowdown, &streams, listener)).transpose()?.flatten();
    listener.finish();
    if let (Some((plain, paged)), true) = (&runs, check.baseline.is_none() && !check.writes_baseline && !check.need) {
        let program = program(Some(&line(check.command)));
        let verdict = Verdict::by_runs(program, slowdown, limit, plain.clone(), paged.clone());
        return Ok(Checked { verdict, need: None });
    }
    // Where the pager cannot record it, its referenced bits are watched, as `coldframe -- PROGRAM` does.
    let mut recorder = match pageable(check.command) {
        Ok(()) => Recorder::Pager(Box::new(check.machine(listener)?)),
        Err(why) => Recorder::Bits(why.to_string()),
    };
    let (mut needs, mut answers) = (Vec::new(), Vec::new());
    loop {
        let (need, answer) = check.measured(&mut recorder, &streams, listener)?;
        needs.push(need);
        answers.push(answer);
        let verdict = Verdict::by_needs(&needs, limit, check.baseline);
        if !verdict.is_open() && (!check.writes_baseline || needs.len() >= RECORDINGS)
            || runs.is_some() && needs.len() >= RECORDINGS
        {
            let middle = median(&needs);
            let verdict = match runs {
                Some((plain, paged)) => verdict.decided_by(plain, paged, slowdown),
                None => verdict,
            };
            let noise = noise(&needs);
            let need = Some((Need { noise, ..needs.swap_remove(middle) }, answers.swap_remove(middle)));
            return Ok(Checked { verdict, need });
        }
        listener.note(&format!("coldframe: recorded {} of {RECORDINGS} times\n", needs.len()));
    }
}

/// The best way that the machine allows, with the machine whose costs count, or why it is not better.
enum Recorder {
    Pager(Box<Machine>),
    Bits(String),
}

impl Check<'_> {
    fn before(&self) -> Option<&Need> {
        self.baseline.map(|(_, need)| need)
    }

    fn limits(&self) -> Limits {
        Limits::slower(self.slowdown.or(self.before().map(|need| need.slowdown_percent / 100.0)))
    }

    /// Runs the program alone and in `ram`. `None`: it cannot be run again, or nobody can page it here.
    fn in_limit(
        &self,
        ram_bytes: u64,
        slowdown: f64,
        streams: &Streams,
        listener: &dyn Listener,
    ) -> Result<Option<(Runs, Runs)>, AnswerError> {
        let (program, began, folder) = (self.command, Instant::now(), swap_folder()?);
        let (signals, folder) = (Signals::catch()?, folder.path());
        let (in_group, mapped) = (false, Mutex::default());
        let mut bench = Bench { program, folder, streams, signals: &signals, began, in_group, mapped };
        let plan = InLimit { ways: Ways::find(program, folder), ram_bytes, slowdown };
        carry_out(&plan, &mut RunLog::default(), &mut bench, listener).map_err(Refusal::into_error)
    }

    /// The machine whose costs count: the baseline's, or this one.
    fn machine(&self, listener: &dyn Listener) -> Result<Machine, AnswerError> {
        match self.before().and_then(|need| need.sheet.clone()) {
            Some(sheet) => Machine::of(sheet),
            None => Machine::known(listener),
        }
    }

    /// Runs the program once, and records or watches it.
    fn measured(
        &self,
        recorder: &mut Recorder,
        streams: &Streams,
        listener: &dyn Listener,
    ) -> Result<(Need, Answer), AnswerError> {
        let paged = match &*recorder {
            Recorder::Pager(machine) => self.paged(machine, streams)?,
            Recorder::Bits(why) => Err(why.clone()),
        };
        let (need, answer) = match paged {
            Ok(measured) => measured,
            Err(why) => {
                let watched = watch::program(self.command, &self.limits(), Some(streams), listener)?;
                let answer = Answer::ReferencedBits(watched.answer(&why, &self.limits(), None)?);
                *recorder = Recorder::Bits(why);
                (Need::new(&answer, &[], None), answer)
            }
        };
        if answer.exit != Some(0) {
            let how = answer.exit.map_or("by a signal".into(), |code| format!("with exit code {code}"));
            let message = format!("the program ended {how}, so there is no verdict: mend it, and check again");
            return Err(AnswerError::new(3, message));
        }
        if self.before().is_some_and(|before| before.method != need.method) {
            let message = "the baseline was measured in another way (the pager's recorder, or referenced bits), which \
                           this machine or program does not allow; write one here with --write-baseline";
            return Err(AnswerError::new(4, message));
        }
        Ok((need, answer))
    }

    fn paged(&self, machine: &Machine, streams: &Streams) -> Result<Result<(Need, Answer), String>, AnswerError> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|e| AnswerError::new(5, format!("no temporary folder: {e}; set TMPDIR")))?;
        let trace = folder.path().join("trace.parquet");
        let (patience, streams) = (PATIENCE_OF_CHECK, Some(streams));
        let order = RecordOrder { patience, streams, ..RecordOrder::new(self.command) };
        if let Err(why) = served(&order, &trace)? {
            return Ok(Err(why));
        }
        let seconds = self.seconds.or(self.before().map(|need| need.program_seconds));
        let reading = Reading::read(&trace, seconds, None)?;
        let answer = Answer::Recorder(machine.priced(&reading, &self.limits())?);
        let sheet: Sheet = machine.sheet().clone();
        let need = Need::new(&answer, &reading.provenance.group, Some(sheet));
        Ok(Ok((need, answer)))
    }
}
