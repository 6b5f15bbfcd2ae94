//! The C library's own heap, for its own allocations and for those made before this library has started. It never
//! touches managed memory, so a thread that holds one of its locks never waits for a page. It does not use the names
//! that this library replaces, and an allocator that the user has preloaded does not replace its functions.

use std::ffi::c_void;

use crate::libc_symbols::Own;

macro_rules! own {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[allow(non_upper_case_globals)] // named as what they are the addresses of
        mod addresses {
            $(pub static $name: super::Own = super::Own::new($symbol);)*
        }

        /// Finds them, before a signal handler or a child needs them.
        pub fn find() {
            $(addresses::$name.address();)*
        }

        $(
            /// # Safety
            /// `block` is one of this heap, or null.
            pub unsafe fn $name($($argument: $type),*) -> $result {
                match addresses::$name.address() {
                    // This is not the C library that `caller::known` checks for.
                    0 => std::process::abort(),
                    // SAFETY: the C library's function of that name has that type; the caller answers for the block.
                    own => unsafe {
                        std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(own)($($argument),*)
                    },
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
