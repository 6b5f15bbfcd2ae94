//! The memory of the statistics: a memfd that several processes map. It is gone when the last of them ends.
//!
//! Its length is sealed, since a process that touches a mapping behind the end of its file is killed. The descriptor
//! that programs inherit is for reading, and only the pager process keeps it. A pager opens it again for writing, which
//! the kernel allows to the user who started the run. So a program that has given up its rights cannot write there.
//! The numbers of a pager that cannot write are in memory of its own.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::{self, SealFlags};

use crate::stats::{Chosen, Snapshot, Stats};
use crate::sys::fatal::Mail;
use crate::sys::{own_descriptors, pids, High};
use crate::{sys, LiveError};

const RIGHTS: i32 = libc::PROT_READ | libc::PROT_WRITE;
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

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
        let fd = memfd()?;
        let to_read = again(fd.as_raw_fd(), false).map_err(|e| LiveError::os("open the statistics", e))?;
        let stats = map(fd.as_raw_fd(), RIGHTS)?;
        Ok(StatsFile { stats, fd: sys::move_high_inherited(to_read) })
    }

    /// The statistics of a running process, as found by `find`.
    ///
    /// # Errors
    /// The process is gone or belongs to another user, or the file does not hold statistics of this version.
    pub fn open(path: &Path) -> Result<StatsFile, LiveError> {
        let refuse = |reason: String| LiveError::Backing { path: path.to_path_buf(), reason };
        // Who opens a pipe or a device of another user may wait for ever, or do what that device does.
        let found = fs::open(path, fs::OFlags::PATH | fs::OFlags::CLOEXEC, fs::Mode::empty());
        let found = found.map_err(|e| refuse(e.to_string()))?;
        let regular = fs::fstat(&found).is_ok_and(|stat| fs::FileType::from_raw_mode(stat.st_mode).is_file());
        let fd = if regular { again(found.as_raw_fd(), false).ok() } else { None };
        let Some(fd) = fd.filter(|fd| is_open(fd.as_raw_fd())) else {
            return Err(refuse("is no statistics of this version of coldframe".to_string()));
        };
        let stats = map(fd.as_raw_fd(), libc::PROT_READ)?;
        if stats.magic.load(Ordering::Acquire) != Stats::MAGIC {
            return Err(refuse("the pager has not started yet".to_string()));
        }
        Ok(StatsFile { stats, fd })
    }

    /// The process whose statistics `holder` has, and the path under /proc that `open` takes. A pager process has those
    /// of its program: of the pidfds of other processes, which the kernel shows, the program's is the first.
    pub fn find(holder: u32) -> Option<(u32, PathBuf)> {
        let list = |part: &str| Some(std::fs::read_dir(format!("/proc/{holder}/{part}")).ok()?.flatten());
        let path = list("fd")?.map(|entry| entry.path()).find(|path| {
            let target = std::fs::read_link(path).unwrap_or_default();
            target.to_string_lossy().strip_prefix("/memfd:").is_some_and(|name| name.starts_with(Stats::NAME))
        })?;
        let name = std::fs::read(format!("/proc/{holder}/comm")).ok()?;
        if name.strip_suffix(b"\n") != Some(pids::PAGER_NAME.to_bytes()) {
            return Some((holder, path));
        }
        // One that has ended has the number -1.
        let other = |text: String| text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
        let mut others = list("fdinfo")?.filter_map(|entry| other(std::fs::read_to_string(entry.path()).ok()?));
        Some((others.find(|pid| ![0, holder].contains(pid))?, path))
    }

    /// Their values now.
    pub fn snapshot(&self) -> Snapshot {
        self.stats.snapshot()
    }

    /// All faults so far that a pager has handled.
    pub fn faults(&self) -> u64 {
        let Stats { true_faults, false_faults, write_faults, .. } = self.stats;
        [true_faults, false_faults, write_faults].map(|faults| faults.load(Ordering::Relaxed)).iter().sum()
    }

    /// Whether the processors are kept awake now. Only for who has made the statistics.
    pub fn set_awake(&self, awake: bool) {
        self.stats.awake.store(awake.into(), Ordering::Relaxed);
    }

    /// Of the one budget of the run, memory that is not managed takes so many bytes. Only for who has made the
    /// statistics.
    pub fn set_beside(&self, bytes: u64) {
        self.stats.shares.set_beside((bytes as usize).div_ceil(crate::PAGE));
    }

    /// Processes that have more frames together than the rest of `ram` give them back, each down to its least ones.
    pub fn ask_for_excess(&self, ram: u64) {
        let shares = &self.stats.shares;
        shares.ask(None, 0, false, shares.left_of(ram as usize / crate::PAGE), sys::now());
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
    fs::fstat(fd).is_ok_and(|stat| stat.st_size == Stats::BYTES as i64) && fs::fcntl_get_seals(fd) == Ok(SEALS)
}

/// The statistics of the run that this program belongs to, to read.
fn shared(fd: Option<RawFd>) -> Option<&'static Stats> {
    fd.filter(|fd| *fd >= 0 && is_open(*fd)).and_then(|fd| map(fd, libc::PROT_READ).ok())
}

/// Whether an earlier program has written these statistics: it has started this one, or has executed it.
pub fn is_later(options: &crate::Options) -> bool {
    shared(options.stats_fd).is_some_and(|stats| stats.measured().is_some())
}

/// The statistics of a pager: those it was given, or its own. `takes`: the descriptor that it was given is its own from
/// now on.
pub(crate) fn of(fd: Option<RawFd>, takes: bool) -> Result<(&'static Stats, Option<High>), LiveError> {
    let shared = shared(fd);
    if let (Some(fd), Some(_)) = (fd, shared) {
        if let Ok(to_write) = again(fd, true) {
            let stats = map(to_write.as_raw_fd(), RIGHTS)?;
            stats.mail.use_it();
            if !takes {
                return Ok((stats, None));
            }
            own_descriptors::add(fd);
            // SAFETY: inherited for this.
            return Ok((stats, Some(unsafe { High::from_raw(fd) })));
        }
    }
    let own = sys::move_high(memfd()?);
    let stats = map(own.as_raw_fd(), RIGHTS)?;
    if let Some(measured) = shared.and_then(Stats::measured) {
        stats.device_read_ns.store(measured.read_ns, Ordering::Relaxed);
        stats.walk_step_ns.store(measured.step_ns, Ordering::Relaxed);
    }
    stats.mail.use_it();
    Ok((stats, Some(own)))
}

fn map(fd: RawFd, rights: i32) -> Result<&'static Stats, LiveError> {
    let address = sys::map_file(fd, Stats::BYTES, rights).map_err(|e| LiveError::os("map the statistics", e))?;
    // SAFETY: the mapping has room for the counters, all bytes zero is a value of them, and it is never unmapped.
    Ok(unsafe { &*(address as *const Stats) })
}

fn again(fd: RawFd, write: bool) -> std::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{fd}");
    std::fs::OpenOptions::new().read(true).write(write).open(path).map(OwnedFd::from)
}

fn memfd() -> Result<OwnedFd, LiveError> {
    let make = || {
        let fd = fs::memfd_create(Stats::NAME, fs::MemfdFlags::CLOEXEC | fs::MemfdFlags::ALLOW_SEALING)?;
        fs::ftruncate(&fd, Stats::BYTES as u64)?;
        fs::fchmod(&fd, fs::Mode::RUSR | fs::Mode::WUSR)?;
        fs::fcntl_add_seals(&fd, SEALS)?;
        Ok(fd)
    };
    make().map_err(|e: rustix::io::Errno| LiveError::os("memory for statistics", e))
}
