//! The source of swap files. The folder is opened at the start and kept, by the pager process if there is one. So a
//! process that has changed its root folder by then, or has dropped its rights, can still give a child its own swap
//! file.

use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use crate::swap::device::{nameless, open_folder, Device};
use crate::sys::lock::Lock;
use crate::sys::{self, Errno, High, Signals};
use crate::{Inject, LiveError};

/// A folder for swap files, or a block device.
#[derive(Debug)]
pub struct SwapFiles {
    path: PathBuf,
    inject: Option<Inject>,
    /// None: a block device, which serves only one process.
    folder: Lock<Option<High>>,
}

impl SwapFiles {
    /// Opens the folder, which has already served for a swap file.
    pub fn open(path: &Path, inject: Option<Inject>) -> Result<SwapFiles, LiveError> {
        let files = SwapFiles { path: path.to_path_buf(), inject, folder: Lock::new(None) };
        if path.is_dir() {
            let folder = open_folder(path).map_err(|error| files.refuse(error))?;
            files.set_folder(Some(sys::move_high(folder)));
        }
        Ok(files)
    }

    /// The folder's descriptor; -1: there is none.
    pub fn folder(&self) -> RawFd {
        self.with_folder(|folder| folder.map_or(-1, |folder| folder.as_raw_fd()))
    }

    pub fn with_folder<T>(&self, work: impl FnOnce(Option<&High>) -> T) -> T {
        let _signals = Signals::block();
        work(self.folder.lock().as_ref())
    }

    /// In a forked child: its own descriptor of the folder.
    pub fn set_folder(&self, folder: Option<High>) {
        let _signals = Signals::block();
        *self.folder.lock() = folder;
    }

    /// A file for a child.
    pub fn another(&self) -> Result<High, LiveError> {
        if self.folder() < 0 {
            let reason = "a block device serves one process; give a folder for programs that fork".to_string();
            return Err(LiveError::Backing { path: self.path.clone(), reason });
        }
        nameless(self.folder()).map(sys::move_high).map_err(|error| self.refuse(error))
    }

    /// A child's device, on a file of its own.
    pub fn device(&self, file: High) -> Device {
        Device::new(file, &self.path, None, self.inject)
    }

    fn refuse(&self, error: Errno) -> LiveError {
        LiveError::Backing {
            path: self.path.clone(),
            reason: format!("no swap file for a child: {}", sys::words(error)),
        }
    }
}
