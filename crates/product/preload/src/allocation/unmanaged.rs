//! The C library's own heap, for its own allocations and for those made before this library has started. It never
//! touches managed memory, and no signal handler runs in a thread that holds one of its locks, so such a thread never
//! waits for a page. A fork takes these locks while the pager stands still. It does not use the names that this
//! library replaces, and an allocator that the user has preloaded does not replace its functions.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::managed::memory;
use crate::symbols::libc_symbols::Symbol;
use crate::symbols::next::call_at;
use crate::sys;

/// The address of a byte of the C library (since version 2.32): whether the process has only one thread, which either
/// forks or is in the heap. 0: unknown.
static ALONE: AtomicUsize = AtomicUsize::new(0);

/// Runs `work` without signal handlers, if another thread may fork.
fn unbroken<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the C library's variable of that name, if it has one.
    let alone = || unsafe { (ALONE.load(Relaxed) as *const bool).as_ref() }.is_some_and(|alone| *alone);
    match !memory::ready() || alone() {
        true => work(),
        false => sys::undisturbed(work),
    }
}

macro_rules! own {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[allow(non_upper_case_globals)] // named as what they are the addresses of
        mod addresses {
            $(pub static $name: super::Symbol = super::Symbol::own($symbol);)*
        }

        pub fn find() {
            $(addresses::$name.address();)*
            ALONE.store(Symbol::own(c"__libc_single_threaded").address(), Relaxed);
        }

        $(
            /// # Safety
            /// `block` is one of this heap, or null.
            pub unsafe fn $name($($argument: $type),*) -> $result {
                match addresses::$name.address() {
                    // This is not the C library that `caller::known` checks for.
                    0 => std::process::abort(),
                    // SAFETY: the C library's function of that name has that type; the caller answers for the block.
                    own => unbroken(|| unsafe { call_at!(own, ($($argument),*)) }),
                }
            }
        )*
    };
}

own! {
    malloc = c"__libc_malloc" (size: usize) -> *mut c_void;
    calloc = c"__libc_calloc" (count: usize, size: usize) -> *mut c_void;
    memalign = c"__libc_memalign" (align: usize, size: usize) -> *mut c_void;
    realloc = c"__libc_realloc" (block: *mut c_void, size: usize) -> *mut c_void;
    free = c"__libc_free" (block: *mut c_void) -> ();
    usable_size = c"malloc_usable_size" (block: *mut c_void) -> usize;
}
