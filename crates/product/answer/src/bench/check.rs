//! Yes or no about a program's memory: it runs in its limit, as in a container of that size, and its peaks are compared
//! with those of a baseline.
//!
//! ```text
//!   alone, seen by the user ─┬─ --max-ram ─► alone and in the limit, in turn ─► Evidence
//!                            └─ baseline ──► alone, recorded by our pager ─► its peaks; a second time if they grew
//! ```

use std::path::{Path, PathBuf};
use std::rc::Rc;

use coldframe_kernel::SwapKind;

use super::limit::{succeeded, InLimit};
use super::log::RunLog;
use super::need::{varied, Heap, Need};
use super::plan::{carry_out, Runner};
use super::runner::{swap_folder, Bench};
use super::trial::{Refusal, Trial};
use super::verdict::Verdict;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::question::{Limits, Reading};
use crate::predict::record::{served, RecordOrder, PATIENCE_WITH_RUNS};
use crate::run::by_kernel::ready;
use crate::run::looks::group::GroupUse;
use crate::run::program::{line, pageable, Executable};
use crate::run::runs::Way;
use crate::run::signals::Signals;
use crate::run::streams::Streams;

/// Runs and recordings of a baseline, and of a check that is about to say no.
const TIMES: usize = 2;

/// The question.
pub struct Check<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// The limit.
    pub max_ram: Option<u64>,
    /// The longest extra run time, as a part of the time without a limit.
    pub slowdown: Option<f64>,
    /// The swap that there will be, in the words of `run --swap`; `None`: it is not said, and there is none.
    pub swap: Option<&'a str>,
    /// What the program took earlier, and the name of its file.
    pub baseline: Option<(&'a str, &'a Need)>,
    /// Whether a new baseline is wanted.
    pub writes_baseline: bool,
}

/// The answer to a check.
pub struct Checked {
    /// Yes or no.
    pub verdict: Verdict,
    /// The new baseline, if it is wanted.
    pub need: Option<Need>,
}

/// Runs the program, and decides.
///
/// # Errors
/// No limit; the program failed; there can be no such swap, or no peak can be measured here.
pub fn check(check: &Check, listener: &dyn Listener) -> Result<Checked, AnswerError> {
    if check.max_ram.is_none() && check.baseline.is_none() && !check.writes_baseline {
        return Err(AnswerError::usage("check -- PROGRAM needs a limit: --max-ram SIZE, or --baseline NEED.json"));
    }
    let swap = check.swap.map_or(SwapKind::None, SwapKind::parse);
    let no_group = match ready(Some(swap.clone())) {
        Err(error) if check.swap.is_some() => return Err(error),
        done => done.err().map(|error| error.to_string()),
    };
    let (folder, streams, signals) = (swap_folder()?, Streams::new()?, Signals::catch()?);
    let in_group = no_group.is_none();
    let mut bench = Bench::new(check.command, folder.path(), &streams, &signals, in_group);
    let first = bench.run(&Trial { shown: true, ..Trial::plain(None) });
    let first = succeeded(&first).map_err(Refusal::into_error)?;
    let checking = Checking {
        check,
        command: line(check.command),
        folder: folder.path(),
        streams: &streams,
        cold: bench.mapped_files(),
        way: Way::kernel(Some(swap.to_string())),
        listener,
    };
    let slowdown = Limits::slower(check.slowdown).slowdown;
    let mut verdict = Verdict::new(&checking.command, slowdown, first.seconds);
    let seen = first.group.map_or(first.peak_bytes, |group| group.peak_bytes);
    let lost = streams.lost().map(|why| format!("{why}, so it was not run again"));
    let mut runs = RunLog::after(first);
    verdict = match (check.max_ram, &no_group, &lost) {
        (None, ..) => verdict,
        (Some(ram), None, None) => {
            checking.runs(Some((checking.way.clone(), ram)), slowdown, &mut runs, &mut bench)?;
            verdict.in_limit(&runs, &checking.way, ram)
        }
        (Some(ram), Some(why), _) => verdict.estimated(ram, seen, format!("no memory group can be made here ({why})")),
        (Some(ram), None, Some(why)) => verdict.estimated(ram, seen, why.clone()),
    };
    let mut need = None;
    if check.baseline.is_some() || check.writes_baseline {
        if let Some(why) = lost {
            return Err(AnswerError::new(4, format!("{why}, and no peak is known; give it a file as its input")));
        }
        let (groups, heaps) = checking.peaks(&mut runs, &mut bench)?;
        if groups.is_empty() && heaps.is_empty() {
            let why = no_group.unwrap_or_default();
            let message = format!("its peak cannot be measured: {why}; and our pager does not record it");
            return Err(AnswerError::new(4, message));
        }
        let of = |largest| Need::new(&checking.command, &groups, &heaps, largest);
        if check.baseline.is_some_and(|(_, before)| !before.is_like(&of(false))) {
            let message = "the baseline was measured in another way (a memory group, or our pager's recorder), which \
                           this machine or program does not allow; write one here with --write-baseline";
            return Err(AnswerError::new(4, message));
        }
        verdict = verdict.since(of(false), check.baseline);
        verdict.notes.extend(varied(&groups));
        need = check.writes_baseline.then(|| of(true));
        verdict.run_count = heaps.len();
    }
    listener.finish();
    verdict.run_count += runs.count();
    Ok(Checked { verdict, need })
}

/// A check under way.
struct Checking<'a> {
    check: &'a Check<'a>,
    command: String,
    folder: &'a Path,
    streams: &'a Streams,
    cold: Rc<[PathBuf]>,
    way: Way,
    listener: &'a dyn Listener,
}

impl Checking<'_> {
    /// Runs it without a limit, and in one if that is given.
    fn runs(
        &self,
        limit: Option<(Way, u64)>,
        slowdown: f64,
        runs: &mut RunLog,
        bench: &mut Bench,
    ) -> Result<(), AnswerError> {
        let plan = InLimit { limit, slowdown, cold: Rc::clone(&self.cold) };
        carry_out(&plan, runs, bench, self.listener).map_err(Refusal::into_error)
    }

    /// What its group was charged, run by run, and its heap, recording by recording: again if it grew, since what
    /// varies by itself is no growth.
    fn peaks(&self, runs: &mut RunLog, bench: &mut Bench) -> Result<(Vec<GroupUse>, Vec<Heap>), AnswerError> {
        let mut heaps = Vec::new();
        for time in 1..=TIMES {
            if bench.in_group && runs.plain().runs.len() < time {
                self.runs(None, 0.0, runs, bench)?;
            }
            heaps.extend(self.heap());
            let groups: Vec<GroupUse> = runs.plain().runs.iter().filter_map(|run| run.group).collect();
            let need = Need::new(&self.command, &groups, &heaps, false);
            let grew = self.check.baseline.is_some_and(|(_, before)| !need.grown_since(before).is_empty());
            if time == TIMES || !grew && !self.check.writes_baseline {
                return Ok((groups, heaps));
            }
        }
        unreachable!("the last time returns")
    }

    /// Its heap, in a run that nobody sees. `None`: our pager does not serve it.
    fn heap(&self) -> Option<Heap> {
        pageable(self.check.command).ok()?;
        let trace = self.folder.join("trace.parquet");
        let (streams, listener) = (Some(self.streams), Some(self.listener));
        let patience = PATIENCE_WITH_RUNS;
        let order = RecordOrder { patience, streams, listener, ..RecordOrder::new(self.check.command) };
        served(&order, &trace).ok()?.ok().filter(|recording| recording.status == Some(0))?;
        Reading::read(&trace, None, None).ok().as_ref().map(Heap::of)
    }
}
