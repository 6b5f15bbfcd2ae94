//! `check` measures: the program alone, and in the RAM that it may have; both again where the times are near the limit.
//!
//! ```text
//!   alone, seen by the user ─► (alone twice more if it is short) ─► in --max-ram ─┬─ clearly within, or not ─► verdict
//!                                          a turn of both again, at most RUNS ◄───┴─ near the limit
//! ```
//! If our pager is too slow, the kernel's swap is tried, where it can be. All processes have that RAM together.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use coldframe_recording::span::PAGE;
use coldframe_sheet::quantity::human_size;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bench::runner::{kernel_swap, Bench, Way};
use crate::bench::trials::{REPEATS, SHORT};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::question::Limits;
use crate::predict::record::ELSEWHERE;
use crate::run::child::{Care, Child, Signals};
use crate::run::order::Program;
use crate::run::paged::Run;
use crate::run::pager::Pager;
use crate::run::program::{default_backing, pageable, plain};
use crate::run::runs::Ran;
use crate::run::runs::{By, Measured};
use crate::run::streams::Streams;

/// The most runs of a kind.
const RUNS: usize = 5;
/// A median this near to the limit, as a part of it, is measured again.
const NEAR: f64 = 0.1;
/// Seconds after which nothing is measured again.
const LONG: f64 = 120.0;
/// A run in less RAM is ended after this many times the limit, and a second.
const PATIENT: f64 = 2.0;

fn longest(alone: f64, slowdown: f64) -> f64 {
    Limits::slower(Some(slowdown)).longest(alone)
}

/// Measured runs, alone and in less RAM.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Pair {
    /// Alone.
    pub plain: Measured,
    /// In that RAM, of all processes together.
    pub paged: Measured,
}

impl Pair {
    /// Whether it is fast enough in that RAM. `slowdown`: the longest extra time, as a part of the time alone.
    pub fn within(&self, slowdown: f64) -> bool {
        self.paged.within(longest(self.plain.seconds, slowdown))
    }

    /// Whether other runs of these may say otherwise: some are within the limit, and some are not.
    pub fn is_open(&self, slowdown: f64) -> bool {
        let one = |runs: &Measured| runs.range().unwrap_or((runs.seconds, runs.seconds));
        let ((low, high), (least, most)) = (one(&self.plain), one(&self.paged));
        self.ended() && least <= longest(high, slowdown) && most > longest(low, slowdown)
    }

    /// Whether more runs are needed. Less RAM makes no program faster: then other work has disturbed the runs alone.
    fn is_near(&self, slowdown: f64) -> bool {
        let off = self.paged.seconds / longest(self.plain.seconds, slowdown) - 1.0;
        let disturbed = self.paged.seconds < (1.0 - NEAR) * self.plain.seconds;
        self.is_open(slowdown) || self.ended() && (disturbed || off.abs() < NEAR)
    }

    /// Whether the runs in less RAM ended as the first one did.
    fn ended(&self) -> bool {
        self.paged.failed.is_none() && !self.paged.more
    }

    fn add(&mut self, ran: &Ran, status: u8) {
        self.paged.add(ran);
        if ran.killed {
            self.paged.failed = Some("the kernel killed it for lack of memory".into());
        } else if !ran.too_long && ran.status != status {
            self.paged.failed = Some(format!("it ended with exit code {}", ran.status));
        }
    }
}

/// Runs the program alone and in `ram`. `None`: it cannot be run again, or nobody can page it here.
///
/// # Errors
/// It cannot be started; it fails; a signal came.
pub fn measured(
    command: &[OsString],
    ram: u64,
    slowdown: f64,
    listener: &dyn Listener,
) -> Result<Option<Pair>, AnswerError> {
    let began = Instant::now();
    let folder = tempfile::Builder::new().prefix("coldframe-runs-").tempdir_in(default_backing());
    let folder = folder.map_err(|e| AnswerError::new(5, format!("no folder for swap files: {e}; set TMPDIR")))?;
    let (streams, signals) = (Streams::new()?, Signals::catch()?);
    let bench = Bench { program: command, folder: folder.path(), streams: &streams, signals: &signals };
    let (first, peak) = shown(&bench)?;
    let mut plain = Measured::new(By::Plain, None, None);
    plain.add(&first);
    let swap = kernel_swap(folder.path());
    let kernel = swap.as_ref().map(|swap| Way { by: Pager::Kernel, swap: swap.as_deref(), in_all: false });
    let ours = pageable(command).is_ok().then_some(Way { by: Pager::Ours, swap: None, in_all: false });
    let Some(way) = ours.or(kernel).filter(|_| streams.lost().is_none()) else { return Ok(None) };
    while plain.seconds < SHORT && plain.runs.len() < REPEATS {
        plain.add(&alone(&bench, first.status)?);
    }
    let measuring = Measuring { bench: &bench, ram, slowdown, status: first.status, peak, began, listener };
    let pair = measuring.by(way, plain.clone())?;
    // The kernel takes no time to start, and serves memory that our pager does not.
    match kernel.filter(|_| way.by == Pager::Ours && pair.as_ref().is_none_or(|pair| !pair.within(slowdown))) {
        Some(kernel) => {
            let plain = pair.as_ref().map_or(plain, |pair| pair.plain.clone());
            let other = match measuring.by(kernel, plain) {
                Err(error) if pair.is_none() || signals.came() => return Err(error),
                other => other.ok().flatten(),
            };
            Ok(other.filter(|other| other.within(slowdown) || pair.is_none()).or(pair))
        }
        None => Ok(pair),
    }
}

/// What all runs share.
struct Measuring<'a> {
    bench: &'a Bench<'a>,
    ram: u64,
    slowdown: f64,
    /// How the program ends, and its most bytes in RAM as far as they are known.
    status: u8,
    peak: u64,
    began: Instant,
    listener: &'a dyn Listener,
}

impl Measuring<'_> {
    /// Runs by one pager, and more runs alone. `None`: our pager does not serve its memory.
    fn by(&self, way: Way, plain: Measured) -> Result<Option<Pair>, AnswerError> {
        let (slowdown, ram) = (self.slowdown, self.ram);
        let mut pair = Pair { plain, paged: Measured::new(way.into(), way.swap, Some(ram)) };
        let by = if way.by == Pager::Ours { "our pager" } else { "the kernel" };
        loop {
            self.listener.progress(0, None, &format!("running it in {} by {by}", human_size(ram)));
            let patience = Duration::from_secs_f64(1.0 + PATIENT * longest(pair.plain.seconds, slowdown));
            let (ran, run) = self.bench.paged(way, ram, patience)?;
            if let (Run::Pager(run), true) = (&run, pair.paged.runs.is_empty()) {
                let heap = run.stats.resident_max * PAGE;
                if run.stats.evictions == 0 && self.peak > self.ram && self.peak > (1 + ELSEWHERE) * heap {
                    return Ok(None);
                }
            }
            pair.add(&ran, self.status);
            let late = pair.paged.runs.len() >= RUNS || self.began.elapsed().as_secs_f64() > LONG;
            if late || !pair.is_near(slowdown) {
                return Ok(Some(pair));
            }
            if pair.plain.runs.len() <= pair.paged.runs.len() {
                pair.plain.add(&alone(self.bench, self.status)?);
            }
        }
    }
}

/// The first run, with the user's own streams, and the most bytes of its first process that were seen in RAM.
fn shown(bench: &Bench) -> Result<(Ran, u64), AnswerError> {
    let mut process = plain(bench.program);
    bench.streams.first(&mut process)?;
    let began = Instant::now();
    let child = Child::start(process, &bench.program[0])?;
    let (id, peak) = (child.id(), AtomicU64::new(0));
    let look = || {
        bench.streams.look(id);
        let pages = coldframe_proc::Process::of(id).pages().map_or(0, |[_, resident, _]| resident);
        peak.fetch_max(pages * PAGE, Relaxed);
    };
    let ended = child.wait(&Care { look: &look, ..Care::that_ends(bench.signals) })?;
    let output = bench.streams.first_output();
    let ran = bench.ran(Program::of(ended, began), output, false, 0)?;
    succeeded(ran.status)?;
    Ok((ran, peak.into_inner()))
}

fn alone(bench: &Bench, status: u8) -> Result<Ran, AnswerError> {
    let ran = bench.plain(None, &|_| {})?;
    if ran.status != status {
        succeeded(ran.status)?;
    }
    Ok(ran)
}

fn succeeded(status: u8) -> Result<(), AnswerError> {
    match status {
        0 => Ok(()),
        code => {
            let message =
                format!("the program ended with exit code {code}, so there is no verdict: mend it, and check again");
            Err(AnswerError::new(3, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(plain: &[f64], runs: &[f64]) -> Pair {
        let ran = |seconds| Ran { seconds, ..Ran::default() };
        let mut pair =
            Pair { plain: Measured::new(By::Plain, None, None), paged: Measured::new(By::Pager, None, Some(1)) };
        plain.iter().for_each(|seconds| pair.plain.add(&ran(*seconds)));
        runs.iter().for_each(|seconds| pair.add(&ran(*seconds), 0));
        pair
    }

    #[test]
    fn medians_decide_and_runs_on_both_sides_of_the_limit_leave_it_open() {
        let of = |plain: &[f64], runs: &[f64]| {
            let pair = pair(plain, runs);
            (pair.within(0.1), pair.is_open(0.1), pair.is_near(0.1))
        };
        assert_eq!(of(&[1.0], &[1.0]), (true, false, true));
        assert_eq!(of(&[1.0], &[0.9]), (true, false, false));
        assert_eq!(of(&[1.0], &[2.0]), (false, false, false));
        assert_eq!(of(&[1.0], &[0.6]), (true, false, true));
        assert_eq!(of(&[1.0, 1.2, 1.1], &[1.15, 1.25, 1.2]), (true, true, true));
    }

    #[test]
    fn a_run_that_was_ended_or_ended_otherwise_is_not_within() {
        let ran = Ran { seconds: 1.0, ..Ran::default() };
        for ran in [Ran { too_long: true, ..ran }, Ran { killed: true, ..ran }, Ran { status: 3, ..ran }] {
            let mut one = pair(&[1.0], &[]);
            one.add(&ran, 0);
            assert!(!one.within(0.1) && !one.is_near(0.1), "{one:?}");
        }
    }
}
