//! The C library's `syscall`, for programs that do not use its wrappers. Calls that concern managed memory or the
//! pager's descriptors are handled like the wrappers, but always by the kernel itself: the function of another
//! preloaded library may be made of this one. A userfaultfd of the program's own is refused, since a range can belong
//! to only one.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use coldframe_live::own_descriptors;

use crate::descriptors::{closing, direct, pinning, received};
use crate::kernel_access::{process_vm, rings, splice, threads};
use crate::managed::{memory, ranges};
use crate::mappings::{advice, lock, mapping, remap};
use crate::process::{exec, filter, kill, limits, wait};
use crate::say::once;
use crate::symbols::caller;
use crate::symbols::shim::with_caller;
use crate::sys;

/// The same on every machine; newer than some C libraries.
const SYS_MSEAL: c_long = 462;

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
    let pass = || ranges::pass(number, [a, b, c, d, e, f]) as c_long;
    // The same call, with another value of one of its arguments.
    let with = |i: usize, value: usize| {
        let mut all = [a, b, c, d, e, f];
        all[i] = value;
        ranges::pass(number, all) as c_int
    };
    if !memory::ready() || caller::is_own(caller) {
        return pass();
    }
    let address = a as *mut c_void;
    if crate::process::fork::copies(number, a, b) {
        // SAFETY: the caller's call.
        return unsafe { crate::process::fork::by_number(number, [a, b, c, d, e, f]) as c_long };
    }
    // SAFETY: the caller's call, with the arguments that it has for the kernel.
    unsafe {
        match number {
            libc::SYS_userfaultfd => {
                once!("the program wants a userfaultfd of its own and does not get it");
                ranges::failed(libc::EPERM) as c_long
            }
            libc::SYS_mmap => {
                mapping::mmap_from(address, b, c as c_int, d as c_int, e as c_int, f as i64, caller) as c_long
            }
            libc::SYS_shmat => mapping::shmat(a as c_int, b as *const c_void, c as c_int) as c_long,
            libc::SYS_munmap => mapping::munmap_from(address, b, caller).into(),
            libc::SYS_mprotect => mapping::mprotect(address, b, c as c_int).into(),
            libc::SYS_pkey_mprotect => mapping::pkey_mprotect(address, b, c as c_int, d as c_int).into(),
            libc::SYS_mremap => remap::mremap(address, b, c, d as c_int, e as *mut c_void) as c_long,
            libc::SYS_clone3 => crate::process::fork::clone3(a, b) as c_long,
            libc::SYS_madvise => advice::madvise(address, b, c as c_int).into(),
            libc::SYS_process_madvise => {
                advice::process_madvise(a as c_int, b as *const _, c, d as c_int, e as c_uint) as c_long
            }
            libc::SYS_msync => advice::msync(address, b, c as c_int).into(),
            libc::SYS_mincore => advice::mincore(address, b, c as *mut u8).into(),
            libc::SYS_mlock => lock::mlock(address, b).into(),
            libc::SYS_mlock2 => lock::mlock2(address, b, c as u32).into(),
            libc::SYS_munlock => lock::munlock(address, b).into(),
            libc::SYS_mlockall => coldframe_live::locked::mlockall(a as c_int).into(),
            libc::SYS_munlockall => lock::munlockall().into(),
            // A sealed mapping could never be unmapped.
            SYS_MSEAL if memory::meets(a, b) => ranges::failed(libc::EPERM) as c_long,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => direct::opened(b as c_int, |flags| with(1, flags as usize)).into(),
            libc::SYS_openat => direct::opened(c as c_int, |flags| with(2, flags as usize)).into(),
            libc::SYS_openat2 => direct::by_how(a as c_int, b as *const c_char, c as *const _, d).into(),
            libc::SYS_clone
                if !threads::pinned_for_clone(a as c_int, if cfg!(target_arch = "x86_64") { d } else { e }) =>
            {
                ranges::failed(libc::ENOMEM) as c_long
            }
            libc::SYS_wait4 | libc::SYS_waitid => wait::by_number(number, [a, b, c, d, e, f]) as c_long,
            libc::SYS_execve => exec::execve(address.cast(), b as *const _, c as *const _).into(),
            libc::SYS_execveat => {
                exec::execveat(a as c_int, b as *const _, c as *const _, d as *const _, e as c_int).into()
            }
            libc::SYS_kill => kill::kill(a as c_int, b as c_int).into(),
            libc::SYS_futex => threads::futex([a, b, c, d, e, f]) as c_long,
            libc::SYS_set_robust_list => threads::set_robust_list(a, b) as c_long,
            libc::SYS_vmsplice => splice::vmsplice(a as c_int, b as *const _, c, d as c_uint) as c_long,
            libc::SYS_set_tid_address => {
                threads::cleared_at_the_end(a);
                pass()
            }
            libc::SYS_exit => {
                threads::leave_process(a);
                pass()
            }
            libc::SYS_getrlimit => limits::set(0, a as u32, std::ptr::null(), b as *mut _).into(),
            libc::SYS_setrlimit => limits::setrlimit(a as u32, b as *const _).into(),
            libc::SYS_prlimit64 => limits::set(a as c_int, b as u32, c as *const _, d as *mut _).into(),
            libc::SYS_prctl => filter::control(a, [b, c, d, e]) as c_long,
            libc::SYS_seccomp => filter::seccomp(a, b, c) as c_long,
            libc::SYS_io_uring_setup => sys::answer(rings::setup(a, b)) as c_long,
            libc::SYS_io_uring_register => sys::answer(rings::register(a, b as c_uint, c, d)) as c_long,
            libc::SYS_process_vm_writev | libc::SYS_process_vm_readv => {
                process_vm::copy(number, a as c_int, (b as *const _, c), (d as *const _, e), f) as c_long
            }
            libc::SYS_fcntl => closing::controlled(a as c_int, b as c_int, c, |argument| with(2, argument)).into(),
            libc::SYS_close if own_descriptors::has(a as c_int) => ranges::failed(libc::EBADF) as c_long,
            libc::SYS_close_range => closing::close_range(a as c_uint, b as c_uint, c as c_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => closing::copied_to(a as c_int, b as c_int, || pass() as c_int).into(),
            libc::SYS_dup3 => closing::copied_to(a as c_int, b as c_int, || pass() as c_int).into(),
            libc::SYS_setsockopt => {
                pinning::setsockopt(a as c_int, b as c_int, c as c_int, d as *const c_void, e as u32).into()
            }
            libc::SYS_socket => pinning::socket(a as c_int, b as c_int, c as c_int).into(),
            libc::SYS_fanotify_init => pinning::fanotify_init(a as u32, b as u32).into(),
            libc::SYS_pidfd_getfd => received::received(pass() as c_int).into(),
            libc::SYS_recvmsg => received::one(pass() as isize, b as *const _) as c_long,
            libc::SYS_recvmmsg => received::several(pass() as c_int, b as *const _).into(),
            _ => pass(),
        }
    }
}
