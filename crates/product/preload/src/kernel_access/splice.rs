//! vmsplice. The pipe refers to the pages that the program gives it, so the reader finds there what the program writes
//! later. Such pages stay in their frames until the pipe is empty: a page that left RAM would come back in another
//! frame. Where there is no room for them in RAM, the pipe gets a copy.
//!
//! Not covered: a pipe whose last descriptor in this process is closed before it is empty.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use coldframe_live::PAGE;
use libc::iovec;

use crate::managed::memory;
use crate::managed::pins::{self, Pinned, Why};
use crate::managed::ranges::pass;
use crate::pointers::values;
use crate::say::once;
use crate::sys;

/// The most pages that are given with one call: the slots of an ordinary pipe.
const PAGES: usize = 16;

/// Unpins the pages of pipes that are empty, or closed.
fn sweep() {
    let mut empty = None;
    for owner in pins::owners(Why::Pipe) {
        let (pipe, mut bytes) = (owner >> 32, 0);
        if empty != Some(pipe) {
            // SAFETY: the kernel writes a number.
            let answer = unsafe {
                sys::call(libc::SYS_ioctl, [pipe, libc::FIONREAD as usize, &raw mut bytes as usize, 0, 0, 0])
            };
            if answer == 0 && bytes != 0i32 {
                continue;
            }
            empty = Some(pipe);
        }
        pins::release((Why::Pipe, owner));
    }
}

/// The first parts of a vector, at most `len` bytes.
fn first(parts: &[iovec], mut len: usize) -> ([iovec; PAGES], usize) {
    let mut some = [iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PAGES];
    let mut count = 0;
    for part in parts.iter().filter(|part| part.iov_len > 0) {
        if count == PAGES || len == 0 {
            break;
        }
        let at = part.iov_base as usize;
        let take = part.iov_len.min(len).min(PAGES * PAGE - at % PAGE);
        some[count] = iovec { iov_base: part.iov_base, iov_len: take };
        (count, len) = (count + 1, len - take);
        if take < part.iov_len {
            break;
        }
    }
    (some, count)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn vmsplice(pipe: c_int, parts: *const iovec, count: usize, flags: c_uint) -> isize {
    let kernel = |parts: *const iovec, count: usize| {
        pass(libc::SYS_vmsplice, [pipe as usize, parts as usize, count, flags as usize, 0, 0])
    };
    if !memory::ready() || count > libc::UIO_MAXIOV as usize {
        return kernel(parts, count);
    }
    let Some(all) = values(parts, count) else { return kernel(parts, count) };
    if !all.iter().any(|part| memory::meets(part.iov_base as usize, part.iov_len)) || !is_written(pipe) {
        return kernel(parts, count);
    }
    sweep();
    // The kernel, too, takes no more than fits.
    let (parts, count) = first(&all, PAGES * PAGE);
    let pinned: Result<Vec<_>, _> =
        parts[..count].iter().map(|part| Pinned::new(part.iov_base as usize, part.iov_len)).collect();
    let Ok(pinned) = pinned else {
        once!("vmsplice copies: more pages than may stay in RAM");
        const NOWAIT: usize = 8;
        let how = if flags & libc::SPLICE_F_NONBLOCK != 0 { NOWAIT } else { 0 };
        return pass(libc::SYS_pwritev2, [pipe as usize, parts.as_ptr() as usize, count, usize::MAX, usize::MAX, how]);
    };
    let given = kernel(parts.as_ptr(), count);
    if given > 0 {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for pinned in pinned {
            pinned.belong_to((Why::Pipe, (pipe as usize) << 32 | COUNT.fetch_add(1, Relaxed) as usize));
        }
    }
    given
}

/// Whether it is the end of a pipe that is written to.
fn is_written(pipe: c_int) -> bool {
    // SAFETY: reads flags.
    let flags = unsafe { sys::call(libc::SYS_fcntl, [pipe as usize, libc::F_GETFL as usize, 0, 0, 0, 0]) };
    flags >= 0 && flags as c_int & libc::O_ACCMODE != libc::O_RDONLY
}
