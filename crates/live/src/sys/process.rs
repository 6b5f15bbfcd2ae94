//! System calls of a process that leaves another one's descriptors, session and folder.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};

use super::{again, call, Errno, Sys};

pub fn sockets() -> Sys<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A control message with one descriptor (`SCM_RIGHTS`): length, level, type, descriptor.
#[repr(C, align(8))]
struct Control {
    len: usize,
    level: i32,
    kind: i32,
    fd: i32,
}

const LEN: usize = 20;

fn message(number: &mut u32, control: &mut Control, f: impl Fn(usize) -> Sys<usize>) -> Sys<usize> {
    let mut piece = libc::iovec { iov_base: (number as *mut u32).cast(), iov_len: 4 };
    // SAFETY: zero is a value of the structure.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    (head.msg_iov, head.msg_iovlen) = (&mut piece, 1);
    (head.msg_control, head.msg_controllen) = ((control as *mut Control).cast(), size_of::<Control>());
    again(|| f((&raw mut head) as usize))
}

/// Sends a number and a descriptor. Never waits.
pub fn send(socket: RawFd, number: u32, fd: RawFd) -> Sys<()> {
    let mut control = Control { len: LEN, level: libc::SOL_SOCKET, kind: libc::SCM_RIGHTS, fd };
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
    // SAFETY: the message lives through the call.
    let sent = |head| unsafe { call(libc::SYS_sendmsg, [socket as usize, head, flags, 0, 0, 0]) };
    message(&mut { number }, &mut control, sent).map(drop)
}

/// Receives what `send` has sent. Never waits.
pub fn receive(socket: RawFd) -> Sys<(u32, RawFd)> {
    let (mut number, mut control) = (0, Control { len: 0, level: 0, kind: 0, fd: -1 });
    let flags = libc::MSG_DONTWAIT as usize;
    // SAFETY: the message lives through the call.
    let taken = |head| unsafe { call(libc::SYS_recvmsg, [socket as usize, head, flags, 0, 0, 0]) };
    match message(&mut number, &mut control, taken)? {
        4 if control.len == LEN && control.kind == libc::SCM_RIGHTS => Ok((number, control.fd)),
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
pub fn reap(child: usize) -> bool {
    let how = (libc::__WALL | libc::WNOHANG) as usize;
    // SAFETY: no pointers.
    again(|| unsafe { call(libc::SYS_wait4, [child, 0, how, 0, 0, 0]) }) != Ok(0)
}
