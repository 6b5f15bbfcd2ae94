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

impl Cleanups {
    /// What another guard that lives will write to a file.
    pub(crate) fn another(&self, path: &Path) -> Option<String> {
        self.record.as_ref()?.value_of_another(path)
    }
}

/// Makes a group.
pub(crate) fn folder(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    let failed = |e| format!("{} cannot be made: {e}; run it as root", path.display());
    std::fs::create_dir(path).map_err(failed)?;
    cleanups.push(Cleanup::Folder(path.into()));
    Ok(String::new())
}

/// Records the contents of a file before the first change of any guard that lives. A file that is gone at the end (its
/// group has ended) is not restored.
pub(crate) fn keep(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    record(path, cleanups, false)
}

/// The same, if no other guard that lives has done it.
pub(crate) fn claim(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    record(path, cleanups, true)
}

/// A file is not restored: what somebody else has written there stays.
pub(crate) fn forget(path: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    cleanups.list.retain(|it| !matches!(it, Cleanup::Value(kept, _) if kept == path));
    cleanups.record.iter_mut().for_each(|record| record.add(&Cleanup::Restored(path.into())));
    Ok(String::new())
}

fn record(path: &Path, cleanups: &mut Cleanups, alone: bool) -> Result<String, String> {
    if cleanups.list.iter().any(|it| matches!(it, Cleanup::Value(kept, _) if kept == path)) {
        return Ok(String::new());
    }
    let now = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}; run it as root", path.display()))?;
    let _alone = cleanups.record.as_ref().and_then(Record::alone);
    let another = cleanups.another(path);
    if alone && another.is_some() {
        return Err(format!("another coldframe squeezes or holds {} already; end that one first", path.display()));
    }
    let old = another.unwrap_or(now.trim().to_string());
    cleanups.push(Cleanup::Value(path.into(), old));
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::guard::left::left_behind;
    use crate::guard::undo::undo_all;
    use coldframe_proc::Tree;

    /// A folder of records, and a file of the kernel.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            let place = Place(tempfile::tempdir().unwrap());
            std::fs::write(place.setting(), "60\n").unwrap();
            place
        }

        fn setting(&self) -> PathBuf {
            self.0.path().join("swappiness")
        }

        fn now(&self) -> String {
            std::fs::read_to_string(self.setting()).unwrap()
        }

        /// A guard that sets it.
        fn guard(&self, name: &str, value: &str) -> Cleanups {
            let (record, list) = Record::open(&self.0.path().join(format!("{name}.guard"))).unwrap();
            let mut guard = Cleanups { list, record: Some(record), pinned: Vec::new() };
            keep(&self.setting(), &mut guard).unwrap();
            write(&self.setting(), value).unwrap();
            guard
        }
    }

    fn ends(guard: Cleanups) {
        let (complaints, rest) = undo_all(guard, &Tree::machine());
        rest.finish(std::io::sink());
        assert_eq!(complaints, [""; 0]);
    }

    #[test]
    fn the_last_guard_that_lives_restores_what_was_there_before_the_first() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let place = Place::new();
            let guards = [("a", "132"), ("b", "150"), ("c", "132")].map(|(name, value)| place.guard(name, value));
            let mut guards = guards.map(Some);
            for (ended, guard) in order.into_iter().enumerate() {
                assert_eq!(place.now(), "132", "{order:?}, {ended} have ended");
                ends(guards[guard].take().unwrap());
            }
            assert_eq!(place.now(), "60", "{order:?}");
            assert_eq!(std::fs::read_dir(place.0.path()).unwrap().count(), 1, "a record is left");
        }
    }

    #[test]
    fn a_killed_guard_restores_nothing_and_stands_in_nobodys_way() {
        let place = Place::new();
        let (first, second) = (place.guard("a", "132"), place.guard("b", "150"));
        drop(first);
        let left = left_behind(&Tree::machine(), place.0.path());
        assert!(left.len() == 1 && left[0].undo.starts_with("echo 60 > "), "{left:?}");
        ends(second);
        assert_eq!((place.now().as_str(), left_behind(&Tree::machine(), place.0.path()).len()), ("60", 0));
    }

    #[test]
    fn a_file_that_is_claimed_belongs_to_one_guard_until_that_forgets_it() {
        let place = Place::new();
        let mut first = place.guard("a", "132");
        let (record, list) = Record::open(&place.0.path().join("b.guard")).unwrap();
        let mut second = Cleanups { list, record: Some(record), pinned: Vec::new() };
        let refusal = claim(&place.setting(), &mut second).unwrap_err();
        assert!(refusal.contains("another coldframe") && refusal.contains("end that one first"), "{refusal}");
        forget(&place.setting(), &mut first).unwrap();
        claim(&place.setting(), &mut second).unwrap();
        write(&place.setting(), "150").unwrap();
        ends(first);
        assert_eq!(place.now(), "150", "the first has forgotten it");
        ends(second);
        assert_eq!(place.now(), "132", "what was there when the second claimed it");
    }

    #[test]
    fn a_guard_that_sets_a_file_twice_restores_its_first_value() {
        let place = Place::new();
        let mut guard = place.guard("a", "132");
        keep(&place.setting(), &mut guard).unwrap();
        write(&place.setting(), "140").unwrap();
        ends(guard);
        assert_eq!(place.now(), "60");
    }
}
