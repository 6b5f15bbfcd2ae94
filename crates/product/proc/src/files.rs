//! The files that a program maps, looked at while it runs: how much of each is in RAM, and how much was referenced
//! between two clearings of its bits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::maps::{mappings, Mapping};
use crate::process::Process;

/// Looks take at most so long, and one part in this many of the program's time. Each comes at this many times the time
/// of the one before.
const PATIENCE: Duration = Duration::from_millis(20);
const SHARE: u32 = 100;
const GROWTH: f64 = 1.5;
/// The bits of mappings of files only (`proc_pid_clear_refs(5)`).
const MAPPED: &str = "3";

/// Names of memory that processes share, and that is no file of a disk.
const SHARED: [&str; 4] = ["/dev/shm/", "/dev/zero", "/SYSV", "/memfd:"];

/// Whether a mapping of this name is such memory.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.iter().any(|start| name.starts_with(start))
}

/// A mapped file, in bytes: of the process with the most.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FileUse {
    /// Mapped.
    pub mapped: u64,
    /// In RAM at a time, without pages that a private mapping has changed.
    pub resident: u64,
    /// Of that, referenced between two clearings. A page that is mapped then counts, with neighbours that come with it.
    pub referenced: u64,
    /// It has code.
    pub code: bool,
}

/// Mapped files, by their paths.
pub type Files = BTreeMap<String, FileUse>;

/// Adds what a process maps now.
pub(crate) fn add(files: &mut Files, mappings: &[Mapping]) {
    let mut now: BTreeMap<&str, FileUse> = BTreeMap::new();
    for Mapping { start, end, rights, name, counts, .. } in mappings.iter().filter(|mapping| mapping.inode != 0) {
        let (file, resident) = (now.entry(name).or_default(), counts.rss.saturating_sub(counts.anonymous));
        file.mapped += end - start;
        file.resident += resident * 1024;
        file.referenced += counts.referenced.min(resident) * 1024;
        file.code |= rights.contains('x');
    }
    for (path, now) in now.into_iter().filter(|(path, _)| !is_shared(path)) {
        files.entry(path.into()).or_default().max(&now);
    }
}

impl FileUse {
    /// The most of both.
    pub(crate) fn max(&mut self, other: &FileUse) {
        self.mapped = self.mapped.max(other.mapped);
        self.resident = self.resident.max(other.resident);
        self.referenced = self.referenced.max(other.referenced);
        self.code |= other.code;
    }
}

/// Looks at the files that a program maps while it runs.
pub struct FileLooks {
    root: Process,
    began: Instant,
    due: Duration,
    spent: Duration,
    cleared: Duration,
    /// What was seen.
    pub files: Files,
}

impl FileLooks {
    /// Of a process that starts now, and all that it starts.
    pub fn of(process: u32) -> FileLooks {
        let (root, began, [due, spent, cleared]) = (Process::of(process), Instant::now(), [Duration::ZERO; 3]);
        FileLooks { root, began, due, spent, cleared, files: Files::new() }
    }

    /// Looks, if it is time and the looks so far have not cost too much. The time between two clearings is as long as
    /// all time before.
    pub fn look(&mut self) {
        let now = self.began.elapsed();
        if now < self.due || self.spent > PATIENCE + now / SHARE {
            return;
        }
        let clear = now >= 2 * self.cleared;
        for process in self.root.with_descendants().into_iter().map(Process::of) {
            add(&mut self.files, &mappings(&process.smaps().unwrap_or_default()));
            if clear {
                // A process that is not there any more has nothing to clear.
                let _ = std::fs::write(process.file("clear_refs"), MAPPED);
            }
        }
        self.cleared = if clear { now } else { self.cleared };
        self.spent += self.began.elapsed() - now;
        self.due = now.mul_f64(GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_programs_own_code_is_a_mapped_file_and_looks_have_a_pause() {
        let mut looks = FileLooks::of(std::process::id());
        looks.look();
        (looks.due, looks.spent) = (Duration::ZERO, PATIENCE * 1000);
        looks.look();
        assert_eq!(looks.due, Duration::ZERO, "looks have cost too much");
        let own = looks.files[std::env::current_exe().unwrap().to_str().unwrap()];
        assert!(own.code && (1..=own.mapped).contains(&own.resident), "{own:?}");
    }
}
