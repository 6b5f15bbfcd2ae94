//! One program that coldframe has started: its signals, its time limit, its end.
//!
//! ```text
//!   start ─► wait ─┬─ the program ends ────────────────────────────────────────► Ended, why: None
//!                  ├─ a signal to coldframe ([`Signals`]) ─ sent on, and waits on
//!                  └─ one that ends a measurement, or the deadline ─ SIGTERM ─ grace ─ SIGKILL ► Ended, why: Some
//! ```
//! A program that is looked at while it runs calls [`Child::look`].

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use coldframe_proc::{unmade, Process, Tree};
use rustix::process::{kill_process, set_child_subreaper, wait, Pid, Signal, WaitOptions};

use crate::error::AnswerError;
use crate::run::signals::{catch_all, Signals};

/// How long a program may take to end after SIGTERM; the same as with an emulator.
pub const GRACE: Duration = Duration::from_secs(2);
/// How often signals and limits are checked, if nothing else is wanted.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Naps until the last process of a pager has ended.
const NAPS: u32 = 20;
const NAP: Duration = Duration::from_millis(1);

/// What ends a program, and what is done while it runs.
pub struct Care<'a> {
    /// Signals to coldframe.
    pub signals: &'a Signals,
    /// Whether INT, TERM and HUP are passed on to the program, which may continue; otherwise they end it.
    pub pass_on: bool,
    /// The program is ended at this time.
    pub deadline: Option<Instant>,
    /// How long it may take to end after SIGTERM.
    pub grace: Duration,
    /// Further processes, which get the same signals.
    pub others: &'a (dyn Fn() -> Vec<u32> + Sync),
    /// Done at each look.
    pub look: &'a (dyn Fn() + Sync),
    /// The time between two looks.
    pub pause: Duration,
    /// Whether a pager's own processes, which come to coldframe, are waited for.
    pub reap: bool,
}

impl<'a> Care<'a> {
    /// Signals are passed on, and there is no time limit.
    pub fn passing_on(signals: &'a Signals) -> Care<'a> {
        let (others, look) = (&Vec::new, &|| {});
        Care { signals, pass_on: true, deadline: None, grace: GRACE, others, look, pause: LOOK, reap: false }
    }

    /// Signals end the program.
    pub fn that_ends(signals: &'a Signals) -> Care<'a> {
        Care { pass_on: false, ..Care::passing_on(signals) }
    }

    fn reason(&self) -> Option<Why> {
        if !self.pass_on && self.signals.came() {
            return Some(Why::Signal);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Why::Deadline)
    }
}

/// Why coldframe ended a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// A signal to coldframe.
    Signal,
    /// The time limit.
    Deadline,
}

/// A program that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// `None`: it ended by itself.
    pub why: Option<Why>,
    /// When it ended: its pagers' processes, which are waited for, end up to 20 ms later.
    pub ended_at: Instant,
}

/// A program that has been started.
pub struct Child {
    process: std::process::Child,
    ending: Ending,
    status: Option<(ExitStatus, Instant)>,
}

/// How far the end of a program is.
#[derive(Clone, Copy, Default)]
struct Ending {
    why: Option<Why>,
    since: Option<Instant>,
    killed: bool,
}

impl Ending {
    /// Passes signals on, and ends the program if it is time.
    fn step(&mut self, program: u32, care: &Care) {
        let to_all = |signal: Signal| {
            send(program, signal);
            (care.others)().into_iter().filter(|process| *process != program).for_each(|p| send(p, signal));
        };
        care.signals.pass_on(program, care.pass_on);
        match self.since {
            None => {
                self.why = care.reason();
                self.since = self.why.map(|_| Instant::now());
                self.since.iter().for_each(|_| to_all(Signal::TERM));
            }
            Some(since) if !self.killed && since.elapsed() > care.grace => {
                to_all(Signal::KILL);
                self.killed = true;
            }
            Some(_) => {}
        }
    }

    /// Ends the other processes of a program that coldframe has ended.
    fn end_others(&self, care: &Care) {
        let Some(since) = self.since else { return };
        let left = |until: Instant| loop {
            let left = (care.others)();
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::sleep(LOOK);
        };
        left(since + care.grace).into_iter().for_each(|process| send(process, Signal::KILL));
        left(Instant::now() + care.grace);
    }
}

impl Child {
    /// Starts a process for the program of this name.
    pub fn start(mut process: Command, name: &OsStr) -> Result<Child, AnswerError> {
        adopt_orphans();
        let child = process.spawn();
        let failed = |error| AnswerError::new(126, format!("{} cannot be started: {}", name.display(), unmade(&error)));
        child.map(Child::adopt).map_err(failed)
    }

    /// Of a process that is there already.
    pub fn adopt(process: std::process::Child) -> Child {
        adopt_orphans();
        Child { process, ending: Ending::default(), status: None }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it still runs.
    pub fn look(&mut self, care: &Care) -> bool {
        if self.status.is_none() {
            self.status = self.process.try_wait().ok().flatten().map(|status| (status, Instant::now()));
        }
        if self.status.is_none() {
            self.ending.step(self.process.id(), care);
        }
        self.status.is_none()
    }

    /// Waits for its end.
    pub fn wait(self, care: &Care) -> Result<Ended, AnswerError> {
        if let Some((status, ended_at)) = self.status {
            return Ok(Ended { status, why: self.ending.why, ended_at });
        }
        let (program, mut ending) = (self.process.id(), self.ending);
        let (ends, ended) = channel::<()>();
        let status = std::thread::scope(|scope| {
            let watch = move || {
                loop {
                    (care.look)();
                    if ended.recv_timeout(care.pause) != Err(RecvTimeoutError::Timeout) {
                        break;
                    }
                    ending.step(program, care);
                }
                (care.look)();
                ending
            };
            let watching = Builder::new().spawn_scoped(scope, watch);
            if watching.is_err() {
                // Nobody would pass signals on to it, nor end it.
                (care.others)().into_iter().chain([program]).for_each(|process| send(process, Signal::KILL));
            }
            let status = await_end(program, care.reap)?;
            drop(ends);
            ending = watching?.join().unwrap_or_default();
            Ok(status)
        });
        let failed = |e| AnswerError::new(5, format!("the program cannot be watched, so it is ended: {}", unmade(&e)));
        let (status, ended_at) = status.map_err(failed)?;
        ending.end_others(care);
        Ok(Ended { status, why: ending.why, ended_at })
    }
}

/// Processes that have lost their parents, and the pagers' own processes, come to this one; so do signals for programs.
fn adopt_orphans() {
    catch_all();
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

/// All that runs below coldframe now. Orphans of a program come to coldframe.
pub(crate) fn below() -> Vec<u32> {
    let lives = |id: &u32| Process::of(*id).stat().is_some_and(|stat| !stat.ended());
    // A pager ends with its program.
    let is_pager = |id: &u32| Process::of(*id).name() == "coldframe-pager";
    let processes = Tree::machine().own_process().with_descendants();
    processes.into_iter().skip(1).filter(|id| lives(id) && !is_pager(id)).collect()
}

/// What has come below coldframe since then: a program that is started now, and all that it starts.
pub(crate) fn below_since() -> impl Fn() -> Vec<u32> + Sync {
    let before = below();
    move || below().into_iter().filter(|id| !before.contains(id)).collect()
}

pub(crate) fn send(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended in the meantime.
        let _ = kill_process(process, signal);
    }
}

/// Waits for a child. The pagers' own processes that are left come to this process, and end soon after.
fn await_end(program: u32, reap: bool) -> rustix::io::Result<(ExitStatus, Instant)> {
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended.as_raw_pid() == program as i32 => break status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    };
    let ended_at = Instant::now();
    for _ in 0..if reap { NAPS } else { 0 } {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(NAP),
            Err(_) => break,
        }
    }
    Ok((ExitStatus::from_raw(status.as_raw()), ended_at))
}

/// The exit code that a shell reports for a status.
pub fn code(status: ExitStatus) -> u8 {
    status.code().map_or_else(|| 128 + status.signal().unwrap_or(0) as u8, |code| code as u8)
}
