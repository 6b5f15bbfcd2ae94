//! What the guard changes on the machine. Each change is recorded as a [`Cleanup`], which `crate::undo` reverts.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::files::write;

/// A change to revert.
#[derive(Debug)]
pub(crate) enum Cleanup {
    /// The folder of a group. It goes when its last process has ended.
    Folder(PathBuf),
    /// A file of the kernel, and its old contents.
    Value(PathBuf, String),
    Zram(u32),
    File(PathBuf),
    Swap(PathBuf),
    Stopped(OwnedFd),
    /// A file and a pipe that holds its pages in RAM. Only that they stay open matters.
    Pinned(#[allow(dead_code)] File, #[allow(dead_code)] [OwnedFd; 2]),
}

/// Makes a group.
pub(crate) fn folder(path: &Path, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    let failed = |e| format!("{} cannot be made: {e}; run it as root", path.display());
    std::fs::create_dir(path).map_err(failed)?;
    cleanups.push(Cleanup::Folder(path.into()));
    Ok(String::new())
}

/// Records the contents of a file. A file that is gone at the end (its group has ended) is not restored.
pub(crate) fn keep(path: &Path, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    let old = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}; run it as root", path.display()))?;
    cleanups.push(Cleanup::Value(path.into(), old.trim().to_string()));
    Ok(String::new())
}

/// Stops all processes of a group.
pub(crate) fn freeze(file: &Path, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    keep(file, cleanups)?;
    write(file, "1").map_err(|e| format!("{}: {e}; run it as root", file.display())).map(|()| String::new())
}

pub(crate) fn stop(process: &str, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    let failed =
        |e| format!("process {process} cannot be stopped: {e}; run it as the user of that process, or as root");
    let pid = process.parse().ok().and_then(Pid::from_raw).ok_or_else(|| format!("{process} is no process"))?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    pidfd_send_signal(&handle, Signal::STOP).map_err(failed)?;
    cleanups.push(Cleanup::Stopped(handle));
    Ok(String::new())
}

pub(crate) fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().last().unwrap_or("it failed without a word").trim().to_string()
}
