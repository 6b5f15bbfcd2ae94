//! A program that `coldframe run` has started: signals reach it, its pagers' words are printed, its end is waited for.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use coldframe_live::{Mail, STOPPED};
use rustix::process::{wait, Pid, WaitOptions};

use crate::failure::Failure;

/// How often the pagers' mail is looked at while the program runs.
const LOOK: Duration = Duration::from_millis(50);
/// Naps until the last process of a pager has ended.
const NAPS: u32 = 20;
const NAP: Duration = Duration::from_millis(1);

/// A program that has been started.
pub struct Running(Child);

impl Running {
    /// Starts a process for the program of this name.
    pub fn start(mut process: Command, name: &OsStr) -> Result<Running, Failure> {
        process.spawn().map(Running).map_err(|error| Failure::Other {
            message: format!("{} cannot be started: {error}", name.display()),
            code: 126,
        })
    }

    /// The process itself.
    pub fn child(self) -> Child {
        self.0
    }

    /// Waits for the program. Ctrl-C reaches it from the terminal; signals sent only to us are passed on. Meanwhile
    /// prints what a pager without stderr says, and reaps processes that have lost their parents, as pagers' own
    /// processes do.
    pub fn wait_with_signals(self, mail: Option<&'static Mail>) -> Result<ExitStatus, Failure> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let failed =
            |e: std::io::Error| Failure::Other { message: format!("cannot wait for the program: {e}"), code: 5 };
        let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).map_err(failed)?;
        let handle = signals.handle();
        let pid = self.0.id();
        let passing = std::thread::spawn(move || {
            for signal in signals.forever() {
                if matches!(signal, SIGTERM | SIGHUP) {
                    let target = Pid::from_raw(pid as i32);
                    let signal = rustix::process::Signal::from_named_raw(signal);
                    if let (Some(target), Some(signal)) = (target, signal) {
                        let _ = rustix::process::kill_process(target, signal);
                    }
                }
            }
        });
        let (ended, mut seen) = (AtomicBool::new(false), 0);
        let mut say = || {
            while let Some(line) = mail.and_then(|mail| mail.next(&mut seen)) {
                eprint!("{line}");
            }
        };
        let status = std::thread::scope(|scope| {
            let saying = scope.spawn(|| {
                while !ended.load(Relaxed) {
                    say();
                    std::thread::park_timeout(LOOK);
                }
                say();
            });
            let status = await_child(pid, mail.is_some()).map_err(|error| failed(error.into()));
            ended.store(true, Relaxed);
            saying.thread().unpark();
            status
        });
        handle.close();
        let _ = passing.join();
        let stopped = mail.is_some_and(|mail| mail.has_stopped(pid));
        status.map(|status| if stopped { ExitStatus::from_raw(STOPPED << 8) } else { status })
    }
}

/// Waits for a child. The pagers' own processes that are left come to this process, and end soon after.
fn await_child(pid: u32, pagers: bool) -> rustix::io::Result<ExitStatus> {
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended.as_raw_pid() == pid as i32 => break status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    };
    for _ in 0..if pagers { NAPS } else { 0 } {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(NAP),
            Err(_) => break,
        }
    }
    Ok(ExitStatus::from_raw(status.as_raw()))
}

/// The exit code that a shell reports for a status.
pub fn code(status: ExitStatus) -> u8 {
    status.code().map_or_else(|| 128 + status.signal().unwrap_or(0) as u8, |code| code as u8)
}
