//! A change that the guard makes on the machine, as it is recorded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::inode::Inode;

/// A change to revert.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Cleanup {
    /// The folder of a group. It goes when its last process has ended.
    Folder(PathBuf),
    /// A file of the kernel, and its old contents.
    Value(PathBuf, String),
    /// Such a file has been restored, or another guard that lives will do it.
    Restored(PathBuf),
    /// A device by its number, and its folder in /sys: a later device of that number has another one.
    Zram(u32, Inode),
    File(PathBuf, Inode),
    /// What is swapped to. Other users may have moved it, so that the path is only a guess.
    Swap(PathBuf, Inode),
    /// A process, and when it began.
    Stopped(u32, u64),
}
