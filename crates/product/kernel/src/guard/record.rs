//! The record of a guard: a file with its changes, so that they are known when the guard has been killed.
//!
//! ```text
//!   NAME.guard    a line of JSON for each change; locked while its guard lives, removed when all is reverted
//! ```
//! It is in a folder of its user that is empty after a restart of the machine, as the changes are. Guards of several
//! commands may change the same file of the kernel. The first one records what was in it; the others record the same,
//! and the last of those that live writes it back.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};

use crate::guard::change::Cleanup;

/// How its name ends.
const END: &str = "guard";

#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// A new one, or that of a killed guard, with its changes.
    pub(crate) fn open(path: &Path) -> std::io::Result<(Record, Vec<Cleanup>)> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder(path))?;
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let changes = changes(&file);
        Ok((Record { path: path.into(), file }, changes))
    }

    /// One that cannot be written (a full disk) names less.
    pub(crate) fn add(&mut self, cleanup: &Cleanup) {
        let line = serde_json::to_string(cleanup).unwrap_or_default() + "\n";
        let _ = self.file.write_all(line.as_bytes());
    }

    /// While this is held, no other guard of the folder reads values of others or restores them.
    pub(crate) fn alone(&self) -> Option<File> {
        let folder = File::open(folder(&self.path)).ok()?;
        flock(&folder, FlockOperation::LockExclusive).is_ok().then_some(folder)
    }

    /// What another guard that lives will write to a file.
    pub(crate) fn value_of_another(&self, file: &Path) -> Option<String> {
        let others = records(folder(&self.path)).into_iter().filter(|path| *path != self.path);
        let living = others.filter_map(|path| File::open(path).ok()).filter(lives);
        living.flat_map(|record| changes(&record)).find_map(|change| match change {
            Cleanup::Value(path, old) if path == file => Some(old),
            _ => None,
        })
    }

    /// What is left stays in it.
    pub(crate) fn end(mut self, left: &[Cleanup]) {
        if left.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        } else if self.file.set_len(0).is_ok() {
            left.iter().for_each(|cleanup| self.add(cleanup));
        }
    }
}

/// The changes in a record.
pub(crate) fn changes(mut file: &File) -> Vec<Cleanup> {
    let mut lines = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut lines));
    let mut changes: Vec<Cleanup> = Vec::new();
    for change in lines.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match &change {
            Cleanup::Restored(file) => changes.retain(|it| !matches!(it, Cleanup::Value(path, _) if path == file)),
            _ => changes.push(change),
        }
    }
    changes
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// The records in a folder.
pub(crate) fn records(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == END)).collect();
    paths.sort();
    paths
}

/// Whether the guard of a record lives. The lock of those who ask is shared: they do not take each other for one.
pub(crate) fn lives(record: &File) -> bool {
    flock(record, FlockOperation::NonBlockingLockShared).is_err()
}
