//! Stops processes while they are looked at, and keeps a clock that stands still meanwhile.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::process::Process;

/// A process that still runs after this time is looked at as it runs.
const PATIENCE: Duration = Duration::from_millis(20);

/// The clock of the watched processes.
pub struct Halt {
    /// Whether they may be stopped. If not, the clock always goes.
    pub own: bool,
    began: Instant,
    /// How long they have stood so far, before the stop that lasts.
    pub stood: Duration,
    since: Option<Instant>,
}

impl Halt {
    /// Starts the clock.
    pub fn new(own: bool) -> Halt {
        Halt { own, began: Instant::now(), stood: Duration::ZERO, since: None }
    }

    /// The time since the start in which they ran.
    pub fn clock(&self) -> Duration {
        let now = self.since.unwrap_or_else(Instant::now);
        now.duration_since(self.began).saturating_sub(self.stood)
    }

    /// Stops them, and waits until they stand.
    pub fn stop(&mut self, processes: &[u32]) {
        if self.own {
            processes.iter().for_each(|pid| send(*pid, libc::SIGSTOP));
            let sent = Instant::now();
            while sent.elapsed() < PATIENCE && processes.iter().any(|pid| runs(*pid)) {
                std::hint::spin_loop();
            }
            self.since = Some(Instant::now());
        }
    }

    /// Lets them go on.
    pub fn resume(&mut self, processes: &[u32]) {
        if let Some(since) = self.since.take() {
            processes.iter().for_each(|pid| send(*pid, libc::SIGCONT));
            self.stood += since.elapsed();
        }
    }
}

/// Starts a program so that it goes on if its watcher is killed while it stands. Its children would stand until
/// somebody sends them SIGCONT.
///
/// # Errors
/// It cannot be started.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let going_on = || {
        // SAFETY: a number; no memory is concerned.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT) };
        Ok(())
    };
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(going_on) }.spawn()
}

fn send(pid: u32, signal: i32) {
    // SAFETY: no memory is concerned. A process that has ended is not there, or has not been waited for.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// Whether one of its threads runs.
fn runs(pid: u32) -> bool {
    Process::of(pid).thread_stats().iter().any(|stat| stat.state == 'R')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::processor_ns;

    #[test]
    fn a_stopped_process_does_not_run_and_its_clock_stands() {
        let mut child = start(Command::new("sh").args(["-c", "while :; do :; done"])).unwrap();
        let (pid, mut halt) = (child.id(), Halt::new(true));
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
        assert!(halt.stood >= Duration::from_millis(20) && halt.clock() > clock);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
