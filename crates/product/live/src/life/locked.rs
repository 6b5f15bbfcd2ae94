//! Replaces `mlockall`. The kernel's `mlockall` would bring in every managed page, one after the other, and all
//! tables, and would wait for ever for pages that it cannot bring in. So this library has the C library's function of
//! that name. `mlock` of a range, and `MCL_ONFAULT`, which locks only pages in RAM, are unchanged: managed pages
//! still leave RAM.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::process;
use crate::sys::{self, fatal};
use crate::{LiveError, PAGE};

static NEVER: AtomicBool = AtomicBool::new(false);
static SAID: AtomicBool = AtomicBool::new(false);

/// From now on `mlockall` is always refused: all of the program's memory is managed.
pub fn never() {
    NEVER.store(true, Relaxed);
}

/// Replaces the C library's function. Without `MCL_ONFAULT` it returns ENOMEM while a pager lives.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    if NEVER.load(Relaxed) || flags & libc::MCL_ONFAULT == 0 && process::any() {
        if !SAID.swap(true, Relaxed) {
            fatal::say("mlockall is refused, since the program is to run in less memory than it has");
        }
        return failed(libc::ENOMEM);
    }
    // SAFETY: no pointers.
    match unsafe { sys::call(libc::SYS_mlockall, [flags as usize, 0, 0, 0, 0, 0]) } {
        Ok(_) => 0,
        Err(error) => failed(error.raw_os_error()),
    }
}

fn failed(error: c_int) -> c_int {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Refuses to start if all new memory is in RAM at once (`MCL_FUTURE`): the tables have the size of the largest
/// possible memory.
pub(crate) fn refuse_locked() -> Result<(), LiveError> {
    match sys::with_memory(PAGE, sys::is_there) {
        Ok(false) => Ok(()),
        Ok(true) => Err(LiveError::Missing {
            feature: "memory that is not locked",
            reason: "this process keeps all memory that it maps in RAM (mlockall with MCL_FUTURE)".to_string(),
            remedy: "call munlockall first, or mlockall with MCL_ONFAULT",
        }),
        Err(error) => Err(LiveError::os("a page to look at", error)),
    }
}
