//! The things that the guard makes. What is noted here is taken away by `crate::undo`.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::files::write;

/// A thing to take away.
#[derive(Debug)]
pub(crate) enum Thing {
    /// The folder of a group. It goes when its last process has ended.
    Folder(PathBuf),
    /// A file of the kernel, and what it said before.
    Value(PathBuf, String),
    /// A zram device.
    Zram(u32),
    /// A file on a disk.
    File(PathBuf),
    /// Swap that is on.
    Swap(PathBuf),
    /// A process that stands still.
    Stopped(OwnedFd),
    /// A file and a pipe that holds its pages in RAM. Only that they stay open matters.
    Pinned(#[allow(dead_code)] File, #[allow(dead_code)] [OwnedFd; 2]),
}

/// Makes a group.
pub(crate) fn folder(path: &Path, things: &mut Vec<Thing>) -> Result<String, String> {
    let failed = |e| format!("{} cannot be made: {e}; run it as root", path.display());
    std::fs::create_dir(path).map_err(failed)?;
    things.push(Thing::Folder(path.into()));
    Ok(String::new())
}

/// Remembers what a file says. A file that is gone at the end (its group has ended) needs nothing.
pub(crate) fn keep(path: &Path, things: &mut Vec<Thing>) -> Result<String, String> {
    let old = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}; run it as root", path.display()))?;
    things.push(Thing::Value(path.into(), old.trim().to_string()));
    Ok(String::new())
}

/// Stops all processes of a group.
pub(crate) fn freeze(file: &Path, things: &mut Vec<Thing>) -> Result<String, String> {
    keep(file, things)?;
    write(file, "1").map_err(|e| format!("{}: {e}; run it as root", file.display())).map(|()| String::new())
}

/// Stops a process.
pub(crate) fn stop(process: &str, things: &mut Vec<Thing>) -> Result<String, String> {
    let failed =
        |e| format!("process {process} cannot be stopped: {e}; run it as the user of that process, or as root");
    let pid = process.parse().ok().and_then(Pid::from_raw).ok_or_else(|| format!("{process} is no process"))?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    pidfd_send_signal(&handle, Signal::STOP).map_err(failed)?;
    things.push(Thing::Stopped(handle));
    Ok(String::new())
}

/// The last line that a tool has said.
pub(crate) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().last().unwrap_or("it failed without a word").trim().to_string()
}
