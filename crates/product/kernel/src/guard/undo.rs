//! Reverts each change that the guard has made, or names it.

use std::fs::remove_dir;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::files::write;
use crate::guard::change::Cleanup;
use crate::guard::cleanup::Cleanups;
use crate::guard::record::Record;
use crate::inode::Inode;
use crate::swap::devices;
use coldframe_proc::{escaped, field, printable, text, Tree};

/// How often a group is looked at until it is empty.
const LOOK: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(200);
/// The guard's last line.
pub(crate) const DONE: &str = "done\n";

/// A change that nobody has reverted: what it is, and the command that reverts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// As `the group /sys/fs/cgroup/memory/coldframe-77`.
    pub what: String,
    /// A line for a shell.
    pub undo: String,
}

/// What the guard still has to do when nobody needs to wait for it: devices that nothing swaps to, which take 70 ms,
/// and the room of files that have no name any more, 90 ms for 8 GiB.
#[derive(Debug)]
pub struct Rest {
    tree: Tree,
    devices: Vec<Cleanup>,
    left: Vec<Cleanup>,
    record: Option<Record>,
    unlinked: Vec<OwnedFd>,
}

/// Reverts all changes but those of [`Rest`], the last one first. Returns what could not be reverted, each with the
/// remedy; that stays on record.
pub(crate) fn undo_all(cleanups: Cleanups, tree: &Tree) -> (Vec<String>, Rest) {
    let Cleanups { list, mut record, pinned } = cleanups;
    drop(pinned);
    let (mut complaints, mut left, mut unlinked) = (Vec::new(), Vec::new(), Vec::new());
    let (devices, others): (Vec<_>, Vec<_>) = list.into_iter().partition(|it| matches!(it, Cleanup::Zram(..)));
    for cleanup in others.into_iter().rev() {
        let done = match (&cleanup, &mut record) {
            (Cleanup::Value(path, _), Some(record)) => restore(&cleanup, path, tree, record),
            _ => undo(&cleanup, tree, &mut unlinked),
        };
        if let Err(complaint) = done {
            complaints.push(complaint);
            left.insert(0, cleanup);
        }
    }
    (complaints, Rest { tree: tree.clone(), devices, left, record, unlinked })
}

/// Restores a file, unless another guard that lives will do that.
fn restore(cleanup: &Cleanup, path: &Path, tree: &Tree, record: &mut Record) -> Result<(), String> {
    let _alone = record.alone();
    if record.value_of_another(path).is_none() {
        undo(cleanup, tree, &mut Vec::new())?;
    }
    record.add(&Cleanup::Restored(path.into()));
    Ok(())
}

impl Rest {
    /// Tells the owner, who waits no longer, and does it. If there is nothing to do, the owner waits for the end.
    pub fn finish(mut self, mut to: impl Write) {
        if !self.devices.is_empty() || !self.unlinked.is_empty() {
            // The owner may be gone.
            let _ = to.write_all(DONE.as_bytes()).and_then(|()| to.flush());
        }
        drop(self.unlinked);
        for device in self.devices.into_iter().rev() {
            if undo(&device, &self.tree, &mut Vec::new()).is_err() {
                self.left.insert(0, device);
            }
        }
        self.record.into_iter().for_each(|record| record.end(&self.left));
    }
}

/// Reverts a change, if it has not been reverted. Files that lose their names stay open in `unlinked`. The
/// error names what is left and the command that removes it.
fn undo(cleanup: &Cleanup, tree: &Tree, unlinked: &mut Vec<OwnedFd>) -> Result<(), String> {
    if let Cleanup::Stopped(process, began) = cleanup {
        let handle = Pid::from_raw(*process as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let same = tree.process(*process).stat().is_some_and(|stat| stat.began == *began);
        // An error: it has ended.
        let _ = handle.filter(|_| same).map(|handle| handle.and_then(|it| pidfd_send_signal(it, Signal::CONT)));
    }
    let Some(left) = left(cleanup, tree) else { return Ok(()) };
    let failed = |why: String| format!("{} stays ({why}); as root: {}", left.what, left.undo);
    match cleanup {
        Cleanup::Folder(folder) => patiently(|| remove(folder)).map_err(failed),
        Cleanup::Value(path, old) => {
            let done = write(path, restored(path, old));
            done.map_err(|e| format!("{} is not restored ({e}); as root: {}", shown(path), left.undo))
        }
        Cleanup::Zram(number, _) => devices::remove(tree, *number).map_err(|e| failed(e.to_string())),
        Cleanup::File(path, inode) => remove_file(path, *inode, unlinked).map_err(|e| failed(e.to_string())),
        Cleanup::Swap(path, inode) => {
            let now = devices::area(tree, *inode).unwrap_or_else(|| path.clone());
            patiently(|| Some(devices::off(&now, *inode)).filter(is_final)).map_err(|e| failed(e.to_string()))?;
            // Another user has moved it.
            let moved = (now != *path).then(|| remove_file(&now, *inode, unlinked));
            moved.unwrap_or(Ok(())).map_err(|e| failed(e.to_string()))
        }
        Cleanup::Stopped(..) | Cleanup::Restored(_) => Ok(()),
    }
}

/// What is left of a change; `None`: it has been reverted.
pub(crate) fn left(cleanup: &Cleanup, tree: &Tree) -> Option<Left> {
    let entry = |what: String, undo: String| Some(Left { what, undo });
    match cleanup {
        Cleanup::Folder(folder) if folder.exists() => match text(&folder.join("cgroup.procs")).lines().count() {
            0 => entry(format!("the group {}", shown(folder)), format!("rmdir {}", quoted(folder))),
            // In a loop: the line is right while they run, too.
            n => entry(
                format!("the group {}, in which {n} processes run", shown(folder)),
                format!("until rmdir {}; do sleep 1; done", quoted(folder)),
            ),
        },
        Cleanup::Value(path, old) if path.exists() && restored(path, &text(path)) != restored(path, old) => {
            let (now, old) = (text(path), restored(path, old));
            let what = format!("{} in {} (it was {old})", restored(path, &now), shown(path));
            entry(what, format!("echo {old} > {}", quoted(path)))
        }
        Cleanup::Zram(number, inode) if Inode::from_path(&devices::folder(tree, *number)) == Some(*inode) => entry(
            format!("the device /dev/zram{number}"),
            format!("echo 1 > /sys/block/zram{number}/reset; echo {number} > /sys/class/zram-control/hot_remove"),
        ),
        Cleanup::File(path, inode) if Inode::from_path(path) == Some(*inode) => {
            entry(format!("the file {}", shown(path)), format!("rm {}", quoted(path)))
        }
        Cleanup::Swap(_, inode) => {
            let path = devices::area(tree, *inode)?;
            entry(format!("swap on {}", shown(&path)), format!("swapoff {}", quoted(&path)))
        }
        Cleanup::Stopped(process, began) => {
            tree.process(*process).stat().filter(|stat| stat.began == *began && stat.stopped())?;
            entry(
                format!("process {process} ({}), which stands still", tree.process(*process).name()),
                format!("kill -CONT {process}"),
            )
        }
        _ => None,
    }
}

/// For a shell, in one line.
fn quoted(path: &Path) -> String {
    match path.to_str().filter(|path| printable(path) == **path) {
        Some(path) if path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@,".contains(c)) => path.into(),
        Some(path) => format!("'{}'", path.replace('\'', r"'\''")),
        None => format!("\"$(printf '{}')\"", escaped(path)),
    }
}

/// For people.
fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// What is written to a file so that it has these contents.
fn restored<'a>(path: &Path, contents: &'a str) -> &'a str {
    match path.file_name().and_then(|name| name.to_str()) {
        // The list of controllers is read as names, and written as names with a sign.
        Some("cgroup.subtree_control")
            if contents.split_whitespace().any(|name| name.trim_start_matches('+') == "memory") =>
        {
            "+memory"
        }
        Some("cgroup.subtree_control") => "-memory",
        // Three lines are read, and the value of the first is written.
        Some("memory.oom_control") if field(contents, "oom_kill_disable") == Some(1) => "1",
        Some("memory.oom_control") => "0",
        _ => contents,
    }
}

/// Again and again, until it is done or can never be done.
fn patiently<E>(mut act: impl FnMut() -> Option<Result<(), E>>) -> Result<(), E> {
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
fn is_final(off: &std::io::Result<()>) -> bool {
    !matches!(off, Err(why) if why.kind() == ErrorKind::OutOfMemory)
}

fn remove(folder: &Path) -> Option<Result<(), String>> {
    match remove_dir(folder) {
        Ok(()) => Some(Ok(())),
        Err(e) if e.kind() == ErrorKind::NotFound => Some(Ok(())),
        // It has processes, or some that have just ended.
        Err(e) if e.kind() == ErrorKind::ResourceBusy || !text(&folder.join("cgroup.procs")).is_empty() => None,
        Err(e) => Some(Err(e.to_string())),
    }
}

/// Removes a file from the folder that it is in, whatever becomes of that folder's path meanwhile.
fn remove_file(path: &Path, inode: Inode, unlinked: &mut Vec<OwnedFd>) -> std::io::Result<()> {
    let (folder, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match Inode::within(&folder, Path::new(name)) == Some(inode) {
        true => {
            let file = openat(&folder, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            unlinked.extend(file.ok());
            Ok(unlinkat(&folder, name, AtFlags::empty())?)
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn swap_that_cannot_be_taken_away_for_want_of_memory_is_tried_again_and_nothing_else_is() {
        let busy = || Err(std::io::Error::from(rustix::io::Errno::NOMEM));
        let mut left = [busy(), busy(), Ok(())].into_iter();
        assert!(patiently(|| left.next().filter(is_final)).is_ok());
        assert_eq!(left.len(), 0);
        let mut tries = 0;
        let refused = patiently(|| {
            tries += 1;
            Some(Err(rustix::io::Errno::PERM.into())).filter(is_final)
        });
        assert_eq!((tries, refused.is_err()), (1, true));
    }

    #[test]
    fn a_path_in_a_line_for_a_shell_is_one_word() {
        assert_eq!(quoted(Path::new("/sys/fs/cgroup/a-1.slice")), "/sys/fs/cgroup/a-1.slice");
        assert_eq!(quoted(Path::new("/a b/$(c)'")), r"'/a b/$(c)'\'''");
        let path = std::ffi::OsStr::from_bytes(b"/a\t%s\\'\xff\x1b");
        let line = format!("printf %s {}", quoted(Path::new(path)));
        assert!(line.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{line}");
        let words = std::process::Command::new("sh").args(["-c", &line]).output().unwrap().stdout;
        assert_eq!(words, path.as_bytes());
    }
}
