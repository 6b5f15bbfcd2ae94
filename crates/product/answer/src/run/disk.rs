//! The disk below a folder, and what its own counter says that it has written: with f2fs or another log there, also
//! what that log has moved.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Major and minor number of the folder's disk, or of the disk that the path names.
pub fn number(path: &Path) -> (u32, u32) {
    let number = std::fs::metadata(path).map_or(0, |meta| match meta.file_type().is_block_device() {
        true => meta.rdev(),
        false => meta.dev(),
    });
    (rustix::fs::major(number), rustix::fs::minor(number))
}

/// A disk's counter.
pub struct Counter {
    file: PathBuf,
    before: u64,
}

impl Counter {
    /// From now on. `None`: this disk has none; btrfs, overlays and networks have no disk of their own.
    pub fn from_now(path: &Path) -> Option<Counter> {
        let (major, minor) = number(path);
        let file = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        read(&file).map(|before| Counter { file, before })
    }

    /// Bytes that all programs and the file system have written to it since.
    pub fn written(&self) -> Option<u64> {
        read(&self.file)?.checked_sub(self.before)
    }
}

/// `Documentation/block/stat.rst`: the seventh number is in sectors of 512 bytes.
fn read(file: &Path) -> Option<u64> {
    let sectors: u64 = std::fs::read_to_string(file).ok()?.split_whitespace().nth(6)?.parse().ok()?;
    Some(512 * sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_no_counter_is_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, bytes) in [("1 2 3 4 5 6 7 8", Some(3584)), ("1 2 3", None), ("1 2 3 4 5 6 x 8", None)] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(read(file.path()), bytes, "{text}");
        }
        let counter = Counter { file: file.path().into(), before: 1024 };
        std::fs::write(file.path(), "1 2 3 4 5 6 10 8").unwrap();
        assert_eq!(counter.written(), Some(4096));
        assert!(Counter::from_now(Path::new("/proc")).is_none(), "no disk");
    }
}
