//! The recorded program as a child process: it is watched, ended at a limit, and never left behind.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use crate::Limits;

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

pub struct Process {
    child: Child,
    start: Instant,
    deadline: Option<Instant>,
    stop: Arc<AtomicBool>,
    /// When SIGTERM was sent.
    asked_to_end: Option<Instant>,
    killed: bool,
    status: Option<ExitStatus>,
    /// Descendants that are recorded and end with the program at a limit.
    descendants: Vec<u32>,
}

impl Process {
    pub fn new(child: Child, limits: &Limits, stop: Arc<AtomicBool>) -> Self {
        let start = Instant::now();
        Process {
            child,
            start,
            deadline: limits.max_time.and_then(|time| start.checked_add(time)),
            stop,
            asked_to_end: None,
            killed: false,
            status: None,
            descendants: Vec::new(),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The program's status once it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Whether time is up, or the caller has asked to stop.
    pub fn limit(&self) -> Option<&'static str> {
        if self.stop.load(Ordering::Relaxed) {
            return Some("stopped");
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some("max-time")
    }

    pub fn follow(&mut self, pid: u32) {
        if pid != self.id() && !self.descendants.contains(&pid) {
            self.descendants.push(pid);
        }
    }

    /// Call this repeatedly after a limit, until [`Process::ended`].
    pub fn end(&mut self) {
        match self.asked_to_end {
            None => {
                self.signal(Signal::TERM);
                self.asked_to_end = Some(Instant::now());
            }
            Some(asked_to_end) if !self.killed && asked_to_end.elapsed() > GRACE => {
                self.signal(Signal::KILL);
                self.killed = true;
            }
            Some(_) => {}
        }
    }

    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            send(self.id(), signal);
        }
        // A descendant's number may have passed to another process. Ours name us as their recorder in their command
        // line.
        let mark = format!("recorder={}", std::process::id());
        for pid in &self.descendants {
            let line = coldframe_proc::Process::of(*pid).command_line();
            if line.iter().any(|word| word.contains(&mark)) {
                send(*pid, signal);
            }
        }
    }
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended since.
        let _ = kill_process(pid, signal);
    }
}

/// If the recorder stops for any reason, the program does not continue with half a recording.
impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
