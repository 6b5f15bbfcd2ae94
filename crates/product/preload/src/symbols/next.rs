//! The functions that the program would call without this library. They are the C library's, which handles thread
//! cancellation in them. A library between this library and the C library is called, too.

use std::ffi::{c_int, CStr};

use crate::symbols::libc_symbols::Symbol;
use crate::sys;

macro_rules! functions {
    ($($constant:ident = $name:literal),* $(,)?) => {
        $(pub static $constant: Symbol = Symbol::new($name, look);)*
        static ALL: &[&Symbol] = &[$(&$constant),*];
    };
}

functions! {
    OPEN = c"open",
    OPENAT = c"openat",
    OPEN_2 = c"__open_2",
    OPENAT_2 = c"__openat_2",
    OPEN_BY_HANDLE_AT = c"open_by_handle_at",
    CLOSE = c"close",
    DUP = c"dup",
    DUP2 = c"dup2",
    DUP3 = c"dup3",
    FCNTL = c"fcntl",
    MUTEX_INIT = c"pthread_mutex_init",
    MUTEX_DESTROY = c"pthread_mutex_destroy",
    CREATE = c"pthread_create",
    FORK = c"fork",
    FORK_ALONE = c"_Fork",
    CLONE = c"clone",
    DLMOPEN = c"dlmopen",
    FOPEN = c"fopen",
    FREOPEN = c"freopen",
    TMPFILE = c"tmpfile",
    MKSTEMP = c"mkstemp",
    MKOSTEMP = c"mkostemp",
    MKSTEMPS = c"mkstemps",
    MKOSTEMPS = c"mkostemps",
    PIDFD_GETFD = c"pidfd_getfd",
    RECVMSG = c"recvmsg",
    RECVMMSG = c"recvmmsg",
    WAIT = c"wait",
    WAITPID = c"waitpid",
    WAIT3 = c"wait3",
    WAIT4 = c"wait4",
    WAITID = c"waitid",
}

/// Finds all of them. Later calls may come from a signal handler, where a lookup is not allowed.
pub fn find() {
    for next in ALL {
        next.address();
    }
}

/// Looks a name up. Before version 2.34 the C library had several parts, and one may be loaded later.
pub fn look(name: &CStr) -> usize {
    // SAFETY: looks a name up.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}

pub fn none() -> c_int {
    sys::set_errno(libc::ENOSYS);
    -1
}

/// `call_at!(address, (a, b))`: the result of the function there, which takes what it is given and answers what is
/// expected of it.
macro_rules! call_at {
    ($address:expr, ($($argument:expr),*)) => {
        std::mem::transmute::<usize, unsafe extern "C" fn($(crate::symbols::next::call_at!(@ $argument)),*) -> _>(
            $address,
        )($($argument),*)
    };
    (@ $argument:expr) => { _ };
}

/// `next!(OPEN, (a), otherwise)`: the function's result, or `otherwise` if there is no such function.
macro_rules! next {
    ($which:ident, ($($argument:expr),*), $otherwise:expr) => {
        match crate::symbols::next::$which.address() {
            0 => $otherwise,
            // SAFETY: the C library's function of that name has the type of the function that replaces it, whose
            // arguments these are; where it is variadic, they are passed alike on the machines that this library is
            // for.
            address => unsafe { crate::symbols::next::call_at!(address, ($($argument),*)) },
        }
    };
}

pub(crate) use {call_at, next};
