//! The files that processes map: how much of each is in RAM, and how much was referenced since its bits were cleared.

use std::collections::BTreeMap;

use crate::maps::Mapping;

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
pub fn add_files(files: &mut Files, mappings: &[Mapping]) {
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
    pub fn max(&mut self, other: &FileUse) {
        self.mapped = self.mapped.max(other.mapped);
        self.resident = self.resident.max(other.resident);
        self.referenced = self.referenced.max(other.referenced);
        self.code |= other.code;
    }
}
