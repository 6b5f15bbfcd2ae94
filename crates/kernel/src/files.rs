//! Single values in the kernel's files.

use std::io;
use std::path::Path;

use coldframe_proc::text;

/// The number in a file; `None` if it is not one.
pub(crate) fn number(path: &Path) -> Option<u64> {
    text(path).parse().ok()
}

/// Writes a file of the kernel, in one call, without creating it.
pub(crate) fn write(path: &Path, value: impl AsRef<str>) -> io::Result<()> {
    use io::Write;
    std::fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_ref().as_bytes())
}
