//! Waits for any child of any kind (`__WALL`), as a tracer makes them. The pager's process is such a child, and lives
//! as long as the program: a tracer that waits until it has no child would wait for ever. So the flag is taken away,
//! unless the program has made a child of that kind itself (one whose end sends another signal than SIGCHLD, or none).
//! A tracer loses nothing: the kernel lets it wait for what it traces without the flag (`eligible_child` in
//! `kernel/exit.c`).
//!
//! Not covered: a wait with `__WCLONE` alone, which is for children of that kind only; and children of that kind that
//! the program has from the program before it.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::next::{next, none};
use crate::shim::exported;

/// The program has made children of that kind.
static OTHERS: AtomicBool = AtomicBool::new(false);

/// The program makes a child with these flags, whose end sends `signal`.
pub fn makes(flags: usize, signal: usize) {
    if flags & libc::CLONE_THREAD as usize == 0 && signal != libc::SIGCHLD as usize {
        OTHERS.store(true, Relaxed);
    }
}

/// In a forked child, which has none yet.
pub fn start() {
    OTHERS.store(false, Relaxed);
}

/// The options of a wait for one child, or for any of several.
pub fn options(any: bool, options: c_int) -> c_int {
    match any && options & libc::__WALL != 0 && !OTHERS.load(Relaxed) {
        true => options & !(libc::__WALL | libc::__WCLONE),
        false => options,
    }
}

/// The same of waitid.
pub fn options_by_id(kind: c_uint, flags: c_int) -> c_int {
    options(kind == libc::P_ALL || kind == libc::P_PGID, flags)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn wait4(process: c_int, status: *mut c_int, flags: c_int, usage: *mut c_void) -> c_int {
    next!(WAIT4, (process, status, options(process <= 0, flags), usage), none())
}

exported! {
    wait3(status: *mut c_int, flags: c_int, usage: *mut c_void) -> c_int => wait4(-1, status, flags, usage);
    waitpid(process: c_int, status: *mut c_int, flags: c_int) -> c_int => wait4(process, status, flags, null_mut());
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn waitid(kind: c_uint, id: c_uint, info: *mut c_void, flags: c_int) -> c_int {
    next!(WAITID, (kind, id, info, options_by_id(kind, flags)), none())
}
