//! System calls of a process that leaves another one's descriptors, session and folder.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use rustix::cmsg_space;
use rustix::net::{recvmsg, sendmsg, socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{again, call, Errno, Sys};

pub fn sockets() -> Sys<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends a number and a descriptor. Never waits.
pub fn send(socket: RawFd, number: u32, fd: RawFd) -> Sys<()> {
    // SAFETY: the caller's descriptors, which stay open meanwhile.
    let (socket, fds) = unsafe { (BorrowedFd::borrow_raw(socket), [BorrowedFd::borrow_raw(fd)]) };
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    again(|| sendmsg(socket, &[IoSlice::new(&number.to_ne_bytes())], &mut control, flags)).map(drop)
}

/// Receives what `send` has sent. Never waits.
pub fn receive(socket: RawFd) -> Sys<(u32, RawFd)> {
    // SAFETY: as above.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let (mut number, mut space) = ([0; 4], [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))]);
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let taken = again(|| recvmsg(socket, &mut [IoSliceMut::new(&mut number)], &mut control, RecvFlags::DONTWAIT))?;
    let rights = |part| if let RecvAncillaryMessage::ScmRights(mut fds) = part { fds.next() } else { None };
    match control.drain().find_map(rights) {
        Some(fd) if taken.bytes == number.len() => Ok((u32::from_ne_bytes(number), fd.into_raw_fd())),
        _ => Err(Errno::IO),
    }
}

/// Their events: something can be read, or the other end is closed. Waits for one of them, or only looks.
pub fn await_events(fds: [RawFd; 2], wait: bool) -> Sys<[i16; 2]> {
    let mut polls = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let limit = if wait { 0 } else { &raw const none as usize };
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

/// A pipe whose reading end brings SIGKILL to this process as soon as nobody has the writing end.
pub fn deadly_pipe() -> Sys<(OwnedFd, OwnedFd)> {
    let (read, write) = super::pipe(0)?;
    let set = |command: i32, value: usize| {
        // SAFETY: no pointers; the descriptor is ours.
        unsafe { call(libc::SYS_fcntl, [read.as_raw_fd() as usize, command as usize, value, 0, 0, 0]) }
    };
    set(F_SETSIG, libc::SIGKILL as usize)?;
    set(libc::F_SETOWN, super::getpid())?;
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
