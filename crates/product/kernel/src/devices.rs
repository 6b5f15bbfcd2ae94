//! Swap devices, made and removed: zram, and a file (swapon(8), Documentation/admin-guide/blockdev/zram.rst). A file
//! may be in a folder of another user, who can put a link in its place at any time. So it is opened once, and what is
//! done to it is done by that descriptor, or after a look at its inode.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{fallocate, ioctl_setflags, open, FallocateFlags, IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::change::{Cleanup, Inode};
use crate::cleanup::{keep, Cleanups};
use crate::files::write;
use coldframe_proc::{Tree, PAGE};

/// The priority of what is used before all other swap, the highest (swapon(2)).
pub const PRIORITY_MAX: i64 = 0x7fff;
const CONTROL: &str = "/sys/class/zram-control";
/// Where the tools are that a user's PATH may lack.
const TOOLS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
/// The largest zram device: as zram-generator's on Fedora, the machine's RAM or this. Its table takes 0.4 % of its
/// size.
pub(crate) const ZRAM_MAX: u64 = 8 << 30;
/// Smaller swap is not worth a device.
const LEAST: u64 = 1 << 20;

/// Makes a zram device and swaps to it. `how`: its algorithm and the most bytes of RAM that it takes; empty: lz4,
/// without a limit. Each step is recorded at once, so that a device that is half made is removed, too.
pub(crate) fn zram(tree: &Tree, size: u64, how: &str, cleanups: &mut Cleanups) -> Result<String, String> {
    let control = tree.path(CONTROL);
    if !control.is_dir() {
        let _ = Command::new("modprobe").arg("zram").env("PATH", TOOLS).output();
    }
    let number = std::fs::read_to_string(control.join("hot_add"))
        .map_err(|e| format!("this machine gives no zram device ({e}); as root: modprobe zram, or --swap FILE"))?;
    let number: u32 = number.trim().parse().map_err(|_| format!("zram gives no device but {number}"))?;
    let block = folder(tree, number);
    cleanups.push(Cleanup::Zram(number, Inode::at(&block).ok_or("its folder is not there")?));
    // A kernel without lz4 has another compressor, which stays.
    let (algorithm, limit) = how.split_once(' ').unwrap_or(("lz4", ""));
    let _ = write(&block.join("comp_algorithm"), algorithm);
    write(&block.join("disksize"), size.to_string()).map_err(|e| format!("zram{number} gets no size: {e}"))?;
    if !limit.is_empty() {
        write(&block.join("mem_limit"), limit).map_err(|e| format!("zram{number} gets no limit: {e}"))?;
    }
    let path = tree.path(format!("/dev/zram{number}"));
    let device = OpenOptions::new().write(true).open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    on(&device, &path, size, cleanups)?;
    Ok(path.display().to_string())
}

/// A zram device's folder.
pub(crate) fn folder(tree: &Tree, number: u32) -> PathBuf {
    tree.path(format!("/sys/devices/virtual/block/zram{number}"))
}

/// Removes a zram device.
pub(crate) fn remove(tree: &Tree, number: u32) -> std::io::Result<()> {
    write(&folder(tree, number).join("reset"), "1")?;
    write(&tree.path(CONTROL).join("hot_remove"), number.to_string())
}

/// Turns zswap on. Its old settings are recorded.
pub(crate) fn zswap(tree: &Tree, cleanups: &mut Cleanups) -> Result<(), String> {
    // A kernel without lz4 keeps its compressor. Half of the RAM: the group's limit goes down by what zswap takes.
    for (name, value) in [("compressor", "lz4"), ("max_pool_percent", "50"), ("enabled", "Y")] {
        let path = tree.path(format!("/sys/module/zswap/parameters/{name}"));
        keep(&path, cleanups)?;
        let written = write(&path, value);
        written.or_else(|e| if name == "compressor" { Ok(()) } else { Err(format!("{}: {e}", path.display())) })?;
    }
    Ok(())
}

pub(crate) fn file(path: &Path, size: u64, cleanups: &mut Cleanups) -> Result<String, String> {
    let shown = path.display();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|e| format!("{shown}: {e}; give --swap the path of a new file on a disk"))?;
    cleanups.push(Cleanup::File(path.into(), Inode::of(&file).ok_or("it has no inode")?));
    // Btrfs swaps only to a file whose pages it does not copy on writing; other file systems have no such flag.
    let _ = ioctl_setflags(&file, IFlags::NOCOW);
    fallocate(&file, FallocateFlags::empty(), 0, size.max(LEAST)).map_err(|e| match e {
        Errno::NOSPC | Errno::FBIG => {
            format!(
                "{shown}: no room for {} MiB of swap; give --swap a path on a disk with more",
                size.max(LEAST) >> 20
            )
        }
        _ => format!("{shown}: {e}; {REMEDY}"),
    })?;
    on(&file, path, size.max(LEAST), cleanups)?;
    Ok(shown.to_string())
}

/// What to do where a file cannot be swapped to: as swapon(8), which says EINVAL for tmpfs, overlay and others.
const REMEDY: &str = "give --swap a path on a disk with ext4, xfs or btrfs";

/// Writes the head of a swap area (`union swap_header` of include/linux/swap.h) and swaps to it.
fn on(file: &File, path: &Path, size: u64, cleanups: &mut Cleanups) -> Result<(), String> {
    let (page, version, last) = (PAGE as usize, 1u32, (size / PAGE - 1) as u32);
    let mut head = vec![0; page];
    head[1024..1028].copy_from_slice(&version.to_ne_bytes());
    head[1028..1032].copy_from_slice(&last.to_ne_bytes());
    head[page - 10..].copy_from_slice(b"SWAPSPACE2");
    cleanups.push(Cleanup::Swap(path.into(), Inode::of(file).ok_or("it has no inode")?));
    let done = file.write_all_at(&head, 0).and_then(|()| file.sync_all()).and_then(|()| swap_on(file));
    done.map_err(|e| {
        let why = if Errno::from_io_error(&e) == Some(Errno::INVAL) {
            "its file system cannot swap".into()
        } else {
            e.to_string()
        };
        format!("{}: {why}; {REMEDY}", path.display())
    })
}

/// The path now of what is swapped to.
pub(crate) fn area(tree: &Tree, inode: Inode) -> Option<PathBuf> {
    let mut paths = tree.swap_areas().into_iter().map(|area| tree.path(area.name.replace("\\040", " ")));
    paths.find(|path| Inode::at(path) == Some(inode))
}

/// Ends swapping to a device or file. Its pages are loaded into RAM first.
pub(crate) fn off(path: &Path, inode: Inode) -> std::io::Result<()> {
    let file: OwnedFd = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match Inode::of(&file) == Some(inode) {
        true => swap_off(&file),
        false => Err(std::io::Error::other("it has been moved")),
    }
}

/// The size of a new swap: what is asked for and a page for its header, or no more than the machine's RAM and
/// [`ZRAM_MAX`], on a disk no more than half of what is free.
pub(crate) fn size(tree: &Tree, path: Option<&Path>, bytes: Option<u64>) -> u64 {
    if let Some(bytes) = bytes {
        return (bytes.max(LEAST) + 4096).div_ceil(4096) * 4096;
    }
    let ram = tree.meminfo("MemTotal").max(64 << 20);
    let folder = path.map(|path| path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let room = match folder.map(rustix::fs::statvfs) {
        Some(Ok(disk)) => ZRAM_MAX.min(disk.f_bavail * disk.f_frsize / 2),
        _ => ZRAM_MAX,
    };
    ram.min(room) / 4096 * 4096
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

/// Swaps to a file or device whose first page is the head of a swap area, before all other swap.
#[allow(unsafe_code, reason = "swapon(2) takes a path")]
fn swap_on(file: impl AsFd) -> io::Result<()> {
    let path = descriptor(file);
    // SAFETY: the path lives through the call.
    done(unsafe { libc::swapon(path.as_ptr(), 0x8000 | PRIORITY_MAX as i32) })
}

/// Ends that; its pages are loaded into RAM first.
#[allow(unsafe_code, reason = "swapoff(2) takes a path")]
fn swap_off(file: impl AsFd) -> io::Result<()> {
    let path = descriptor(file);
    // SAFETY: as above.
    done(unsafe { libc::swapoff(path.as_ptr()) })
}
