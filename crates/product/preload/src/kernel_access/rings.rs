//! Memory that the program gives to an io_uring: fixed buffers, and rings of provided buffers. The kernel takes its
//! frames at that moment and uses them from then on. The pager of a program with a ring expects pinned frames
//! ([`crate::descriptors::pinning`]), so none of these pages leaves. If too few other pages could leave, the call fails
//! with ENOMEM.
//!
//! Covered: the C library's `syscall`, and liburing as a shared library. Not covered: programs with their own system
//! calls or with liburing linked in. Other operations of a ring copy, and pages come and go under them as under every
//! system call.

use std::ffi::{c_int, c_uint};

use crate::descriptors::pinning;
use crate::managed::memory;
use crate::managed::pins;
use crate::pointers::{value, values};
use crate::say::once;
use crate::symbols::next::call_at;
use crate::symbols::shim::exported;
use crate::sys;

/// Opcodes of io_uring_register, and the bit that says that the descriptor is an index.
const REGISTER_BUFFERS: c_uint = 0;
const REGISTER_BUFFERS2: c_uint = 15;
const BUFFERS_UPDATE: c_uint = 16;
const BY_INDEX: c_uint = 1 << 31;

/// Bytes that the kernel holds for rings: `VmPin` of this process.
fn held() -> usize {
    let mut text = [0u8; 4096];
    let len = sys::read_file(c"/proc/self/status", &mut text);
    let lines = std::str::from_utf8(&text[..len]).unwrap_or_default().lines();
    let line = lines.filter_map(|line| line.strip_prefix("VmPin:")).next().unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) << 10
}

/// Whether `count` more buffers leave enough frames to pages that can leave.
fn fit(buffers: usize, count: usize) -> bool {
    let (count, pager) = (count as c_uint as usize, memory::pager());
    if count > u16::MAX.into() {
        return true; // the kernel has the word for it
    }
    // None: sparse, or the kernel has the word for it.
    let buffers = values(buffers as *const libc::iovec, count).unwrap_or_default();
    let new: usize = buffers.iter().map(|one| pins::pages(one.iov_base as usize, one.iov_len).len()).sum();
    let fit = new == 0 || pager.may_hold(held() + new);
    if !fit {
        let what = "buffers of an io_uring are more than may stay in RAM; --ram is too small for them";
        once!("{what}; the program gets an error from io_uring instead");
    }
    fit
}

/// io_uring_register: a negative error number, or the kernel's result.
pub unsafe fn register(ring: usize, opcode: c_uint, argument: usize, count: usize) -> isize {
    let words = || if count == size_of::<[usize; 4]>() { value(argument as *const [usize; 4]) } else { None };
    let (buffers, buffer_count) = match opcode & !BY_INDEX {
        REGISTER_BUFFERS => (argument, count),
        // `struct io_uring_rsrc_register`, `struct io_uring_rsrc_update2`.
        REGISTER_BUFFERS2 => words().map_or((0, 0), |words| (words[2], words[0])),
        BUFFERS_UPDATE => words().map_or((0, 0), |words| (words[1], words[3])),
        _ => (0, 0),
    };
    if !fit(buffers, buffer_count) {
        return -(libc::ENOMEM as isize);
    }
    // SAFETY: the caller's call.
    unsafe {
        let result = sys::call(libc::SYS_io_uring_register, [ring, opcode as usize, argument, count, 0, 0]);
        if buffers != 0 {
            memory::pager().may_hold(0);
        }
        result
    }
}

/// Whether the program may have a ring: it can open files with O_DIRECT itself, and what registers buffers may be a
/// call that is not intercepted.
fn may_be() -> bool {
    pinning::announce("an io_uring")
}

/// io_uring_setup: a negative error number, or the kernel's result.
pub unsafe fn setup(entries: usize, params: usize) -> isize {
    match may_be() {
        // SAFETY: the caller's call.
        true => unsafe { sys::call(libc::SYS_io_uring_setup, [entries, params, 0, 0, 0, 0]) },
        false => -(libc::EPERM as isize),
    }
}

/// liburing's function of this name, however the library was loaded: a plugin may have loaded it.
fn liburing(name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: looks a name up, in a library that is there or not at all.
    unsafe {
        let mut address = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        for library in [c"liburing.so.2", c"liburing.so.1"] {
            if address.is_null() {
                let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
                address = if handle.is_null() { address } else { libc::dlsym(handle, name.as_ptr()) };
            }
        }
        (!address.is_null()).then_some(address as usize)
    }
}

/// Functions of liburing that are called if the condition holds; their arguments are all passed alike.
macro_rules! replaced {
    ($($name:ident($($argument:ident),*) if $condition:expr, else $error:ident;)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: usize),*) -> c_int {
            let name = concat!(stringify!($name), "\0");
            // SAFETY: the caller's buffers; liburing's function of that name has such arguments.
            unsafe {
                match liburing(std::ffi::CStr::from_bytes_with_nul_unchecked(name.as_bytes())) {
                    _ if !$condition => -libc::$error,
                    Some(address) => call_at!(address, ($($argument),*)),
                    None => -libc::ENOSYS,
                }
            }
        }
    )* };
}

replaced! {
    io_uring_queue_init(entries, ring, flags) if may_be(), else EPERM;
    io_uring_queue_init_params(entries, ring, params) if may_be(), else EPERM;
    io_uring_queue_init_mem(entries, ring, params, memory, len) if may_be(), else EPERM;
    io_uring_register_buffers(ring, buffers, count) if fit(buffers, count), else ENOMEM;
    io_uring_register_buffers_tags(ring, buffers, tags, count) if fit(buffers, count), else ENOMEM;
    io_uring_register_buffers_update_tag(ring, offset, buffers, tags, count) if fit(buffers, count), else ENOMEM;
}

// liburing's names for the bare calls.
exported! {
    io_uring_setup(entries: c_uint, params: usize) -> c_int => setup(entries as usize, params) as c_int;
    io_uring_register(ring: c_uint, opcode: c_uint, argument: usize, count: c_uint) -> c_int =>
        register(ring as usize, opcode, argument, count as usize) as c_int;
}
