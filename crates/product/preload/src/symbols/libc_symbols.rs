//! Finds the C library's own functions, whatever is loaded before it. An allocator that the user preloads replaces
//! even `__libc_malloc`, and dlsym cannot be used inside malloc. So the C library's own table of symbols is read.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use coldframe_live::calls::symbol_in;

use crate::symbols::caller;

/// Where a function of the C library is; `None`: it has none of that name.
pub fn place(name: &CStr) -> Option<Range<usize>> {
    match caller::libc_base() {
        0 => None,
        // SAFETY: the C library is there, and stays.
        base => unsafe { symbol_in(base, name) },
    }
}

fn look(name: &CStr) -> usize {
    place(name).map_or(0, |place| place.start)
}

/// Whether the entries of its functions jump to this library (`entries.rs`).
pub static ENTRIES_TAKEN: AtomicBool = AtomicBool::new(false);

/// What has a name, and how its address is found. It is looked up at its first use.
pub struct Symbol {
    name: &'static CStr,
    look: fn(&CStr) -> usize,
    address: AtomicUsize,
}

impl Symbol {
    pub const fn new(name: &'static CStr, look: fn(&CStr) -> usize) -> Symbol {
        Symbol { name, look, address: AtomicUsize::new(0) }
    }

    /// A function or a variable of the C library.
    pub const fn own(name: &'static CStr) -> Symbol {
        Symbol::new(name, look)
    }

    /// Its address; 0: there is none, or not yet.
    pub fn address(&self) -> usize {
        match self.address.load(Relaxed) {
            0 => {
                let address = (self.look)(self.name);
                self.address.store(address, Relaxed);
                address
            }
            address => address,
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
            assert_eq!(Symbol::own(name).address(), theirs, "{name:?}");
        }
        assert_eq!(Symbol::own(c"no_such_function_anywhere").address(), 0);
    }
}
