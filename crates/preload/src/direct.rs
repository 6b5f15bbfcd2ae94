//! Files opened with O_DIRECT. A device that writes straight into a managed page could do so while the page leaves RAM, and its bytes
//! would be lost. Through the page cache they are copied by the kernel, which faults as any other access does: so the flag is taken
//! off. What the program reads and writes is the same.

use std::ffi::{c_char, c_int, c_uint};

use crate::say::{once, Once};
use crate::shim::with_caller;
use crate::{caller, memory, sys};

/// The flags without O_DIRECT, unless the file is this library's own.
pub fn buffered(flags: c_int, caller: usize) -> c_int {
    if flags & libc::O_DIRECT == 0 || !memory::ready() || caller::is_own(caller) {
        return flags;
    }
    once(Once::Direct, format_args!("files that the program opens with O_DIRECT go through the page cache"));
    flags & !libc::O_DIRECT
}

with_caller!(open(3) => open_from);
with_caller!(open64(3) => open_from);
unsafe extern "C" fn open_from(path: *const c_char, flags: c_int, mode: c_uint, caller: usize) -> c_int {
    openat_from(libc::AT_FDCWD, path, flags, mode, caller)
}

with_caller!(openat(4) => openat_from);
with_caller!(openat64(4) => openat_from);
unsafe extern "C" fn openat_from(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
    caller: usize,
) -> c_int {
    let flags = buffered(flags, caller);
    sys::answer(sys::call(libc::SYS_openat, [folder as usize, path as usize, flags as usize, mode as usize, 0, 0]))
        as c_int
}
