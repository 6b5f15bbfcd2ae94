//! Processors on which threads may run. The pager keeps a thread whose faults come fast on the processor of its
//! handler (`coldframe_live`'s `follow.rs`), and the program must not see this. Before the program reads or sets the
//! processors of a thread, the pager's restriction is removed.
//!
//! Not covered: queries from another process, and `/proc/self/status`.

use std::ffi::{c_int, c_long, c_void};

use crate::memory;
use crate::next::next;

type OfThread = unsafe extern "C" fn(libc::pid_t, usize, *mut c_void) -> c_int;
type OfPosix = unsafe extern "C" fn(libc::pthread_t, usize, *mut c_void) -> c_int;
type Count = unsafe extern "C" fn() -> c_int;
type Value = unsafe extern "C" fn(c_int) -> c_long;

fn fails() -> c_int {
    crate::sys::set_errno(libc::ENOSYS);
    -1
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sched_getaffinity(process: libc::pid_t, bytes: usize, set: *mut c_void) -> c_int {
    memory::let_go();
    next!(SCHED_GETAFFINITY, OfThread, (process, bytes, set), fails())
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sched_setaffinity(process: libc::pid_t, bytes: usize, set: *mut c_void) -> c_int {
    memory::let_go();
    next!(SCHED_SETAFFINITY, OfThread, (process, bytes, set), fails())
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_getaffinity_np(thread: libc::pthread_t, bytes: usize, set: *mut c_void) -> c_int {
    memory::let_go();
    next!(PTHREAD_GETAFFINITY, OfPosix, (thread, bytes, set), libc::ENOSYS)
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_setaffinity_np(thread: libc::pthread_t, bytes: usize, set: *mut c_void) -> c_int {
    memory::let_go();
    next!(PTHREAD_SETAFFINITY, OfPosix, (thread, bytes, set), libc::ENOSYS)
}

/// Replaces the C library's function, which asks where the thread may run.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn get_nprocs() -> c_int {
    memory::let_go();
    next!(GET_NPROCS, Count, (), 1)
}

/// Replaces the C library's function, which may ask where the thread may run.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    if name == libc::_SC_NPROCESSORS_ONLN {
        memory::let_go();
    }
    next!(SYSCONF, Value, (name), fails().into())
}
