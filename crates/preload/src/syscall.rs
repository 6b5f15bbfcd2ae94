//! The C library's `syscall`, for programs that go round its wrappers. Numbers that concern managed memory or kept descriptors are
//! done as the functions would do them; a userfaultfd of the program's own is refused, since a range can belong to one only.

use std::ffi::{c_int, c_long, c_uint, c_void};

use crate::say::{once, Once};
use crate::shim::with_caller;
use crate::{caller, descriptors, direct, mapping, memory, sys};

with_caller!(syscall(7) => syscall_from);
#[allow(clippy::too_many_arguments)] // the ABI's
unsafe extern "C" fn syscall_from(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    caller: usize,
) -> c_long {
    let pass = || sys::answer(sys::call(number, [a, b, c, d, e, f])) as c_long;
    if !memory::ready() || caller::is_own(caller) {
        return pass();
    }
    let address = a as *mut c_void;
    match number {
        libc::SYS_userfaultfd => {
            once(Once::Userfaultfd, format_args!("the program wants a userfaultfd of its own and does not get it"));
            sys::set_errno(libc::EPERM);
            -1
        }
        libc::SYS_mmap => {
            mapping::mmap_from(address, b, c as c_int, d as c_int, e as c_int, f as i64, caller) as c_long
        }
        libc::SYS_munmap => mapping::munmap(address, b).into(),
        libc::SYS_mremap => mapping::mremap(address, b, c, d as c_int, e as *mut c_void) as c_long,
        libc::SYS_madvise => mapping::madvise(address, b, c as c_int).into(),
        libc::SYS_mlock => mapping::mlock(address, b).into(),
        libc::SYS_munlock => mapping::munlock(address, b).into(),
        libc::SYS_mlockall => mapping::mlockall(a as c_int).into(),
        libc::SYS_openat => {
            let flags = direct::buffered(c as c_int, caller);
            sys::answer(sys::call(number, [a, b, flags as usize, d, 0, 0])) as c_long
        }
        libc::SYS_close => descriptors::close_from(a as c_int, caller).into(),
        libc::SYS_close_range => descriptors::close_range(a as c_uint, b as c_uint, c as c_int).into(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => descriptors::dup2(a as c_int, b as c_int).into(),
        libc::SYS_dup3 => descriptors::dup3(a as c_int, b as c_int, c as c_int).into(),
        _ => pass(),
    }
}
