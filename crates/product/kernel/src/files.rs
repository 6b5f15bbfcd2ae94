//! Single values in the kernel's files, and names of our own.

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

/// A hash (FNV-1a), for names of files: the path of a socket is short, and a name may be long.
pub(crate) fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
