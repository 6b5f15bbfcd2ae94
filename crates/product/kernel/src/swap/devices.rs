//! Swap devices that are there: their folders and paths, and how they are removed (swapon(8),
//! Documentation/admin-guide/blockdev/zram.rst). A file may be in a folder of another user, who can put a link in its
//! place at any time. So it is removed after a look at its inode.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{open, Mode, OFlags};

use crate::files::write;
use crate::inode::Inode;
use coldframe_proc::Tree;

/// The highest priority (swapon(2)): of a disk that is used before the run's other swap, which does not pay.
pub(crate) const PRIORITY_MAX: i64 = 0x7fff;
/// The priority of a run's swap: it is used before that of the machine.
pub const PRIORITY_RUN: i64 = PRIORITY_MAX - 1;

/// The folder in which the kernel makes and removes zram devices.
pub(crate) const CONTROL: &str = "/sys/class/zram-control";
/// The largest zram device: as zram-generator's on Fedora, the machine's RAM or this. Its table takes 0.4 % of its
/// size.
pub(crate) const ZRAM_MAX: u64 = 8 << 30;
/// Smaller swap is not worth a device.
pub(crate) const SIZE_MIN: u64 = 1 << 20;

/// A zram device's folder.
pub(crate) fn folder(tree: &Tree, number: u32) -> PathBuf {
    tree.path(format!("/sys/devices/virtual/block/zram{number}"))
}

/// Removes a zram device.
pub(crate) fn remove(tree: &Tree, number: u32) -> std::io::Result<()> {
    write(&folder(tree, number).join("reset"), "1")?;
    write(&tree.path(CONTROL).join("hot_remove"), number.to_string())
}

/// The path now of what is swapped to.
pub(crate) fn area(tree: &Tree, inode: Inode) -> Option<PathBuf> {
    let mut paths = tree.swap_areas().into_iter().map(|area| tree.path(area.path));
    paths.find(|path| Inode::from_path(path) == Some(inode))
}

/// Ends swapping to a device or file. Its pages are loaded into RAM first.
pub(crate) fn off(path: &Path, inode: Inode) -> std::io::Result<()> {
    let file: OwnedFd = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match Inode::from_file(&file) == Some(inode) {
        true => swap_off(&file),
        false => Err(std::io::Error::other("it has been moved")),
    }
}

/// The path of an open file that leads to this very file, wherever its name leads by now (`proc_pid_fd(5)`).
fn descriptor(file: impl AsFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())).expect("no byte of it is zero")
}

fn done(answer: i32) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Swaps to a file or device whose first page is the head of a swap area, with this priority.
#[allow(unsafe_code, reason = "swapon(2) takes a path")]
pub(crate) fn swap_on(file: impl AsFd, priority: i64) -> io::Result<()> {
    let path = descriptor(file);
    // SAFETY: the path lives through the call.
    done(unsafe { libc::swapon(path.as_ptr(), 0x8000 | priority as i32) })
}

/// Ends that; its pages are loaded into RAM first.
#[allow(unsafe_code, reason = "swapoff(2) takes a path")]
fn swap_off(file: impl AsFd) -> io::Result<()> {
    let path = descriptor(file);
    // SAFETY: as above.
    done(unsafe { libc::swapoff(path.as_ptr()) })
}

/// The size of a new swap: what is asked for and a page for its header, or no more than the machine's RAM and
/// [`ZRAM_MAX`], on a disk no more than half of what is free.
pub(crate) fn size(tree: &Tree, path: Option<&Path>, bytes: Option<u64>) -> u64 {
    if let Some(bytes) = bytes {
        return (bytes.max(SIZE_MIN) + 4096).div_ceil(4096) * 4096;
    }
    let ram = tree.meminfo("MemTotal").max(64 << 20);
    let folder = path.map(|path| path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let room = match folder.map(rustix::fs::statvfs) {
        Some(Ok(disk)) => ZRAM_MAX.min(disk.f_bavail * disk.f_frsize / 2),
        _ => ZRAM_MAX,
    };
    ram.min(room) / 4096 * 4096
}
