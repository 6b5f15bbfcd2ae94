//! Stops processes while they are looked at, and keeps a clock that stands still meanwhile.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use coldframe_proc::Process;
use rustix::process::{kill_process, set_parent_process_death_signal, Pid, Signal};

/// A process that still runs after this time is looked at as it runs.
const PATIENCE: Duration = Duration::from_millis(20);

/// The clock of processes that are stopped now and then.
pub struct Halt {
    began: Instant,
    /// How long they have stood so far, before the stop that lasts.
    stood: Duration,
    since: Option<Instant>,
}

impl Halt {
    /// Starts the clock.
    pub fn new() -> Halt {
        Halt { began: Instant::now(), stood: Duration::ZERO, since: None }
    }

    /// The time since the start in which they ran.
    pub fn clock(&self) -> Duration {
        let now = self.since.unwrap_or_else(Instant::now);
        now.duration_since(self.began).saturating_sub(self.stood)
    }

    /// How long they have stood, before the stop that lasts.
    pub fn stood(&self) -> Duration {
        self.stood
    }

    /// Stops them, and waits until they stand.
    pub fn stop(&mut self, processes: &[u32]) {
        processes.iter().for_each(|pid| send(*pid, Signal::STOP));
        let sent = Instant::now();
        while sent.elapsed() < PATIENCE && processes.iter().any(|pid| runs(*pid)) {
            std::hint::spin_loop();
        }
        self.since = Some(Instant::now());
    }

    /// Lets them go on.
    pub fn resume(&mut self, processes: &[u32]) {
        if let Some(since) = self.since.take() {
            processes.iter().for_each(|pid| send(*pid, Signal::CONT));
            self.stood += since.elapsed();
        }
    }
}

impl Default for Halt {
    fn default() -> Halt {
        Halt::new()
    }
}

/// Starts a program so that it goes on if its watcher is killed while it stands. Its children would stand until
/// somebody sends them SIGCONT.
///
/// # Errors
/// The program cannot be started.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let going_on = || {
        let _ = set_parent_process_death_signal(Some(Signal::CONT));
        Ok(())
    };
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(going_on) }.spawn()
}

/// A process that has ended is not there, or has not been waited for.
fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether one of its threads runs.
fn runs(pid: u32) -> bool {
    Process::of(pid).thread_stats().iter().any(|stat| stat.state == 'R')
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_proc::processor_ns;

    #[test]
    fn a_stopped_process_does_not_run_and_its_clock_stands() {
        let mut child = start(Command::new("sh").args(["-c", "while :; do :; done"])).unwrap();
        let (pid, mut halt) = (child.id(), Halt::new());
        let began = Instant::now();
        while processor_ns(pid) < 5_000_000 {
            assert!(began.elapsed().as_secs() < 60);
        }
        halt.stop(&[pid]);
        let (ran, clock) = (processor_ns(pid), halt.clock());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((processor_ns(pid), halt.clock()), (ran, clock));
        halt.resume(&[pid]);
        while processor_ns(pid) == ran {
            assert!(began.elapsed().as_secs() < 60);
        }
        assert!(halt.stood() >= Duration::from_millis(20) && halt.clock() > clock);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
