//! Swaps to an open file, and stops: by its descriptor, since a path may lead to another file from one call to the next.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The priority of what is used before all other swap, the highest (swapon(2)).
pub const PRIORITY_MAX: i64 = 0x7fff;

/// The path of an open file that leads to this very file, wherever its name leads by now (`proc_pid_fd(5)`).
fn path(file: impl AsFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())).expect("no byte of it is zero")
}

fn done(answer: i32) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Swaps to a file or device whose first page is the head of a swap area, before all other swap.
pub fn swap_on(file: impl AsFd) -> io::Result<()> {
    let path = path(file);
    // SAFETY: the path lives through the call.
    done(unsafe { libc::swapon(path.as_ptr(), 0x8000 | PRIORITY_MAX as i32) })
}

/// Ends that; its pages are loaded into RAM first.
pub fn swap_off(file: impl AsFd) -> io::Result<()> {
    let path = path(file);
    // SAFETY: as above.
    done(unsafe { libc::swapoff(path.as_ptr()) })
}
