//! The functions that the program would call without this library. They are the C library's, which handles thread
//! cancellation in them. A library between this library and the C library is called, too.

use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sys;

/// One function, by name.
pub struct Next {
    name: &'static CStr,
    found: AtomicUsize,
}

macro_rules! functions {
    ($($constant:ident = $name:literal),* $(,)?) => {
        $(pub static $constant: Next = Next { name: $name, found: AtomicUsize::new(0) };)*
        static ALL: &[&Next] = &[$(&$constant),*];
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
    EXECVE = c"execve",
    EXECVPE = c"execvpe",
    POSIX_SPAWN = c"posix_spawn",
    POSIX_SPAWNP = c"posix_spawnp",
    SBRK = c"sbrk",
    BRK = c"brk",
    FREE = c"free",
    REALLOC = c"realloc",
    USABLE_SIZE = c"malloc_usable_size",
    FORK = c"fork",
    FORK_ALONE = c"_Fork",
    CLONE = c"clone",
    WAIT4 = c"wait4",
    WAITID = c"waitid",
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
}

/// Finds all of them. Later calls may come from a signal handler, where a lookup is not allowed.
pub fn find() {
    for next in ALL {
        next.look();
    }
}

impl Next {
    /// Its address; 0: there is none.
    pub fn address(&self) -> usize {
        match self.found.load(Relaxed) {
            0 => self.look(),
            found => found,
        }
    }

    /// Looks it up before the start, or in a part of the C library that was loaded later (before version 2.34 it had
    /// several).
    #[cold]
    fn look(&self) -> usize {
        // SAFETY: looks a name up.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.found.store(found, Relaxed);
        found
    }
}

/// The answer where there is no such function.
pub fn none() -> c_int {
    sys::set_errno(libc::ENOSYS);
    -1
}

/// `next!(OPEN, extern "C" fn(A) -> B, (a), otherwise)`: the function's result, or `otherwise` if there is no such
/// function.
macro_rules! next {
    ($which:ident, $type:ty, ($($argument:expr),*), $otherwise:expr) => {
        match crate::next::$which.address() {
            0 => $otherwise,
            // SAFETY: the C library's function of that name has that type; where it is variadic, its arguments are passed
            // alike on the machines that this library is for.
            found => unsafe { std::mem::transmute::<usize, $type>(found)($($argument),*) },
        }
    };
}

pub(crate) use next;
