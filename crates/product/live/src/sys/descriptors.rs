//! Descriptors with numbers that the program cannot have, or does not expect.
//!
//! A shell writes to 3 and calls dup2 with any number below its limit. So the pager's descriptors are at and above
//! the soft limit of RLIMIT_NOFILE. The kernel allows such descriptors while they stay open: if the hard limit leaves
//! room, the soft limit is raised during the `dup`. Otherwise the descriptors are just below the limit. Above
//! [`HIGHEST`], the kernel's table of descriptors costs too much (8 bytes a number, copied by each fork), so with
//! higher limits the descriptors begin at that number.
//!
//! ```text
//! soft < hard:  0 1 2 │ the program's ............ │ soft: ours
//! soft = hard:  0 1 2 │ the program's ...... │ ours │ soft
//! ```
//!
//! The descriptors of a pager: the userfaultfd, its pidfd, its memory as a file, the statistics, the swap file and its
//! folder (one more for a journal), the connection with each living child, and for each task (handlers + 6) a pipe of
//! two and, with rings, a ring. With two handlers that is 33. In a program with a pager process, only that has them:
//! the program has none, except while a pager or a fork begins.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::rlimit64;

use crate::sys::{self, own_descriptors, pids};

/// Descriptors are not above this number, unless the program has as many open.
const HIGHEST: u64 = 4096;

/// The highest numbers that a process may have: a pager process needs one above all others.
const SPARE: u64 = 2;

/// The soft limit is raised by this much. Further descriptors go below the limit.
const ROOM: u64 = 4096;

fn limit(new: Option<&rlimit64>) -> Option<rlimit64> {
    let mut old = rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let (new, was) = (new.map_or(0, |limit| limit as *const rlimit64 as usize), &raw mut old as usize);
    // SAFETY: reads and writes a limit each, which live through the call.
    let result = unsafe { sys::call(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, new, was, 0, 0]) };
    result.ok().map(|_| old)
}

/// Runs `work` with a higher limit, if the hard limit allows one, so that numbers are free even if the program has
/// used all of its own. `work` gets the program's limit. If another thread sets a limit between the last two calls,
/// its setting is lost.
pub(crate) fn with_room<T>(work: impl FnOnce(u64) -> T) -> T {
    let Some(before) = limit(None) else { return work(0) };
    let soft = before.rlim_cur;
    let raised = rlimit64 { rlim_cur: before.rlim_max.min(soft.saturating_add(ROOM)), ..before };
    if soft > HIGHEST || raised.rlim_cur == soft || limit(Some(&raised)).is_none() {
        return work(soft);
    }
    let result = work(soft);
    if limit(None).is_some_and(|now| (now.rlim_cur, now.rlim_max) == (raised.rlim_cur, raised.rlim_max)) {
        limit(Some(&before));
    }
    result
}

/// In a process of ours: any number is allowed that the program's limit allowed once.
pub(crate) fn allow_all() {
    if let Some(before) = limit(None) {
        limit(Some(&rlimit64 { rlim_cur: before.rlim_max, ..before }));
    }
}

/// The highest number that this process may have.
pub(crate) fn highest() -> RawFd {
    limit(None).map_or(0, |limit| limit.rlim_cur.min(i32::MAX as u64) as RawFd) - 1
}

/// A descriptor of the pager's, with such a number, which the program does not get while it is open. Start and forks
/// make and close them, one at a time.
#[derive(Debug)]
pub struct High {
    fd: ManuallyDrop<OwnedFd>,
    /// The process that has made it.
    process: usize,
}

impl High {
    fn new(fd: OwnedFd) -> High {
        High { fd: ManuallyDrop::new(fd), process: sys::getpid() }
    }

    /// From its number, which is kept.
    ///
    /// # Safety
    /// It is open, and no other thread closes it.
    pub unsafe fn from_raw(fd: RawFd) -> High {
        // SAFETY: the caller answers for it.
        High::new(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Its number, which stays kept.
    pub fn into_raw(self) -> RawFd {
        ManuallyDrop::new(self).as_raw_fd()
    }

    /// In a forked child: a parent's descriptor that it has kept is its own.
    pub fn inherit(&mut self) {
        self.process = sys::getpid();
    }

    /// Whether it is open in this process: a pager process has its own and those of its program; a program has those
    /// that it has not left to a pager process; a forked child has none of its parent's.
    fn is_here(&self) -> bool {
        let own = self.process == sys::getpid();
        match pids::is_pager() {
            true => own || self.process == pids::program(),
            false => own && own_descriptors::has(self.as_raw_fd()),
        }
    }
}

impl Deref for High {
    type Target = OwnedFd;
    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl Drop for High {
    fn drop(&mut self) {
        if self.is_here() {
            let number = self.as_raw_fd();
            // SAFETY: not used any more.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
            own_descriptors::remove(number);
        }
    }
}

pub(crate) fn move_high(fd: OwnedFd) -> High {
    if pids::is_pager() {
        return High::new(fd);
    }
    let moved = moved(fd, libc::F_DUPFD_CLOEXEC);
    own_descriptors::add(moved.as_raw_fd());
    High::new(moved)
}

/// Moves a descriptor. Programs that are started from here inherit it.
pub(crate) fn move_high_inherited(fd: OwnedFd) -> OwnedFd {
    moved(fd, libc::F_DUPFD)
}

fn moved(fd: OwnedFd, how: i32) -> OwnedFd {
    let duplicate = |from: u64| {
        // SAFETY: no pointers; the duplicate is new and ours.
        unsafe {
            let new =
                sys::call(libc::SYS_fcntl, [fd.as_raw_fd() as usize, how as usize, from as usize, 0, 0, 0]).ok()?;
            Some(OwnedFd::from_raw_fd(new as RawFd))
        }
    };
    let own = fd.as_raw_fd() as u64;
    // The first of them is for the statistics (`move_high_inherited`), also when they are not open here.
    let first = if how == libc::F_DUPFD { 0 } else { 1 };
    let above = with_room(|soft| duplicate(soft.min(HIGHEST) + first));
    let below =
        || limit(None).and_then(|limit| (own + 1..limit.rlim_cur.saturating_sub(SPARE)).rev().find_map(duplicate));
    above.or_else(below).unwrap_or(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_descriptor_lies_at_or_above_the_limit_or_at_its_top_and_stays_open() {
        let limit = limit(None).unwrap();
        let new = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let moved: Vec<High> = (0..3).map(|_| move_high(new())).collect();
        let lowest = if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur.min(HIGHEST)
        } else {
            limit.rlim_cur.min(HIGHEST + 3) - 3
        };
        for fd in &moved {
            assert!(fd.as_raw_fd() as u64 >= lowest, "{fd:?}, limit {}", limit.rlim_cur);
            assert!(fd.try_clone().is_ok() && own_descriptors::has(fd.as_raw_fd()));
        }
    }
}
