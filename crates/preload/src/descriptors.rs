//! Closing. A program that closes every descriptor, as daemons do, must not close the pager's.

use std::ffi::{c_int, c_uint};

use crate::shim::with_caller;
use crate::{caller, memory, sys};

fn refused() -> c_int {
    sys::set_errno(libc::EBADF);
    -1
}

with_caller!(close(1) => close_from);
/// close. What this library closes is its own.
pub unsafe extern "C" fn close_from(descriptor: c_int, caller: usize) -> c_int {
    if memory::keeps(descriptor) && !caller::is_own(caller) {
        return refused();
    }
    sys::answer(sys::call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0])) as c_int
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let range = |first: c_uint, last: c_uint| {
        sys::answer(sys::call(libc::SYS_close_range, [first as usize, last as usize, flags as usize, 0, 0, 0])) as c_int
    };
    if first > last {
        return range(first, last); // the kernel has the word for it
    }
    let mut from = first;
    for kept in memory::kept().into_iter().filter_map(|d| c_uint::try_from(d).ok()) {
        if kept < from || kept > last {
            continue;
        }
        if from < kept && range(from, kept - 1) < 0 {
            return -1;
        }
        from = kept + 1;
    }
    if from > last {
        return 0;
    }
    range(from, last)
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn closefrom(first: c_int) {
    close_range(first.max(0) as c_uint, c_uint::MAX, 0);
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if memory::keeps(to) && from != to {
        return refused();
    }
    // aarch64 has no dup2; dup3 refuses equal descriptors, dup2 answers whether it is open.
    if from == to {
        let open = sys::answer(sys::call(libc::SYS_fcntl, [from as usize, libc::F_GETFD as usize, 0, 0, 0, 0]));
        return if open < 0 { -1 } else { to };
    }
    dup3(from, to, 0)
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    if memory::keeps(to) {
        return refused();
    }
    sys::answer(sys::call(libc::SYS_dup3, [from as usize, to as usize, flags as usize, 0, 0, 0])) as c_int
}
