//! Reverts each change that the guard has made.

use std::path::Path;
use std::time::Duration;

use rustix::process::{pidfd_send_signal, Signal};

use crate::cleanup::Cleanup;
use crate::devices;
use crate::files::write;
use coldframe_proc::{field, text, Tree};

/// How often a group is looked at until it is empty.
const LOOK: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(200);

/// Reverts a change. The error names what is left and the command that removes it.
pub(crate) fn undo(cleanup: Cleanup, tree: &Tree) -> Result<(), String> {
    match cleanup {
        Cleanup::Folder(folder) => remove_when_empty(&folder),
        Cleanup::Value(path, old) => restore(&path, &old),
        Cleanup::Zram(number) => devices::remove(tree, number),
        Cleanup::File(path) => {
            std::fs::remove_file(&path).map_err(|e| format!("{} stays ({e}); remove it", path.display()))
        }
        Cleanup::Swap(path) => off_when_free(&path),
        // An error: it has ended.
        Cleanup::Stopped(process) => pidfd_send_signal(&process, Signal::CONT).or(Ok(())),
        Cleanup::Pinned(..) => Ok(()),
    }
}

fn restore(path: &Path, old: &str) -> Result<(), String> {
    let old = match path.file_name().and_then(|name| name.to_str()) {
        // The list of controllers is read as names, and written as names with a sign.
        Some("cgroup.subtree_control") if old.split_whitespace().any(|name| name == "memory") => return Ok(()),
        Some("cgroup.subtree_control") => "-memory",
        // Three lines are read, and the value of the first is written.
        Some("memory.oom_control") => {
            if field(old, "oom_kill_disable") == Some(1) {
                "1"
            } else {
                "0"
            }
        }
        _ => old,
    };
    match write(path, old) {
        Ok(()) => Ok(()),
        Err(_) if !path.exists() => Ok(()),
        Err(e) => Err(format!("{0} is not restored ({e}); as root: echo {old} > {0}", path.display())),
    }
}

/// Swap can hold pages of another group that is at its limit. The kernel then has no memory for them (ENOMEM) until
/// that group ends or has room.
fn off_when_free(path: &Path) -> Result<(), String> {
    patiently(|| devices::off(path))
}

/// Again and again while there is no memory.
fn patiently(mut act: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut nap = LOOK;
    loop {
        match act() {
            Err(why) if why.contains("Cannot allocate memory") => {}
            done => return done,
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(LOOK_MAX);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_that_cannot_be_taken_away_for_want_of_memory_is_tried_again_and_nothing_else_is() {
        let replies =
            [Err("swapoff failed: Cannot allocate memory"), Err("swapoff failed: Cannot allocate memory"), Ok(())];
        let mut left = replies.into_iter();
        assert_eq!(patiently(|| left.next().expect("no more than three").map_err(String::from)), Ok(()));
        assert_eq!(left.len(), 0);
        let mut tries = 0;
        let refused = patiently(|| {
            tries += 1;
            Err("swapoff failed: Operation not permitted".into())
        });
        assert_eq!((tries, refused.is_err()), (1, true));
    }
}
