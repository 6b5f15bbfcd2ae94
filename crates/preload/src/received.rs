//! Descriptors that the program has not opened: inherited, in a message, or another process's. They may be direct (see
//! [`crate::wary`]), and may have O_DIRECT, which is removed.

use std::ffi::{c_int, c_long, c_uint, c_void, CStr};

use coldframe_live::kept;

use crate::next::{next, none};
use crate::parts::pass;
use crate::wary::{fanotify_init, given, is_direct, setsockopt, socket};
use crate::{direct, sys};

/// A descriptor that comes from elsewhere, perhaps with O_DIRECT.
fn received(descriptor: c_int) -> c_int {
    let descriptor = given(descriptor);
    direct::remove(descriptor);
    descriptor
}

/// At the start: looks at the inherited descriptors. Returns whether one of them is direct.
pub fn inherited() -> bool {
    let mut entries = [0u64; 512];
    let folder = c"/proc/self/fd".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    // SAFETY: a path, and room of that many bytes.
    let folder = unsafe { sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, folder, flags, 0, 0, 0]) };
    let mut found = false;
    loop {
        let arguments = [folder as usize, entries.as_mut_ptr() as usize, size_of_val(&entries), 0, 0, 0];
        // SAFETY: as above.
        let len = unsafe { sys::call(libc::SYS_getdents64, arguments) };
        if len <= 0 {
            break;
        }
        let mut at = 0;
        while at < len as usize {
            // SAFETY: the kernel has written `struct linux_dirent64`: its length at 16, its name at 19.
            let (next, name) = unsafe {
                let entry = entries.as_ptr().cast::<u8>().add(at);
                (entry.add(16).cast::<u16>().read_unaligned(), CStr::from_ptr(entry.add(19).cast()))
            };
            at += usize::from(next);
            let number = name.to_str().ok().and_then(|name| name.parse().ok());
            if let Some(number) = number.filter(|number| !kept::has(*number)) {
                direct::remove(number);
                found |= is_direct(number);
            }
        }
    }
    // SAFETY: it was opened here.
    unsafe { sys::call(libc::SYS_close, [folder as usize, 0, 0, 0, 0, 0]) };
    found
}

type GetFd = unsafe extern "C" fn(c_int, c_int, c_uint) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pidfd_getfd(process: c_int, descriptor: c_int, flags: c_uint) -> c_int {
    received(next!(PIDFD_GETFD, GetFd, (process, descriptor, flags), none()))
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

type Receive = unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;
type ReceiveMany = unsafe extern "C" fn(c_int, *mut libc::mmsghdr, u32, c_int, *mut c_void) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    let result = next!(RECVMSG, Receive, (socket, message, flags), none() as isize);
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
    let result = next!(RECVMMSG, ReceiveMany, (socket, messages, count, flags, time), none());
    for i in 0..usize::try_from(result).unwrap_or(0) {
        // SAFETY: so many have been received.
        unsafe { in_message(&(*messages.add(i)).msg_hdr) };
    }
    result
}

/// The same by `syscall`; `None`: another call.
pub unsafe fn by_number(number: c_long, a: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's call.
    unsafe {
        Some(match number {
            libc::SYS_setsockopt => {
                setsockopt(a[0] as c_int, a[1] as c_int, a[2] as c_int, a[3] as *const c_void, a[4] as u32).into()
            }
            libc::SYS_socket => socket(a[0] as c_int, a[1] as c_int, a[2] as c_int).into(),
            libc::SYS_fanotify_init => fanotify_init(a[0] as u32, a[1] as u32).into(),
            libc::SYS_pidfd_getfd => received(pass(number, a) as c_int).into(),
            libc::SYS_recvmsg => recvmsg(a[0] as c_int, a[1] as *mut _, a[2] as c_int) as c_long,
            libc::SYS_recvmmsg => {
                recvmmsg(a[0] as c_int, a[1] as *mut _, a[2] as u32, a[3] as c_int, a[4] as *mut _).into()
            }
            _ => return None,
        })
    }
}
