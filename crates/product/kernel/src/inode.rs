//! The identity of a file, whatever becomes of its path.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{fstat, statat, AtFlags, Stat, CWD};
use serde::{Deserialize, Serialize};

/// Which file it is: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inode(u64, u64);

impl Inode {
    pub(crate) fn from_file(file: impl AsFd) -> Option<Inode> {
        fstat(file).ok().map(Inode::from)
    }

    /// Of a path, not of what a link there leads to.
    pub(crate) fn from_path(path: &Path) -> Option<Inode> {
        Inode::within(CWD, path)
    }

    /// Of a path from a folder.
    pub(crate) fn within(folder: impl AsFd, path: &Path) -> Option<Inode> {
        statat(folder, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(Inode::from)
    }
}

impl From<Stat> for Inode {
    fn from(stat: Stat) -> Inode {
        Inode(stat.st_dev, stat.st_ino)
    }
}
