//! `process_vm_writev` and `process_vm_readv` to this process itself. The kernel first takes a batch of up to 1,024
//! frames and then copies. If a page left RAM in between, the written bytes would be lost; and there may be fewer
//! frames. So a call takes a few pages at a time, and those that it writes to are pinned during the call.
//!
//! Not covered: the pages of another paged process, which only that process can pin. A debugger's writes into such a
//! process may be lost. Reading is safe: the bytes are the page's at some moment of the call.

use std::ffi::c_int;

use coldframe_live::{LiveError, PAGE};
use libc::iovec;

use crate::managed::memory;
use crate::managed::pins::Pinned;
use crate::managed::ranges::pass;
use crate::pointers::values;
use crate::symbols::shim::exported;
use crate::sys;

/// Pages pinned at a time; few, since there may be little RAM.
const PAGES: usize = 8;
/// Parts of the program's own side in one call to the kernel.
const PARTS: usize = 16;
/// The most vectors that the kernel takes (UIO_MAXIOV).
const VECTORS: usize = 1024;

exported! {
    process_vm_writev(process: c_int, from: *const iovec, froms: usize, to: *const iovec, tos: usize, flags: usize)
        -> isize => copy(libc::SYS_process_vm_writev, process, (from, froms), (to, tos), flags);
    process_vm_readv(process: c_int, to: *const iovec, tos: usize, from: *const iovec, froms: usize, flags: usize)
        -> isize => copy(libc::SYS_process_vm_readv, process, (to, tos), (from, froms), flags);
}

/// The vectors of one side.
type Side = (*const iovec, usize);

/// Either call, for `syscall`.
pub unsafe fn copy(call: i64, process: c_int, near: Side, far: Side, flags: usize) -> isize {
    let a = [process as usize, near.0 as usize, near.1, far.0 as usize, far.1, flags];
    let known = flags == 0 && near.1 <= VECTORS && far.1 <= VECTORS;
    if !known || !memory::ready() || !is_own(process) {
        return pass(call, a);
    }
    let (Some(near), Some(far)) = (values(near.0, near.1), values(far.0, far.1)) else { return pass(call, a) };
    if !far.iter().any(|part| memory::meets(part.iov_base as usize, part.iov_len)) {
        return pass(call, a);
    }
    sys::answer(copy_in_pieces(call, process as usize, &near, &far))
}

/// Whether the number is that of this process or of one of its threads.
fn is_own(process: c_int) -> bool {
    // SAFETY: no pointers, and no signal is sent.
    unsafe {
        let own = sys::call(libc::SYS_getpid, [0; 6]);
        process as isize == own || sys::call(libc::SYS_tgkill, [own as usize, process as usize, 0, 0, 0, 0]) == 0
    }
}

/// The number of bytes copied, or, if it is 0, a negative error number.
fn copy_in_pieces(call: i64, process: usize, near: &[iovec], far: &[iovec]) -> isize {
    let mut done = 0;
    for part in far {
        let (start, mut at) = (part.iov_base as usize, 0);
        while at < part.iov_len {
            let copied = piece(call, process, near, done, start + at, part.iov_len - at);
            match copied {
                ..=0 if done == 0 => return copied,
                ..=0 => return done as isize,
                copied => (done, at) = (done + copied as usize, at + copied as usize),
            }
        }
    }
    done as isize
}

/// Copies some of `len` bytes at `far`; the other side is `near` after its first `skip` bytes.
fn piece(call: i64, process: usize, near: &[iovec], skip: usize, far: usize, len: usize) -> isize {
    let managed = memory::meets(far, len);
    let mut len = if managed { len.min(PAGES * PAGE - far % PAGE) } else { len };
    let writes = managed && call == libc::SYS_process_vm_writev;
    let mut pinned = writes.then(|| Pinned::new(far, len));
    if let Some(Err(_)) = pinned {
        len = len.min(PAGE - far % PAGE);
        pinned = Some(Pinned::new(far, len));
    }
    match pinned {
        // Unmanaged memory: the kernel returns the result.
        None | Some(Ok(_) | Err(LiveError::Range { .. })) => {
            let (parts, count) = parts(near, skip, len);
            let there = iovec { iov_base: far as *mut _, iov_len: len };
            let a = [process, parts.as_ptr() as usize, count, &raw const there as usize, 1, 0];
            // SAFETY: the caller's call, in part; the pages that it writes to stay where they are.
            unsafe { sys::call(call, a) }
        }
        Some(Err(_)) => -(libc::ENOMEM as isize),
    }
}

/// The first parts of `near` after `skip` bytes, at most `len` bytes; and the number of parts.
fn parts(near: &[iovec], mut skip: usize, mut len: usize) -> ([iovec; PARTS], usize) {
    let mut parts = [iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS];
    let mut count = 0;
    for part in near {
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
