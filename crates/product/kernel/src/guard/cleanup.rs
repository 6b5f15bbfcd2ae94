//! What the guard changes on the machine. Each change is recorded as a [`Cleanup`], which `undo` reverts, and in
//! a file of the guard's (`record`): if the guard is killed, another one reads it, or the next command names what
//! is left.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::files::write;
use crate::guard::change::Cleanup;
use crate::guard::record::Record;
use coldframe_proc::Process;

/// The changes of a guard, the first one first.
#[derive(Debug, Default)]
pub(crate) struct Cleanups {
    pub(crate) list: Vec<Cleanup>,
    pub(crate) record: Option<Record>,
    /// A file and a pipe that holds its pages in RAM. Only that they stay open matters.
    pub(crate) pinned: Vec<(File, [OwnedFd; 2])>,
}

impl Cleanups {
    /// A change that is made at this moment, or comes next.
    pub(crate) fn push(&mut self, cleanup: Cleanup) {
        self.record.iter_mut().for_each(|record| record.add(&cleanup));
        self.list.push(cleanup);
    }
}

/// Makes a group.
pub(crate) fn folder(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    let failed = |e| format!("{} cannot be made: {e}; run it as root", path.display());
    std::fs::create_dir(path).map_err(failed)?;
    cleanups.push(Cleanup::Folder(path.into()));
    Ok(String::new())
}

/// Records the contents of a file. A file that is gone at the end (its group has ended) is not restored.
pub(crate) fn keep(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    let old = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}; run it as root", path.display()))?;
    cleanups.push(Cleanup::Value(path.into(), old.trim().to_string()));
    Ok(String::new())
}

/// Stops all processes of a group.
pub(crate) fn freeze(file: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    keep(file, cleanups)?;
    write(file, "1").map_err(|e| format!("{}: {e}; run it as root", file.display())).map(|()| String::new())
}

pub(crate) fn stop(process: &str, cleanups: &mut Cleanups) -> Result<String, String> {
    let failed =
        |e| format!("process {process} cannot be stopped: {e}; run it as the user of that process, or as root");
    let pid = process.parse().ok().and_then(Pid::from_raw).ok_or_else(|| format!("{process} is no process"))?;
    let number = pid.as_raw_nonzero().get() as u32;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    cleanups.push(Cleanup::Stopped(number, Process::of(number).stat().map_or(0, |stat| stat.began)));
    pidfd_send_signal(&handle, Signal::STOP).map_err(failed).map(|()| String::new())
}
