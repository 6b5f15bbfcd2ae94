//! kill of all processes (-1), as scripts of containers do it at their end. The pagers are among those that the kernel
//! would reach, and the end of a pager ends its program: so each other process gets the signal by its number. Without
//! /proc the kernel does it.
//!
//! Not covered: processes that begin meanwhile, and a kill by a program that is not paged.

use std::ffi::{c_int, CStr, CString};

use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::sys;

/// The name of the pagers' processes.
const PAGER: &[u8] = b"coldframe-pager\n";

pub fn is_pager(process: &str) -> bool {
    let mut name = [0u8; 32];
    let path = CString::new(format!("/proc/{process}/comm")).unwrap_or_default();
    let len = sys::read_file(&path, &mut name);
    &name[..len] == PAGER
}

/// The names in /proc.
fn entries() -> Option<Vec<String>> {
    // SAFETY: a folder that this function opens and closes; its names are C strings.
    unsafe {
        let folder = libc::opendir(c"/proc".as_ptr());
        if folder.is_null() {
            return None;
        }
        let name = |entry: &libc::dirent| CStr::from_ptr(entry.d_name.as_ptr()).to_string_lossy().into_owned();
        let all = std::iter::from_fn(|| libc::readdir(folder).as_ref().map(name)).collect();
        libc::closedir(folder);
        Some(all)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn kill(process: c_int, signal: c_int) -> c_int {
    let kernel = |process: usize| pass(libc::SYS_kill, [process, signal as usize, 0, 0, 0, 0]) as c_int;
    let all = if process == -1 && memory::ready() { entries() } else { None };
    let Some(all) = all else { return kernel(process as usize) };
    // SAFETY: no arguments.
    let own = unsafe { sys::call(libc::SYS_getpid, [0; 6]) } as usize;
    let (mut reached, mut error) = (false, libc::ESRCH);
    for name in all {
        let other = name.parse().unwrap_or(0);
        if other > 1 && other != own && !is_pager(&name) {
            reached |= kernel(other) == 0;
            error = if sys::errno() == libc::ESRCH { error } else { sys::errno() };
        }
    }
    if reached {
        0
    } else {
        failed(error) as c_int
    }
}
