//! The things that the guard has made, and how each is taken away.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::devices;
use crate::tree::{text, write, Tree};

/// How often a group is looked at until it is empty.
const LOOK: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(200);

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
    /// A pipe that holds pages of a file in RAM. Only that it stays open matters.
    Pinned(#[allow(dead_code)] [OwnedFd; 2]),
}

impl Thing {
    /// Takes it away. The error says what stays, and how to take it away.
    pub(crate) fn undo(self, tree: &Tree) -> Result<(), String> {
        match self {
            Thing::Folder(folder) => remove_when_empty(&folder),
            Thing::Value(path, old) => restore(&path, &old),
            Thing::Zram(number) => devices::remove(tree, number),
            Thing::File(path) => {
                std::fs::remove_file(&path).map_err(|e| format!("{} stays ({e}); remove it", path.display()))
            }
            Thing::Swap(path) => devices::off(&path),
            Thing::Pinned(_) => Ok(()),
        }
    }
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

fn restore(path: &Path, old: &str) -> Result<(), String> {
    // The list of controllers is read as names, and written as names with a sign.
    let old = match path.ends_with("cgroup.subtree_control") {
        true if old.split_whitespace().any(|name| name == "memory") => return Ok(()),
        true => "-memory",
        false => old,
    };
    match write(path, old) {
        Ok(()) => Ok(()),
        Err(_) if !path.exists() => Ok(()),
        Err(e) => Err(format!("{0} is not restored ({e}); as root: echo {old} > {0}", path.display())),
    }
}

fn remove_when_empty(folder: &Path) -> Result<(), String> {
    let mut nap = LOOK;
    loop {
        match std::fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            // Busy: it has processes, or some that have just ended.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {}
            Err(e) if text(&folder.join("cgroup.procs")).is_empty() => {
                return Err(format!("{0} stays ({e}); remove it: rmdir {0}", folder.display()));
            }
            Err(_) => {}
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(LOOK_MAX);
    }
}

/// The last line that a tool has said.
pub(crate) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().lines().last().unwrap_or("it failed without a word").trim().to_string()
}
