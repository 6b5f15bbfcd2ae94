//! Files with O_DIRECT. A device that writes straight into a managed page could do so while the page leaves RAM; the
//! bytes would be lost. So the flag is removed: data then goes through the page cache, and the kernel's copy faults
//! like any other access. The program reads and writes the same data, and F_GETFL still reports the flag. It is removed
//! from a descriptor that was inherited or received, too; whoever shares that one has it removed as well. A file that
//! an io_uring itself opens keeps the flag (see [`crate::descriptors::pinning`]).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::descriptors::pinning;
use crate::managed::memory;
use crate::managed::ranges::pass;
use crate::pointers::value;
use crate::say::once;
use crate::symbols::caller;
use crate::symbols::next::next;
use crate::symbols::shim::{exported, with_caller};
use crate::sys::{self, Lock};

/// Whether to remove the flag.
fn concerns(flags: c_int) -> bool {
    flags & libc::O_DIRECT != 0 && memory::ready()
}

fn without(flags: c_int) -> c_int {
    once!("files that the program opens with O_DIRECT go through the page cache");
    flags & !libc::O_DIRECT
}

/// Calls `open` with the remaining flags, and notes the original ones. FORTIFY's functions have no mode.
pub fn opened(flags: c_int, open: impl FnOnce(c_int) -> c_int) -> c_int {
    if !concerns(flags) {
        return pinning::given(open(flags));
    }
    let descriptor = pinning::given(open(without(flags)));
    if descriptor >= 0 {
        note(descriptor);
    }
    descriptor
}

fn raw(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    pass(libc::SYS_openat, [folder as usize, path as usize, flags as usize, mode as usize, 0, 0]) as c_int
}

with_caller!(open, open64(3) => open_from);
unsafe extern "C" fn open_from(path: *const c_char, flags: c_int, mode: c_uint, caller: usize) -> c_int {
    if caller::is_own(caller) {
        return raw(libc::AT_FDCWD, path, flags, mode);
    }
    opened(flags, |flags| next!(OPEN, (path, flags, mode), raw(libc::AT_FDCWD, path, flags, mode)))
}

with_caller!(openat, openat64(4) => openat_from);
unsafe extern "C" fn openat_from(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
    caller: usize,
) -> c_int {
    if caller::is_own(caller) {
        return raw(folder, path, flags, mode);
    }
    opened(flags, |flags| next!(OPENAT, (folder, path, flags, mode), raw(folder, path, flags, mode)))
}

unsafe fn open_2(path: *const c_char, flags: c_int) -> c_int {
    opened(flags, |flags| next!(OPEN_2, (path, flags), raw(libc::AT_FDCWD, path, flags, 0)))
}

unsafe fn openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    opened(flags, |flags| next!(OPENAT_2, (folder, path, flags), raw(folder, path, flags, 0)))
}

unsafe fn by_handle(mount: c_int, handle: *mut c_void, flags: c_int) -> c_int {
    let raw =
        |flags| pass(libc::SYS_open_by_handle_at, [mount as usize, handle as usize, flags as usize, 0, 0, 0]) as c_int;
    opened(flags, |flags| next!(OPEN_BY_HANDLE_AT, (mount, handle, flags), raw(flags)))
}

exported! {
    __open_2(path: *const c_char, flags: c_int) -> c_int => open_2(path, flags);
    __open64_2(path: *const c_char, flags: c_int) -> c_int => open_2(path, flags);
    __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int => openat_2(folder, path, flags);
    __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int => openat_2(folder, path, flags);
    open_by_handle_at(mount: c_int, handle: *mut c_void, flags: c_int) -> c_int => by_handle(mount, handle, flags);
    openat2(folder: c_int, path: *const c_char, how: *const How, len: usize) -> c_int => by_how(folder, path, how, len);
}

/// `struct open_how`: flags, mode, resolve.
type How = [u64; 3];

/// openat2, for which most C libraries have no function. A longer structure than is known here goes to the kernel
/// unchanged.
pub unsafe fn by_how(folder: c_int, path: *const c_char, how: *const How, len: usize) -> c_int {
    let raw =
        |how: *const How| pass(libc::SYS_openat2, [folder as usize, path as usize, how as usize, len, 0, 0]) as c_int;
    let known = if len == size_of::<How>() { value(how) } else { None };
    let Some([flags, mode, resolve]) = known else { return raw(how) };
    // The upper half has no O_DIRECT; the kernel refuses unknown bits there.
    let rest = flags & !u64::from(u32::MAX);
    opened(flags as c_int, |flags| raw(&[rest | u64::from(flags as u32), mode, resolve]))
}

/// The flags for F_SETFL, and whether O_DIRECT was among them. A pipe's O_DIRECT means something else (packets) and
/// stays.
pub fn set_flags(descriptor: c_int, flags: c_int) -> (c_int, bool) {
    if !concerns(flags) || !on_a_device(descriptor) {
        return (flags, false);
    }
    (without(flags), true)
}

/// Of a descriptor that this library has not opened.
pub fn remove(descriptor: c_int) {
    let call = |command, argument| {
        // SAFETY: reads and sets flags.
        unsafe { sys::call(libc::SYS_fcntl, [descriptor as usize, command, argument, 0, 0, 0]) }
    };
    let flags = call(libc::F_GETFL as usize, 0) as c_int;
    if flags >= 0 && flags & libc::O_DIRECT != 0 && on_a_device(descriptor) {
        call(libc::F_SETFL as usize, (flags & !libc::O_DIRECT) as usize);
        note(descriptor);
    }
}

fn on_a_device(descriptor: c_int) -> bool {
    sys::status(descriptor).is_some_and(|s| matches!(s.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFBLK))
}

/// A descriptor whose flag was removed, and its file: a number that was closed unseen and used again refers to
/// another file.
#[derive(Clone, Copy)]
struct Noted {
    descriptor: c_int,
    device: u64,
    inode: u64,
}

/// The number of notes. Beyond it the oldest are forgotten; F_GETFL then reports those descriptors without the flag.
const NOTES: usize = 64;

static NOTED: Lock<[Noted; NOTES]> = Lock::new([Noted { descriptor: -1, device: 0, inode: 0 }; NOTES]);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Signals are blocked: a handler of the program may come here, too.
fn noted<T>(work: impl FnOnce(&mut [Noted; NOTES]) -> T) -> T {
    sys::undisturbed(|| NOTED.with(work))
}

pub fn note(descriptor: c_int) {
    let Some(status) = sys::status(descriptor) else { return };
    let new = Noted { descriptor, device: status.st_dev, inode: status.st_ino };
    let next = MADE.fetch_add(1, Relaxed) % NOTES;
    noted(|all| {
        let at = all.iter().position(|noted| noted.descriptor == descriptor).unwrap_or(next);
        all[at] = new;
    });
}

pub fn forget(descriptor: c_int) {
    if MADE.load(Relaxed) > 0 {
        noted(|all| all.iter_mut().filter(|n| n.descriptor == descriptor).for_each(|n| n.descriptor = -1));
    }
}

pub fn is_noted(descriptor: c_int) -> bool {
    if MADE.load(Relaxed) == 0 {
        return false;
    }
    let Some(noted) = noted(|all| all.iter().find(|noted| noted.descriptor == descriptor).copied()) else {
        return false;
    };
    sys::status(descriptor).is_some_and(|status| (status.st_dev, status.st_ino) == (noted.device, noted.inode))
}
