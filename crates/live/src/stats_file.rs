//! The memory of the statistics: a memfd that several processes map. It is gone when the last of them ends.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::fatal::Mail;
use crate::stats::{Chosen, Snapshot, Stats};
use crate::{sys, LiveError};

/// Statistics that another process keeps, or will keep.
#[derive(Debug)]
pub struct StatsFile {
    stats: &'static Stats,
    fd: OwnedFd,
}

impl StatsFile {
    /// A new one. A program that is started inherits its descriptor.
    ///
    /// # Errors
    /// The kernel gives no memory.
    pub fn create() -> Result<StatsFile, LiveError> {
        let fd = sys::move_high_inherited(memfd(0)?);
        let stats = map(fd.as_raw_fd())?;
        Ok(StatsFile { stats, fd })
    }

    /// The statistics of a running process, as found by `find`.
    ///
    /// # Errors
    /// The process is gone or belongs to another user, or the file does not hold statistics of this version.
    pub fn open(path: &Path) -> Result<StatsFile, LiveError> {
        let refuse = |reason: String| LiveError::Backing { path: path.to_path_buf(), reason };
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).map_err(|e| refuse(e.to_string()))?;
        let len = file.metadata().map_err(|e| refuse(e.to_string()))?.len();
        if len != Stats::BYTES as u64 {
            return Err(refuse("is no statistics of this version of coldframe".to_string()));
        }
        let stats = map(file.as_raw_fd())?;
        if stats.magic.load(Ordering::Acquire) != Stats::MAGIC {
            return Err(refuse("the pager has not started yet".to_string()));
        }
        Ok(StatsFile { stats, fd: file.into() })
    }

    /// The statistics of process `pid`: the path under /proc that `open` takes.
    pub fn find(pid: u32) -> Option<PathBuf> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| {
            let target = std::fs::read_link(path).unwrap_or_default();
            target.to_string_lossy().contains(Stats::NAME)
        })
    }

    /// Their values now.
    pub fn snapshot(&self) -> Snapshot {
        self.stats.snapshot()
    }

    /// The pager's choices at its start.
    pub fn chosen(&self) -> Option<Chosen> {
        self.stats.chosen()
    }

    /// Whether a pager has begun to keep them.
    pub fn started(&self) -> bool {
        self.stats.magic.load(Ordering::Acquire) == Stats::MAGIC
    }

    /// What the pager has to say where the program has no stderr that it may use: a line, and whether it had to stop
    /// the process of this number.
    pub fn mail(&self) -> &'static Mail {
        &self.stats.mail
    }

    /// The descriptor's number, for [`crate::Options::stats_fd`].
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// An inherited descriptor may have been closed since; then no other process reads these statistics.
fn is_open(fd: RawFd) -> bool {
    // SAFETY: the number is looked at only; one that is not open is an error.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_size == Stats::BYTES as i64)
}

/// Whether an earlier program has kept these statistics: it has started this one, or has executed it.
pub fn is_later(options: &crate::Options) -> bool {
    let shared = options.stats_fd.filter(|fd| *fd >= 0 && is_open(*fd)).map(map);
    matches!(shared, Some(Ok(stats)) if crate::calibrate::known(stats).is_some())
}

/// The statistics of a pager: those it was given, or its own.
pub(crate) fn of(fd: Option<RawFd>) -> Result<(&'static Stats, Option<OwnedFd>), LiveError> {
    let fd = fd.filter(|fd| is_open(*fd));
    let own = match fd {
        Some(_) => None,
        None => Some(sys::move_high(memfd(libc::MFD_CLOEXEC)?)),
    };
    let stats = map(fd.unwrap_or_else(|| own.as_ref().map_or(-1, AsRawFd::as_raw_fd)))?;
    stats.mail.use_it();
    Ok((stats, own))
}

fn map(fd: RawFd) -> Result<&'static Stats, LiveError> {
    let address = sys::map_file(fd, Stats::BYTES).map_err(|e| LiveError::os("map the statistics", e))?;
    // SAFETY: the mapping has room for the counters, all bytes zero is a value of them, and it is never unmapped.
    Ok(unsafe { &*(address as *const Stats) })
}

fn memfd(flags: u32) -> Result<OwnedFd, LiveError> {
    let name = std::ffi::CString::new(Stats::NAME).expect("a name without zero bytes");
    let a = [name.as_ptr() as usize, flags as usize, 0, 0, 0, 0];
    // SAFETY: the name is a C string; the descriptor is new and ours.
    let fd = unsafe { sys::call(libc::SYS_memfd_create, a).map(|fd| OwnedFd::from_raw_fd(fd as RawFd)) };
    let fd = fd.map_err(|e| LiveError::os("memory for statistics", e))?;
    let a = [fd.as_raw_fd() as usize, Stats::BYTES, 0, 0, 0, 0];
    // SAFETY: no pointers.
    unsafe { sys::call(libc::SYS_ftruncate, a) }.map_err(|e| LiveError::os("memory for statistics", e))?;
    Ok(fd)
}
