//! Finds the C library's own functions, whatever is loaded before it. An allocator that the user preloads replaces
//! even `__libc_malloc`, and dlsym cannot be used inside malloc. So the C library's own table of symbols is read.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::calls::symbol_in;

use crate::caller;

/// The address of a function of the C library; 0: it has none of that name.
fn look(name: &CStr) -> usize {
    match caller::libc_base() {
        0 => 0,
        // SAFETY: the C library lies there, and stays.
        base => unsafe { symbol_in(base, name) }.unwrap_or(0),
    }
}

/// A function of the C library. It is looked up at its first use.
pub struct Own(&'static CStr, AtomicUsize);

impl Own {
    /// By name.
    pub const fn new(name: &'static CStr) -> Own {
        Own(name, AtomicUsize::new(0))
    }

    /// Its address; 0: there is none.
    pub fn address(&self) -> usize {
        match self.1.load(Relaxed) {
            0 => {
                let found = look(self.0);
                self.1.store(found, Relaxed);
                found
            }
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_says_is_what_the_linker_says() {
        for name in [c"malloc", c"free", c"__libc_memalign", c"getpid", c"malloc_usable_size"] {
            // SAFETY: looks a name up.
            let theirs = unsafe {
                let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
                libc::dlsym(library, name.as_ptr()) as usize
            };
            assert_eq!(Own::new(name).address(), theirs, "{name:?}");
        }
        assert_eq!(Own::new(c"no_such_function_anywhere").address(), 0);
    }
}
