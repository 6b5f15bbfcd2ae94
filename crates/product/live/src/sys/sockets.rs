//! Connections between the pagers of a parent and of its child, and between a program and its pager. A listening
//! socket has a name that the kernel chooses, in no file system, and lives for one connection; who connects names a
//! secret that it has from memory.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::cmsg_space;
use rustix::net::{recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{again, call, Errno, Sys};

/// The most descriptors of one message.
pub const DESCRIPTORS: usize = 4;

/// `struct sockaddr_un` of such a name: a zero and five digits (unix(7), "Autobind feature").
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct SocketName {
    family: u16,
    name: [u8; 6],
}

/// What who connects has to know.
#[derive(Clone, Copy, Debug)]
pub struct Appointment {
    name: SocketName,
    word: [u8; 16],
}

fn socket() -> Sys<OwnedFd> {
    let a = [libc::AF_UNIX as usize, (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as usize, 0, 0, 0, 0];
    // SAFETY: no pointers; the descriptor is new and ours.
    unsafe { call(libc::SYS_socket, a).map(|fd| OwnedFd::from_raw_fd(fd as RawFd)) }
}

/// A socket that listens.
pub fn listen() -> Sys<(OwnedFd, Appointment)> {
    let socket = socket()?;
    let mut name = SocketName { family: libc::AF_UNIX as u16, name: [0; 6] };
    let mut len = size_of::<SocketName>() as u32;
    let (fd, address) = (socket.as_raw_fd() as usize, &raw mut name as usize);
    // SAFETY: the kernel reads the family, and writes a name of that length.
    unsafe {
        call(libc::SYS_bind, [fd, address, size_of::<u16>(), 0, 0, 0])?;
        call(libc::SYS_listen, [fd, 1, 0, 0, 0, 0])?;
        call(libc::SYS_getsockname, [fd, address, &raw mut len as usize, 0, 0, 0])?;
    }
    let mut word = [0; 16];
    rustix::rand::getrandom(&mut word[..], rustix::rand::GetRandomFlags::empty())?;
    Ok((socket, Appointment { name, word }))
}

/// Connects, and says the word.
pub fn connect(to: &Appointment) -> Sys<OwnedFd> {
    let socket = socket()?;
    let a = [socket.as_raw_fd() as usize, &raw const to.name as usize, size_of::<SocketName>(), 0, 0, 0];
    // SAFETY: the name lives through the call.
    again(|| unsafe { call(libc::SYS_connect, a) })?;
    send(&socket, &to.word, &[])?;
    Ok(socket)
}

/// The connection that waits at a listening socket, from who has said the word. Others may find the name.
pub fn accept(listening: &OwnedFd, appointment: &Appointment) -> Sys<OwnedFd> {
    let a = [listening.as_raw_fd() as usize, 0, 0, libc::SOCK_CLOEXEC as usize, 0, 0];
    loop {
        // SAFETY: no pointers; the descriptor is new and ours.
        let made = unsafe { again(|| call(libc::SYS_accept4, a)).map(|fd| OwnedFd::from_raw_fd(fd as RawFd)) }?;
        let mut word = [0; 16];
        if receive(&made, &mut word, false).is_ok() && word == appointment.word {
            return Ok(made);
        }
    }
}

/// Sends a message with descriptors. It never waits.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Sys<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    again(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags)).map(drop)
}

/// Receives a message: its length, and its descriptors. `waits`: until there is one. EPIPE: the other end is closed.
pub fn receive(socket: impl AsFd, into: &mut [u8], waits: bool) -> Sys<(usize, [Option<OwnedFd>; DESCRIPTORS])> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    let taken = again(|| recvmsg(&socket, &mut [IoSliceMut::new(into)], &mut control, flags))?;
    let mut fds = [const { None }; DESCRIPTORS];
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(got) = part {
            fds.iter_mut().zip(got).for_each(|(place, fd)| *place = Some(fd));
        }
    }
    match taken.bytes {
        0 => Err(Errno::PIPE),
        bytes => Ok((bytes, fds)),
    }
}

/// Ends a connection at both ends; the descriptors stay open.
pub fn shut_down(socket: RawFd) {
    // SAFETY: no pointers.
    let _ = unsafe { call(libc::SYS_shutdown, [socket as usize, libc::SHUT_RDWR as usize, 0, 0, 0, 0]) };
}
