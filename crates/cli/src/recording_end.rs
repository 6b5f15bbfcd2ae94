//! How a native recording ends: the program ends, a time is up, or the user presses Ctrl-C. The trace is complete in
//! each case.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::failure::Failure;

/// How long a program may take to end after SIGTERM; the same as with an emulator.
pub const GRACE: Duration = Duration::from_secs(2);
/// How often the time limit is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Signals that end the recording, but not coldframe.
pub struct Signals {
    stop: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Signals {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// A signal cannot be caught.
    pub fn catch() -> Result<Signals, Failure> {
        let signals = Signals { stop: Arc::default(), over: Arc::default() };
        let caught = || -> std::io::Result<()> {
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                // A second signal ends coldframe itself.
                signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signals.over))?;
                signal_hook::flag::register(signal, Arc::clone(&signals.stop))?;
            }
            // This signal is for the program alone.
            signal_hook::flag::register(SIGQUIT, Arc::default()).map(|_| ())
        };
        caught().map_err(|e| Failure::Other { message: format!("cannot catch signals: {e}"), code: 5 })?;
        Ok(signals)
    }
}

impl Signals {
    /// Whether one came.
    pub fn came(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

/// How it ended.
pub struct Ended {
    /// The program's status.
    pub status: ExitStatus,
    /// The reason, if the recording ended before the program did.
    pub limit: Option<&'static str>,
    /// Recorded processes that go on.
    pub left: Vec<u32>,
}

/// Waits for the program, which records into `folder`. At the time limit, or after a signal, ends it and the
/// processes that it started.
///
/// # Errors
/// It cannot be waited for.
pub fn wait(mut child: Child, folder: &Path, signals: &Signals, max_time: Option<Duration>) -> Result<Ended, Failure> {
    let deadline = max_time.and_then(|time| Instant::now().checked_add(time));
    let watch = &Watch { program: child.id(), folder, stop: &signals.stop, deadline };
    let (ends, ended) = channel();
    std::thread::scope(|scope| {
        let watching = scope.spawn(move || watch.run(&ended));
        let status = child.wait();
        drop(ends);
        let (limit, asked) = watching.join().unwrap_or_default();
        let status =
            status.map_err(|e| Failure::Other { message: format!("cannot wait for the program: {e}"), code: 5 })?;
        if let Some(asked) = asked {
            watch.end_rest(asked);
        }
        Ok(Ended { status, limit, left: alive(folder) })
    })
}

struct Watch<'a> {
    program: u32,
    folder: &'a Path,
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
}

impl Watch<'_> {
    /// Waits until the program has ended. Returns the reason, and when the program was asked to end.
    fn run(&self, ended: &Receiver<()>) -> (Option<&'static str>, Option<Instant>) {
        let (mut limit, mut asked, mut killed) = (None, None, false);
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            match asked {
                None => {
                    limit = self.limit();
                    asked = limit.map(|_| self.signal(Signal::TERM));
                }
                Some(since) if !killed && Instant::now() > since + GRACE => {
                    self.signal(Signal::KILL);
                    killed = true;
                }
                Some(_) => {}
            }
        }
        (limit, asked)
    }

    fn limit(&self) -> Option<&'static str> {
        if self.stop.load(Relaxed) {
            return Some("a signal");
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some("--max-time")
    }

    fn signal(&self, signal: Signal) -> Instant {
        send(self.program, signal);
        alive(self.folder).into_iter().filter(|process| *process != self.program).for_each(|p| send(p, signal));
        Instant::now()
    }

    /// Ends the processes that the program has started.
    fn end_rest(&self, asked: Instant) {
        let gone = |until: Instant| loop {
            let rest = alive(self.folder);
            if rest.is_empty() || Instant::now() > until {
                return rest;
            }
            std::thread::sleep(LOOK);
        };
        gone(asked + GRACE).into_iter().for_each(|process| send(process, Signal::KILL));
        gone(Instant::now() + GRACE);
    }
}

fn send(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(process, signal);
    }
}

/// Processes that record into this folder now. A file is named after its process, which has it mapped.
fn alive(folder: &Path) -> Vec<u32> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let process = |name: std::ffi::OsString| name.to_str()?.split('.').next()?.parse::<u32>().ok();
    let mut all: Vec<u32> = files.flatten().filter_map(|file| process(file.file_name())).collect();
    all.sort_unstable();
    all.dedup();
    let shown = folder.as_os_str().as_encoded_bytes();
    all.retain(|process| {
        let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.windows(shown.len()).any(|place| place == shown)
    });
    all
}
