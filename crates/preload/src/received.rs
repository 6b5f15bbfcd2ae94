//! Descriptors that the program has not opened: inherited, in a message, or another process's. They may be direct (see
//! [`crate::pinning`]), and may have O_DIRECT, which is removed.

use std::ffi::{c_int, c_uint, c_void, CStr};

use coldframe_live::own_descriptors;

use crate::next::{next, none};
use crate::pinning::{given, is_direct};
use crate::{direct, sys};

/// A descriptor that comes from elsewhere, perhaps with O_DIRECT.
pub fn received(descriptor: c_int) -> c_int {
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
    let mut any_direct = false;
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
            if let Some(number) = number.filter(|number| !own_descriptors::has(*number)) {
                direct::remove(number);
                any_direct |= is_direct(number);
            }
        }
    }
    // SAFETY: it was opened here.
    unsafe { sys::call(libc::SYS_close, [folder as usize, 0, 0, 0, 0, 0]) };
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
    for i in 0..usize::try_from(result).unwrap_or(0) {
        // SAFETY: that many have been received.
        unsafe { in_message(&(*messages.add(i)).msg_hdr) };
    }
    result
}
