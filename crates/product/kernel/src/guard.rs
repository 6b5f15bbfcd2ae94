//! The guard: a process of its own that makes groups and swap devices, and removes them when the pipe to it closes,
//! however the process at the other end ends.
//!
//! ```text
//!   coldframe ── a line: what to make ──► guard (a session of its own; SIGINT, SIGTERM, SIGHUP do not end it)
//!             ◄── ok TAB what was made, or no TAB why ──
//!             ── end of file ──► reverts all changes, the last one first; a group is removed when it is empty
//!             ◄── done; devices and disk space, which nobody needs any more, are given back after it
//! ```
//! If the guard is killed, its owner has another one do that at its end, by the first one's record (`record`). If
//! both are killed, the next command names what is left ([`crate::left_behind`]).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};

use crate::files::write;
use crate::group::place::Place;
use crate::group::version::Version;
use crate::group::Group;
use crate::swap::devices::{PRIORITY_MAX, PRIORITY_RUN};
use crate::swap::SwapKind;
use crate::KernelError;
use coldframe_proc::{escaped, printable, unescaped, unmade, Tree};

mod change;
mod cleanup;
pub(crate) mod left;
mod pin;
mod record;
mod swap;
pub(crate) mod undo;

use cleanup::{claim, folder, forget, freeze, keep, stop, Cleanups};
use record::Record;
use undo::{Rest, DONE};

/// The file with the controllers that a group's children have.
const CONTROLLERS: &str = "cgroup.subtree_control";
/// How long the end waits for the guard. A group with processes takes longer, and the guard continues alone.
const PATIENCE: Duration = Duration::from_secs(2);

/// The guard's process, as its owner sees it.
#[derive(Debug)]
pub struct Guard {
    command: Command,
    record: Option<PathBuf>,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Guard {
    /// Starts it. `command`: a program that calls [`serve`] with its standard input and output. `record`: the path of a
    /// file for its changes.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(mut command: Command, record: Option<PathBuf>) -> Result<Guard, KernelError> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started
            .map_err(|e| KernelError::Refused(format!("the guard process cannot be started: {}", unmade(&e))))?;
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let mut guard = Guard { command, record, child, to, from: BufReader::new(from) };
        if let Some(record) = guard.record.as_deref().map(escaped) {
            // Without a record it reverts its changes, too, unless it is killed.
            let _ = guard.ask(&["record", &record]);
        }
        Ok(guard)
    }

    /// Makes a group for a program. `swaps`: whether its data can leave for swap.
    ///
    /// # Errors
    /// The kernel refuses to make the group, or the guard has ended.
    pub fn group(&mut self, place: &Place, name: &str, swaps: bool) -> Result<Group, KernelError> {
        match place.enable {
            true => self.ask(&["enable", &escaped(&place.parent)])?,
            // Another guard may have enabled it, and would disable it at its end.
            false => self.ask(&["share", &escaped(&place.parent.join(CONTROLLERS))])?,
        };
        let path = place.parent.join(name);
        self.ask(&["group", &escaped(&path)])?;
        let pressure = place.pressure.as_ref().map(|parent| parent.join(name));
        if let Some(pressure) = &pressure {
            self.ask(&["group", &escaped(pressure)])?;
        }
        // Without pinned pages the program may be killed; it can run all the same.
        let _ = swaps.then(|| self.ask(&["pin", &escaped(&path)]));
        Ok(Group::new(place.version, path, pressure))
    }

    /// Makes swap of this size and turns it on. Returns its name; for no swap, nothing is made.
    ///
    /// # Errors
    /// The kernel or the file system refuses, the disk is full, or the guard has ended.
    pub fn swap(&mut self, kind: &SwapKind, size: u64) -> Result<String, KernelError> {
        let verb = match kind {
            SwapKind::None => return Ok(kind.to_string()),
            SwapKind::Zram => "zram",
            SwapKind::File(_) => "file",
            SwapKind::Zswap(_) => "zswap",
        };
        let path = kind.file().unwrap_or(Path::new(""));
        self.ask(&[verb, &size.to_string(), &escaped(path)])
    }

    /// Makes a swap file of this size, which is used before all other swap. Meanwhile the processes of the group stand
    /// still, where they can be stopped: they would go on filling what the file is to relieve. Returns its name.
    ///
    /// # Errors
    /// As for [`Guard::swap`].
    pub fn disk(&mut self, group: &Group, path: &Path, size: u64) -> Result<String, KernelError> {
        let freezer = group.freezer();
        let _ = freezer.as_ref().map(|file| self.ask(&["freeze", &escaped(file)]));
        let made = self.ask(&["disk", &size.to_string(), &escaped(path)]);
        // If this fails, the guard does it at its end.
        let _ = freezer.map(|file| write(&file, "0"));
        made
    }

    /// Makes a zram of this size, by this algorithm, that takes at most so many bytes of RAM, and swaps to it. Returns
    /// its name.
    ///
    /// # Errors
    /// The kernel refuses, or the guard has ended.
    pub fn zram(&mut self, size: u64, algorithm: &str, limit: u64) -> Result<String, KernelError> {
        self.ask(&["zram", &size.to_string(), &format!("{algorithm} {limit}")])
    }

    /// Writes a value to a file of the kernel, and restores the old one at the end.
    ///
    /// # Errors
    /// The file cannot be read or written, or the guard has ended.
    pub fn set(&mut self, file: &Path, value: &str) -> Result<(), KernelError> {
        self.ask(&["set", value, &escaped(file)]).map(drop)
    }

    /// Records the limit of an existing group, and restores it at the end.
    ///
    /// # Errors
    /// The limit cannot be read, or the guard has ended.
    pub(crate) fn hold(&mut self, group: &Group) -> Result<(), KernelError> {
        let (limit, oom) = (group.file(group.version().squeeze_file()), group.file("memory.oom_control"));
        // What is recorded last is restored first: once the limit is restored, the group's processes continue.
        for file in [Some(oom).filter(|_| group.version() == Version::One), Some(limit)].into_iter().flatten() {
            self.ask(&["keep", &escaped(&file)])?;
        }
        if group.version() == Version::One {
            // As for a new group; without pinned pages the squeeze ends sooner.
            let _ = self.ask(&["pin", &escaped(group.folder())]);
        }
        Ok(())
    }

    /// Records a file for this guard alone.
    ///
    /// # Errors
    /// Another guard that lives has recorded it, or the file cannot be read.
    pub(crate) fn claim(&mut self, file: &Path) -> Result<(), KernelError> {
        self.ask(&["claim", &escaped(file)]).map(drop)
    }

    /// Does not restore a file at the end: what somebody else has written there stays.
    pub(crate) fn forget(&mut self, file: &Path) -> Result<(), KernelError> {
        self.ask(&["forget", &escaped(file)]).map(drop)
    }

    /// False: it was killed.
    pub fn is_alive(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error: another thread has waited for it, so it has ended.
        matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    pub(crate) fn ask(&mut self, words: &[&str]) -> Result<String, KernelError> {
        let gone = |e: std::io::Error| KernelError::Refused(format!("the guard process has ended: {e}"));
        let to = self.to.as_mut().expect("it is open until the end");
        to.write_all((words.join("\t") + "\n").as_bytes()).map_err(gone)?;
        let mut reply = String::new();
        self.from.read_line(&mut reply).map_err(gone)?;
        match reply.trim_end_matches('\n').split_once('\t') {
            Some(("ok", made)) => Ok(made.into()),
            Some((_, why)) => Err(KernelError::Refused(why.into())),
            None => Err(gone(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Has all changes reverted, by another guard if this one was killed. False: processes of the group still run; the
    /// guard waits for them, alone.
    pub fn end(mut self) -> bool {
        let killed = self.close();
        let record = self.record.filter(|record| killed == Some(true) && record.exists());
        match record.map(|record| Guard::start(self.command, Some(record))) {
            Some(Ok(mut another)) => another.close().is_some(),
            _ => {
                // An owner that goes on has no ended child of which nobody takes notice.
                let mut child = self.child;
                let _ = std::thread::Builder::new().spawn(move || child.wait());
                killed.is_some()
            }
        }
    }

    /// Ends its input and waits for it. `None`: it still waits for processes of a group; else whether it was killed.
    fn close(&mut self) -> Option<bool> {
        self.to = None;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match poll(&mut [PollFd::new(self.from.get_ref(), PollFlags::IN)], left.try_into().ok().as_ref()) {
                Err(Errno::INTR) => {}
                Ok(0) => return None,
                _ => break,
            }
        }
        let mut last = String::new();
        match self.from.read_line(&mut last) {
            Ok(_) if last == DONE => Some(false),
            // An error: another thread has waited for it, and knows how it ended.
            _ => Some(self.child.wait().map_or(true, |status| status.code().is_none())),
        }
    }
}

/// The guard's work, until its input ends. Returns what could not be reverted, each with the remedy, and what is left
/// to do while nobody waits.
pub fn serve(tree: &Tree, input: impl BufRead, mut output: impl Write) -> (Vec<String>, Rest) {
    let mut cleanups = Cleanups::default();
    for line in input.lines() {
        let Ok(line) = line else { break };
        let reply = match make(tree, &line, &mut cleanups) {
            Ok(made) => format!("ok\t{}\n", printable(&made)),
            Err(why) => format!("no\t{}\n", printable(&why)),
        };
        if output.write_all(reply.as_bytes()).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    undo::undo_all(cleanups, tree)
}

fn make(tree: &Tree, line: &str, cleanups: &mut Cleanups) -> Result<String, String> {
    let (verb, rest) = line.split_once('\t').unwrap_or((line, ""));
    let path = |word: &str| PathBuf::from(OsString::from_vec(unescaped(word.as_bytes())));
    let (first, second) = rest.split_once('\t').unwrap_or_default();
    let (size, file, path) = (first.parse().unwrap_or(0), &*path(second), &*path(rest));
    match verb {
        "record" => {
            let (record, changes) = Record::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
            (cleanups.record, cleanups.list) = (Some(record), changes);
            Ok(String::new())
        }
        "group" => folder(path, cleanups),
        "pin" => pin::pin(tree, path, cleanups),
        "keep" => keep(path, cleanups),
        "claim" => claim(path, cleanups),
        "forget" => forget(path, cleanups),
        "share" if cleanups.another(path).is_some() => keep(path, cleanups),
        "share" => Ok(String::new()),
        "freeze" => freeze(path, cleanups),
        "stop" => stop(rest, cleanups),
        "zram" => swap::zram(tree, size, &file.to_string_lossy(), cleanups),
        "set" => {
            keep(file, cleanups)?;
            write(file, first).map(|()| String::new()).map_err(|e| format!("{}: {e}", file.display()))
        }
        "file" => swap::file(file, size, PRIORITY_RUN, cleanups),
        "disk" => swap::file(file, size, PRIORITY_MAX, cleanups),
        "zswap" => {
            swap::zswap(tree, cleanups)?;
            swap::file(file, size, PRIORITY_RUN, cleanups)
        }
        "enable" => {
            let file = path.join(CONTROLLERS);
            keep(&file, cleanups)?;
            write(&file, "+memory")
                .map(|()| String::new())
                .map_err(|e| format!("{}: {e}; in a container: start it with --privileged", file.display()))
        }
        _ => Err(format!("the guard does not know {verb}")),
    }
}
