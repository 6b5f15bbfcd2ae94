//! The record of a guard: a file with its changes, so that they are known when the guard has been killed.
//!
//! ```text
//!   NAME.guard    a line of JSON for each change; locked while its guard lives, removed when all is reverted
//! ```
//! It is in a folder of its user that is empty after a restart of the machine, as the changes are.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};

use crate::guard::change::Cleanup;

/// How its name ends.
pub(crate) const END: &str = "guard";

#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// A new one, or that of a killed guard, with its changes.
    pub(crate) fn open(path: &Path) -> std::io::Result<(Record, Vec<Cleanup>)> {
        let folder = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
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
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
