//! The credentials of a process. The C library changes them in every thread it knows, and it does not know the
//! pager's threads. So the pager's threads are replaced by new threads with the credentials of the calling thread. No
//! thread keeps rights that the program has dropped.
//!
//! Only a process with one thread can enter a user namespace. So the pager has no threads during the call.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{gid_t, size_t, uid_t};

use crate::fork::Still;
use crate::memory::{self, backing, Backing};
use crate::say::say;
use crate::sys;

/// The C library's own function of this name.
fn next(place: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    if place.load(Relaxed) == 0 {
        // SAFETY: a C string.
        place.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize, Relaxed);
    }
    place.load(Relaxed)
}

/// The process has changed its credentials.
fn changed() {
    let errno = sys::errno();
    if let (true, Backing::Pager(pager)) = (memory::ready(), backing()) {
        if let Err(error) = memory::inside(|| pager.renew_handlers()) {
            say(format_args!("the pager's threads keep the rights that the program has dropped: {error}"));
        }
    }
    sys::set_errno(errno);
}

macro_rules! identities {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let name = concat!(stringify!($name), "\0");
            // SAFETY: the string ends with a zero byte.
            let next = next(&NEXT, unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(name.as_bytes()) });
            if next == 0 {
                sys::set_errno(libc::ENOSYS);
                return -1;
            }
            // SAFETY: the C library's function has the type of the one that replaces it.
            let result = unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(next)($($argument),*)
            };
            if result == 0 {
                changed();
            }
            result
        }
    )* };
}

identities! {
    setuid(user: uid_t);
    setgid(group: gid_t);
    seteuid(user: uid_t);
    setegid(group: gid_t);
    setreuid(real: uid_t, effective: uid_t);
    setregid(real: gid_t, effective: gid_t);
    setresuid(real: uid_t, effective: uid_t, saved: uid_t);
    setresgid(real: gid_t, effective: gid_t, saved: gid_t);
    setgroups(count: size_t, groups: *const gid_t);
    initgroups(user: *const c_char, group: gid_t);
}

/// Makes a system call that may need a process with one thread: first as it is, and if the kernel refuses that,
/// without the pager's threads.
fn alone(number: i64, arguments: [usize; 6]) -> c_int {
    // SAFETY: a call of the program, whose arguments are no pointers.
    let call = || unsafe { sys::call(number, arguments) };
    let mut result = call();
    if let (true, Backing::Pager(pager), true) = (memory::ready(), backing(), result == -(libc::EINVAL as isize)) {
        // The stack stays in RAM, if it is managed: no thread could bring it back.
        let _still = Still::here();
        result = memory::inside(|| pager.without_handlers(call));
    }
    sys::answer(result) as c_int
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unshare(what: c_int) -> c_int {
    alone(libc::SYS_unshare, [what as usize, 0, 0, 0, 0, 0])
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setns(descriptor: c_int, kind: c_int) -> c_int {
    alone(libc::SYS_setns, [descriptor as usize, kind as usize, 0, 0, 0, 0])
}
