//! System calls of a process that leaves another one's descriptors, session and folder.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{again, call, Sys};

/// Their events: something can be read, or the other end is closed. Waits for one of them, or only looks.
pub fn await_events(fds: [RawFd; 2], wait: bool) -> Sys<[i16; 2]> {
    await_events_for(fds, if wait { None } else { Some(0) })
}

/// The same; waits for at most so many milliseconds.
pub fn await_events_for(fds: [RawFd; 2], ms: Option<u64>) -> Sys<[i16; 2]> {
    let mut polls = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time = |ms: u64| libc::timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000 * 1_000_000) as i64 };
    let time = ms.map(time);
    let limit = time.as_ref().map_or(0, |time| &raw const *time as usize);
    // SAFETY: two pollfds and a timespec that live through the call.
    unsafe { call(libc::SYS_ppoll, [polls.as_mut_ptr() as usize, 2, limit, 0, 8, 0]) }?;
    Ok(polls.map(|poll| poll.revents))
}

pub fn close_range(range: Range<RawFd>) -> Sys<()> {
    if range.is_empty() {
        return Ok(());
    }
    // SAFETY: no pointers; the caller's descriptors.
    unsafe { call(libc::SYS_close_range, [range.start as usize, range.end as usize - 1, 0, 0, 0, 0]) }.map(drop)
}

/// Puts a descriptor in the place of another number; it is closed on exec.
pub fn dup_onto(fd: &OwnedFd, number: RawFd) -> Sys<()> {
    let a = [fd.as_raw_fd() as usize, number as usize, libc::O_CLOEXEC as usize, 0, 0, 0];
    // SAFETY: no pointers.
    unsafe { call(libc::SYS_dup3, a) }.map(drop)
}

/// Puts a copy of a descriptor in the place of another number; a program that is executed inherits it.
pub fn inherit_as(fd: &OwnedFd, number: RawFd) -> Sys<()> {
    // SAFETY: no pointers.
    unsafe { call(libc::SYS_dup3, [fd.as_raw_fd() as usize, number as usize, 0, 0, 0, 0]) }.map(drop)
}

pub fn is_open(number: RawFd) -> bool {
    // SAFETY: no pointers.
    unsafe { call(libc::SYS_fcntl, [number as usize, libc::F_GETFD as usize, 0, 0, 0, 0]) }.is_ok()
}

/// Moves a descriptor to the lowest free number from `from` on; it is closed on exec.
pub fn move_to(fd: RawFd, from: RawFd) -> Sys<RawFd> {
    let a = [fd as usize, libc::F_DUPFD_CLOEXEC as usize, from as usize, 0, 0, 0];
    // SAFETY: no pointers; the caller's descriptor.
    unsafe {
        let new = call(libc::SYS_fcntl, a)? as RawFd;
        call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0])?;
        Ok(new)
    }
}

/// Leaves the group of processes that get signals together, and the working folder, which could not be unmounted. The
/// session stays: the kernel shares out processors by session, and a fault took a fifth longer with two of them.
pub fn leave_group_and_folder() {
    // SAFETY: the path is a C string.
    unsafe {
        let _ = call(libc::SYS_setpgid, [0; 6]);
        let _ = call(libc::SYS_chdir, [c"/".as_ptr() as usize, 0, 0, 0, 0, 0]);
    }
}

/// Waits for the end of a child, with any exit signal.
pub fn reap(child: usize) {
    // SAFETY: no pointers.
    let _ = again(|| unsafe { call(libc::SYS_wait4, [child, 0, libc::__WALL as usize, 0, 0, 0]) });
}

/// Whether orphans below this process become its children; sets it where asked.
pub fn adopts_orphans(set: Option<bool>) -> bool {
    let mut adopts = 0i32;
    let a = match set {
        Some(set) => [libc::PR_SET_CHILD_SUBREAPER as usize, usize::from(set), 0, 0, 0, 0],
        None => [libc::PR_GET_CHILD_SUBREAPER as usize, &raw mut adopts as usize, 0, 0, 0, 0],
    };
    // SAFETY: the kernel writes a number, or takes one.
    let _ = unsafe { call(libc::SYS_prctl, a) };
    adopts != 0
}

/// Takes limits away that a program had at its start, as far as this process may: another one's processor time and
/// file sizes are no concern of it.
pub fn lift_limits() {
    for limit in [libc::RLIMIT_CPU, libc::RLIMIT_FSIZE] {
        let set = |new: libc::rlimit64| {
            let a = [0, limit as usize, &raw const new as usize, 0, 0, 0];
            // SAFETY: reads a limit, which lives through the call.
            unsafe { call(libc::SYS_prlimit64, a) }
        };
        let all = libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: libc::RLIM64_INFINITY };
        let mut own = all;
        // SAFETY: writes a limit.
        let _ = unsafe { call(libc::SYS_prlimit64, [0, limit as usize, 0, &raw mut own as usize, 0, 0]) };
        let _ = set(all).or_else(|_| set(libc::rlimit64 { rlim_cur: own.rlim_max, ..own }));
    }
}

/// A pipe whose reading end brings SIGKILL to another process as soon as a byte comes, or nobody has the writing end.
pub fn deadly_pipe(process: usize) -> Sys<(OwnedFd, OwnedFd)> {
    let (read, write) = super::pipe(0)?;
    let set = |command: i32, value: usize| {
        // SAFETY: no pointers; the descriptor is ours.
        unsafe { call(libc::SYS_fcntl, [read.as_raw_fd() as usize, command as usize, value, 0, 0, 0]) }
    };
    set(F_SETSIG, libc::SIGKILL as usize)?;
    set(libc::F_SETOWN, process)?;
    set(libc::F_SETFL, libc::O_ASYNC as usize)?;
    Ok((read, write))
}

/// The reading end brings nothing any more, whoever has it.
pub fn disarm(read: RawFd) {
    let (off, request) = (0i32, libc::FIOASYNC as usize);
    // SAFETY: the kernel reads a number. A pager process may not call fcntl.
    let _ = unsafe { call(libc::SYS_ioctl, [read as usize, request, &raw const off as usize, 0, 0, 0]) };
}

/// `include/uapi/asm-generic/fcntl.h`
const F_SETSIG: i32 = 10;
