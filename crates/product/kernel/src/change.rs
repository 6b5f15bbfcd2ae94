//! A change that the guard makes on the machine, as it is recorded.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, statat, AtFlags, Stat, CWD};
use serde::{Deserialize, Serialize};

/// A change to revert.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Cleanup {
    /// The folder of a group. It goes when its last process has ended.
    Folder(PathBuf),
    /// A file of the kernel, and its old contents.
    Value(PathBuf, String),
    /// A device by its number, and its folder in /sys: a later device of that number has another one.
    Zram(u32, Inode),
    File(PathBuf, Inode),
    /// What is swapped to. Other users may have moved it, so that the path is only a guess.
    Swap(PathBuf, Inode),
    /// A process, and when it began.
    Stopped(u32, u64),
}

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
