//! The kernel's files. Everything that this crate reads or writes is below one folder: `/`, or a folder of a test.

use std::io;
use std::path::{Path, PathBuf};

/// The folder that holds `proc`, `sys` and `dev`.
#[derive(Debug, Clone)]
pub struct Tree(PathBuf);

impl Tree {
    /// This machine.
    pub fn machine() -> Tree {
        Tree("/".into())
    }

    /// A made tree.
    pub fn at(root: impl Into<PathBuf>) -> Tree {
        Tree(root.into())
    }

    /// Where a path of the machine is.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        self.0.join(absolute.as_ref().strip_prefix("/").unwrap_or(absolute.as_ref()))
    }

    /// The text of a file; empty if it cannot be read.
    pub fn text(&self, absolute: impl AsRef<Path>) -> String {
        text(&self.path(absolute))
    }

    /// Bytes of a field in KiB of `/proc/meminfo`; zero if it is not there.
    pub fn meminfo(&self, field: &str) -> u64 {
        let all = self.text("/proc/meminfo");
        let value = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0) * 1024
    }
}

/// The text of a file, without space around it; empty if it cannot be read.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default()
}

/// The number in a file; `None` if it is not one.
pub(crate) fn number(path: &Path) -> Option<u64> {
    text(path).parse().ok()
}

/// The number behind a name in a file of lines `NAME NUMBER`.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Writes a file of the kernel, in one call, without creating it.
pub(crate) fn write(path: &Path, value: impl AsRef<str>) -> io::Result<()> {
    use io::Write;
    std::fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_ref().as_bytes())
}
