//! Reverts each change that the guard has made.

use std::io::ErrorKind;
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
        Cleanup::Folder(folder) => patiently(|| remove(&folder)),
        Cleanup::Value(path, old) => restore(&path, &old),
        Cleanup::Zram(number) => devices::remove(tree, number),
        Cleanup::File(path) => {
            std::fs::remove_file(&path).map_err(|e| format!("{} stays ({e}); remove it", path.display()))
        }
        Cleanup::Swap(path) => patiently(|| Some(devices::off(&path)).filter(is_final)),
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

/// Again and again, until it is done or can never be done.
fn patiently(mut act: impl FnMut() -> Option<Result<(), String>>) -> Result<(), String> {
    let mut nap = LOOK;
    loop {
        if let Some(done) = act() {
            return done;
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(LOOK_MAX);
    }
}

/// Swap can hold pages of another group that is at its limit. The kernel then has no memory for them (ENOMEM) until
/// that group ends or has room.
fn is_final(off: &Result<(), String>) -> bool {
    !matches!(off, Err(why) if why.contains("Cannot allocate memory"))
}

fn remove(folder: &Path) -> Option<Result<(), String>> {
    match std::fs::remove_dir(folder) {
        Ok(()) => Some(Ok(())),
        Err(e) if e.kind() == ErrorKind::NotFound => Some(Ok(())),
        // It has processes, or some that have just ended.
        Err(e) if e.kind() == ErrorKind::ResourceBusy || !text(&folder.join("cgroup.procs")).is_empty() => None,
        Err(e) => Some(Err(format!("{0} stays ({e}); remove it: rmdir {0}", folder.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_that_cannot_be_taken_away_for_want_of_memory_is_tried_again_and_nothing_else_is() {
        let busy = || Err("swapoff failed: Cannot allocate memory".to_string());
        let mut left = [busy(), busy(), Ok(())].into_iter();
        assert_eq!(patiently(|| left.next().filter(is_final)), Ok(()));
        assert_eq!(left.len(), 0);
        let mut tries = 0;
        let refused = patiently(|| {
            tries += 1;
            Some(Err("swapoff failed: Operation not permitted".to_string())).filter(is_final)
        });
        assert_eq!((tries, refused.is_err()), (1, true));
    }
}
