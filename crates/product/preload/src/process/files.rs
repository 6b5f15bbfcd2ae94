//! The C library's open files during a fork. In the child, the C library resets the lock of each file before a pager
//! exists. If the program's own allocator made the files (an executable may contain one), they are in managed memory
//! and must be in RAM then.

use crate::managed::memory;
use crate::managed::pins::{self, Pinned, Why};
use crate::symbols::libc_symbols::Symbol;

/// Offsets in `struct _IO_FILE`, which has not changed since it was made public: the next file, the lock; and the
/// lock's length with its surroundings.
const CHAIN: usize = 104;
const LOCK: usize = 136;
const LEN: usize = 1024;

static LIST: Symbol = Symbol::own(c"_IO_list_all");

/// Finds the list. Call it where lookups are allowed.
pub fn find() {
    LIST.address();
}

/// Pins the open files before a fork. The list's lock is held. If a file cannot be pinned, the pager's own message
/// says so.
///
/// # Safety
/// The lock of the list is held.
pub unsafe fn pin() {
    let list = LIST.address();
    // SAFETY: the list is locked, so its files stay; they have this layout.
    let word = |at: usize| unsafe { *(at as *const usize) };
    let mut file = if list == 0 { 0 } else { word(list) };
    while file != 0 {
        for at in [file, word(file + LOCK)] {
            if memory::manages(at) {
                if let Ok(pinned) = Pinned::new(at, if at == file { LEN } else { 1 }) {
                    pinned.belong_to((Why::File, at));
                }
            }
        }
        file = word(file + CHAIN);
    }
}

pub fn release() {
    pins::release_all(Why::File);
}
