//! `process_vm_writev` to this process itself. The kernel first takes a batch of frames and then copies. If a page
//! left RAM in between, the written bytes would be lost. So its pages are pinned, a few at a time, until they are
//! written.
//!
//! Not covered: the pages of another paged process, which only that process can pin. A debugger's writes into such a
//! process may be lost. Reading is safe: the bytes are the page's at some moment of the call.

use std::ffi::c_int;

use coldframe_live::{LiveError, PAGE};
use libc::iovec;

use crate::parts::pass;
use crate::pins::Pinned;
use crate::shim::exported;
use crate::{memory, sys};

/// Pages pinned at a time; few, since there may be little RAM.
const PAGES: usize = 8;
/// Parts of the program's own side in one call to the kernel.
const PARTS: usize = 16;
/// The most vectors that the kernel takes (UIO_MAXIOV).
const VECTORS: usize = 1024;

exported! {
    process_vm_writev(process: c_int, from: *const iovec, froms: usize, to: *const iovec, tos: usize, flags: usize)
        -> isize => write(process, (from, froms), (to, tos), flags);
}

/// The same, for `syscall`.
pub unsafe fn write(process: c_int, from: (*const iovec, usize), to: (*const iovec, usize), flags: usize) -> isize {
    let a = [process as usize, from.0 as usize, from.1, to.0 as usize, to.1, flags];
    let known = flags == 0 && from.1 <= VECTORS && to.1 <= VECTORS && !from.0.is_null() && !to.0.is_null();
    if !known || !memory::ready() || !is_own(process) {
        return pass(libc::SYS_process_vm_writev, a);
    }
    // SAFETY: the caller's vectors, which the kernel would read as well.
    let (from, to) = unsafe { (std::slice::from_raw_parts(from.0, from.1), std::slice::from_raw_parts(to.0, to.1)) };
    if !to.iter().any(|part| memory::meets(part.iov_base as usize, part.iov_len)) {
        return pass(libc::SYS_process_vm_writev, a);
    }
    sys::answer(write_pinned(process as usize, from, to))
}

/// Whether the number is that of this process or of one of its threads.
fn is_own(process: c_int) -> bool {
    // SAFETY: no pointers, and no signal is sent.
    unsafe {
        let own = sys::call(libc::SYS_getpid, [0; 6]);
        process as isize == own || sys::call(libc::SYS_tgkill, [own as usize, process as usize, 0, 0, 0, 0]) == 0
    }
}

/// The number of bytes written, or, if it is 0, a negative error number.
fn write_pinned(process: usize, from: &[iovec], to: &[iovec]) -> isize {
    let mut done = 0;
    for part in to {
        let (start, mut at) = (part.iov_base as usize, 0);
        while at < part.iov_len {
            let wrote = piece(process, from, done, start + at, part.iov_len - at);
            match wrote {
                ..=0 if done == 0 => return wrote,
                ..=0 => return done as isize,
                wrote => (done, at) = (done + wrote as usize, at + wrote as usize),
            }
        }
    }
    done as isize
}

/// Writes some of `len` bytes at `to`, from `from` after its first `skip` bytes.
fn piece(process: usize, from: &[iovec], skip: usize, to: usize, len: usize) -> isize {
    let managed = memory::meets(to, len);
    let mut len = if managed { len.min(PAGES * PAGE - to % PAGE) } else { len };
    let mut pinned = Pinned::new(to, len);
    if managed && pinned.is_err() {
        len = len.min(PAGE - to % PAGE);
        pinned = Pinned::new(to, len);
    }
    match pinned {
        // Unmanaged memory: the kernel returns the result.
        Ok(_) | Err(LiveError::Range { .. }) => {
            let (parts, count) = parts(from, skip, len);
            let there = iovec { iov_base: to as *mut _, iov_len: len };
            let a = [process, parts.as_ptr() as usize, count, &raw const there as usize, 1, 0];
            // SAFETY: the caller's call, in part; the pages that it writes to stay where they are.
            unsafe { sys::call(libc::SYS_process_vm_writev, a) }
        }
        Err(_) => -(libc::ENOMEM as isize),
    }
}

/// The first parts of `from` after `skip` bytes, at most `len` bytes; and the number of parts.
fn parts(from: &[iovec], mut skip: usize, mut len: usize) -> ([iovec; PARTS], usize) {
    let mut parts = [iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS];
    let mut count = 0;
    for part in from {
        let passed = skip.min(part.iov_len);
        skip -= passed;
        let take = (part.iov_len - passed).min(len);
        if take > 0 && count < PARTS {
            parts[count] = iovec { iov_base: (part.iov_base as usize + passed) as *mut _, iov_len: take };
            (count, len) = (count + 1, len - take);
        }
    }
    (parts, count)
}
