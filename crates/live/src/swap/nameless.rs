//! Files without a name, in a folder that stays open.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::sys::{self, Errno, Sys};

/// A new file in a folder, without a name, readable by no other user, past the page cache if the file system allows it.
pub fn nameless(folder: RawFd) -> Sys<OwnedFd> {
    let plain = libc::O_RDWR | libc::O_TMPFILE;
    match open_at(folder, c".", plain | libc::O_DIRECT, 0o600) {
        Err(Errno::INVAL) => open_at(folder, c".", plain, 0o600),
        Err(Errno(libc::EOPNOTSUPP | libc::EISDIR)) => named_and_unlinked(folder),
        other => other,
    }
}

/// A folder as a place for files.
pub fn open_folder(path: &Path) -> Sys<OwnedFd> {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Errno::INVAL)?;
    open_at(libc::AT_FDCWD, &name, libc::O_PATH | libc::O_DIRECTORY, 0)
}

/// For file systems without O_TMPFILE.
fn named_and_unlinked(folder: RawFd) -> Sys<OwnedFd> {
    let name = std::ffi::CString::new(format!(".coldframe-swap-{}", std::process::id())).map_err(|_| Errno::IO)?;
    let plain = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    let file =
        open_at(folder, &name, plain | libc::O_DIRECT, 0o600).or_else(|_| open_at(folder, &name, plain, 0o600))?;
    // SAFETY: a C string.
    unsafe { sys::call(libc::SYS_unlinkat, [folder as usize, name.as_ptr() as usize, 0, 0, 0, 0]) }?;
    Ok(file)
}

fn open_at(folder: RawFd, name: &std::ffi::CStr, flags: i32, mode: usize) -> Sys<OwnedFd> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: a C string; the descriptor is new and ours.
    unsafe {
        let fd =
            sys::again(|| sys::call(libc::SYS_openat, [folder as usize, name.as_ptr() as usize, flags, mode, 0, 0]))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}
