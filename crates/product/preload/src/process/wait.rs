//! Waiting in the first process of a PID namespace (a container's init) and in a subreaper. Every process there whose
//! parent has ended becomes its child, and the pagers are such processes. It must neither wait for one nor learn of its
//! end: so they are reaped here, and where only pagers are left, there is no child (ECHILD). A pager is known by its
//! name.
//!
//! Not covered: an init without /proc, and one that waits by system calls of its own.

use std::ffi::{c_int, CString};
use std::mem::MaybeUninit;

use libc::{WCONTINUED, WEXITED, WNOHANG, WNOWAIT, WSTOPPED};
use rustix::fs::{Mode, OFlags, RawDir};

use crate::managed::ranges::{failed, pass};
use crate::pointers::value;
use crate::process::kill::is_pager;
use crate::symbols::next::{next, none};
use crate::sys;

/// Whether the call is that of an init, for any child. Pagers have groups of their own.
fn concerns(any: bool) -> bool {
    let mut adopts = 0i32;
    let a = [libc::PR_GET_CHILD_SUBREAPER as usize, &raw mut adopts as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes a number.
    any && unsafe { sys::call(libc::SYS_getpid, [0; 6]) == 1 || sys::call(libc::SYS_prctl, a) == 0 && adopts != 0 }
}

/// waitid of one child, or of all (0): the number of one with news, or 0, or a negative error number.
fn asked(child: usize, options: c_int) -> isize {
    let which = if child == 0 { libc::P_ALL } else { libc::P_PID };
    // SAFETY: all bytes zero is a value of it, and the kernel writes it.
    unsafe {
        let mut news: libc::siginfo_t = std::mem::zeroed();
        let a = [which as usize, child, &raw mut news as usize, options as usize, 0, 0];
        match sys::call(libc::SYS_waitid, a) {
            0 => news.si_pid() as isize,
            error => error,
        }
    }
}

/// The next child with news that is no pager. The other results are those of [`asked`].
fn next_child(options: c_int) -> isize {
    loop {
        match asked(0, options | WNOWAIT | WNOHANG) {
            0 if only_pagers() => return -(libc::ECHILD as isize),
            0 if options & WNOHANG != 0 => return 0,
            // Then it has news for all.
            0 => match asked(0, options | WNOWAIT) {
                error @ ..0 => return error,
                _ => continue,
            },
            child @ 1.. if is_pager_here(child as usize) => {
                asked(child as usize, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | libc::__WALL);
            }
            other => return other,
        }
    }
}

fn read(path: String, text: &mut [u8]) -> &str {
    let len = CString::new(path).map_or(0, |path| sys::read_file(&path, text));
    std::str::from_utf8(&text[..len]).unwrap_or_default()
}

/// By a number of this namespace. That of /proc may be another one.
fn is_pager_here(process: usize) -> bool {
    // SAFETY: no pointers.
    let descriptor = unsafe { sys::call(libc::SYS_pidfd_open, [process, 0, 0, 0, 0, 0]) };
    let mut text = [0u8; 1024];
    let text = read(format!("/proc/self/fdinfo/{descriptor}"), &mut text);
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    // SAFETY: opened here, or no descriptor.
    unsafe { sys::call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0]) };
    number.is_some_and(|number| is_pager(number.trim()))
}

/// Of an init that has children; false if it cannot be said.
fn only_pagers() -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(c"/proc/self/task", flags, Mode::empty()) else { return false };
    let (mut room, mut found) = ([MaybeUninit::uninit(); 1024], false);
    let mut entries = RawDir::new(&folder, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        let mut text = [0u8; 4096];
        let text = read(format!("/proc/self/task/{}/children", entry.file_name().to_string_lossy()), &mut text);
        if text.len() == 4096 || !text.split_whitespace().all(is_pager) {
            return false;
        }
        found |= !text.is_empty();
    }
    found
}

/// wait4 for any child, with the C library's kind of result. The pointers are for the kernel, as those of
/// [`any_by_id`].
unsafe fn any(status: usize, options: c_int, usage: usize) -> isize {
    loop {
        match next_child(options | WEXITED) {
            0 => return 0,
            error @ ..0 => return failed(-error as c_int),
            child => match pass(libc::SYS_wait4, [child as usize, status, (options | WNOHANG) as usize, usage, 0, 0]) {
                // Another thread was faster.
                0 => {}
                -1 if sys::errno() == libc::ECHILD => {}
                answer => return answer,
            },
        }
    }
}

/// waitid for any child.
unsafe fn any_by_id(news: *mut libc::siginfo_t, options: c_int, usage: usize) -> isize {
    loop {
        let child = match next_child(options) {
            error @ ..0 => return failed(-error as c_int),
            0 if !news.is_null() && value(news).is_none() => return failed(libc::EFAULT),
            0 if news.is_null() => return 0,
            // SAFETY: the caller's structure, which can be read.
            0 => unsafe {
                news.write_bytes(0, 1);
                return 0;
            },
            child => child as usize,
        };
        let a = [libc::P_PID as usize, child, news as usize, (options | WNOHANG) as usize, usage, 0];
        match pass(libc::SYS_waitid, a) {
            -1 if sys::errno() == libc::ECHILD => {}
            answer => return answer,
        }
    }
}

/// wait4 and waitid through `syscall`.
pub unsafe fn by_number(number: i64, a: [usize; 6]) -> isize {
    // SAFETY: the caller's call.
    unsafe {
        match number {
            libc::SYS_wait4 if concerns(a[0] as c_int == -1) => any(a[1], a[2] as c_int, a[3]),
            libc::SYS_waitid if concerns(a[0] == libc::P_ALL as usize) => {
                any_by_id(a[2] as *mut _, a[3] as c_int, a[4])
            }
            _ => pass(number, a),
        }
    }
}

/// Functions of the C library: for any child of an init as above.
macro_rules! waits {
    ($($name:ident($($argument:ident: $type:ty),*) for $any:expr => $own:expr, $next:ident;)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            if !concerns($any) {
                return next!($next, ($($argument),*), none());
            }
            // SAFETY: the caller's call.
            unsafe { $own as c_int }
        }
    )* };
}

waits! {
    wait(status: usize) for true => any(status, 0, 0), WAIT;
    waitpid(child: c_int, status: usize, options: c_int) for child == -1 => any(status, options, 0), WAITPID;
    wait3(status: usize, options: c_int, usage: usize) for true => any(status, options, usage), WAIT3;
    wait4(child: c_int, status: usize, options: c_int, usage: usize) for child == -1 => any(status, options, usage),
        WAIT4;
    waitid(which: libc::idtype_t, child: u32, news: *mut libc::siginfo_t, options: c_int) for which == libc::P_ALL =>
        any_by_id(news, options, 0), WAITID;
}
