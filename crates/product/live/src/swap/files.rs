//! The source of swap files. The folder is opened at the start and kept, and one file is made ahead. So a process
//! that has changed its root folder by then, or has dropped its rights, can still give a child its own swap file, at
//! least once.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::swap::device::{nameless, open_folder, Device};
use crate::sys::lock::Lock;
use crate::sys::Signals;
use crate::sys::{self, Errno, High, Sys};
use crate::{Inject, LiveError};

/// A folder for swap files, or a block device.
#[derive(Debug)]
pub struct SwapFiles {
    path: PathBuf,
    inject: Option<Inject>,
    /// None: a block device, which serves only one process.
    folder: Option<High>,
    ahead: Lock<Option<High>>,
}

impl SwapFiles {
    /// Opens the folder, which has already served for a swap file.
    pub fn open(path: &Path, inject: Option<Inject>) -> Result<SwapFiles, LiveError> {
        let mut files = SwapFiles { path: path.to_path_buf(), inject, folder: None, ahead: Lock::new(None) };
        if path.is_dir() {
            let folder = open_folder(path).map_err(|error| files.refuse(error))?;
            files.folder = Some(sys::move_high(folder));
            files.renew();
        }
        Ok(files)
    }

    pub fn another(&self) -> Result<Device, LiveError> {
        if self.folder.is_none() {
            let reason = "a block device serves one process; give a folder for programs that fork".to_string();
            return Err(LiveError::Backing { path: self.path.clone(), reason });
        }
        let _signals = Signals::block();
        let made = self.make().map(sys::move_high).or_else(|error| self.ahead.lock().take().ok_or(error));
        let file = made.map_err(|error| self.refuse(error))?;
        Ok(Device::new(file, &self.path, None, self.inject))
    }

    /// In a forked child: the file that was made ahead belongs to the parent.
    pub fn renew(&self) {
        let _signals = Signals::block();
        let mut ahead = self.ahead.lock();
        drop(ahead.take());
        *ahead = self.make().ok().map(sys::move_high);
    }

    fn make(&self) -> Sys<OwnedFd> {
        nameless(self.folder.as_ref().map_or(-1, |folder| folder.as_raw_fd()))
    }

    fn refuse(&self, error: Errno) -> LiveError {
        LiveError::Backing {
            path: self.path.clone(),
            reason: format!("no swap file for a child: {}", sys::words(error)),
        }
    }
}
