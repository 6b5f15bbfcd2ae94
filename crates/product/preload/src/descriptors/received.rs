//! Descriptors that the program has not opened: inherited, in a message, or another process's. They may be direct (see
//! [`crate::descriptors::pinning`]), and may have O_DIRECT, which is removed.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use coldframe_live::own_descriptors;
use rustix::fs::{Mode, OFlags, RawDir};

use crate::descriptors::direct;
use crate::descriptors::pinning::{given, is_direct};
use crate::symbols::next::{next, none};

/// A descriptor that comes from elsewhere, perhaps with O_DIRECT.
pub fn received(descriptor: c_int) -> c_int {
    let descriptor = given(descriptor);
    direct::remove(descriptor);
    descriptor
}

/// At the start: looks at the inherited descriptors. Returns whether one of them is direct.
pub fn inherited() -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty()) else { return false };
    let mut room = [MaybeUninit::uninit(); 4096];
    let (mut entries, mut any_direct) = (RawDir::new(&folder, &mut room), false);
    while let Some(Ok(entry)) = entries.next() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|number| !own_descriptors::has(*number)) {
            direct::remove(number);
            any_direct |= is_direct(number);
        }
    }
    any_direct
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pidfd_getfd(process: c_int, descriptor: c_int, flags: c_uint) -> c_int {
    received(next!(PIDFD_GETFD, (process, descriptor, flags), none()))
}

/// Looks at the descriptors of a message. One that the program does not get is -1.
unsafe fn in_message(message: *const libc::msghdr) {
    // SAFETY: the kernel has filled it in.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(message);
        while let Some(part) = head.as_ref() {
            if (part.cmsg_level, part.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let (first, start) = (libc::CMSG_DATA(head).cast::<c_int>(), libc::CMSG_LEN(0) as usize);
                for i in 0..(part.cmsg_len - start) / size_of::<c_int>() {
                    let place = first.add(i);
                    place.write_unaligned(received(place.read_unaligned()));
                }
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    let result = next!(RECVMSG, (socket, message, flags), none() as isize);
    // SAFETY: the result of that call.
    unsafe { one(result, message) }
}

/// The result of recvmsg.
pub unsafe fn one(result: isize, message: *const libc::msghdr) -> isize {
    if result >= 0 {
        // SAFETY: the call has succeeded.
        unsafe { in_message(message) };
    }
    result
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvmmsg(
    socket: c_int,
    messages: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
    time: *mut c_void,
) -> c_int {
    let result = next!(RECVMMSG, (socket, messages, count, flags, time), none());
    // SAFETY: as above.
    unsafe { several(result, messages) }
}

/// The result of recvmmsg.
pub unsafe fn several(result: c_int, messages: *const libc::mmsghdr) -> c_int {
    for i in 0..usize::try_from(result).unwrap_or(0) {
        // SAFETY: that many have been received.
        unsafe { in_message(&(*messages.add(i)).msg_hdr) };
    }
    result
}
