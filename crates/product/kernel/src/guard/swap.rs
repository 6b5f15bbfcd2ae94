//! Swap that the guard makes: zram, and a file (swapon(8), Documentation/admin-guide/blockdev/zram.rst). A file may be
//! in a folder of another user, who can put a link in its place at any time. So it is opened once, and what is done to
//! it is done by that descriptor.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use rustix::fs::{fallocate, ioctl_setflags, FallocateFlags, IFlags};
use rustix::io::Errno;

use crate::files::write;
use crate::guard::change::Cleanup;
use crate::guard::cleanup::{keep, Cleanups};
use crate::inode::Inode;
use crate::swap::devices::{folder, swap_on, CONTROL, PRIORITY_RUN, SIZE_MIN};
use coldframe_proc::{Tree, PAGE};

/// Where the tools are that a user's PATH may lack.
const TOOLS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

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
    cleanups.push(Cleanup::Zram(number, Inode::from_path(&block).ok_or("its folder is not there")?));
    // A kernel without lz4 has another compressor, which stays.
    let (algorithm, limit) = how.split_once(' ').unwrap_or(("lz4", ""));
    let _ = write(&block.join("comp_algorithm"), algorithm);
    write(&block.join("disksize"), size.to_string()).map_err(|e| format!("zram{number} gets no size: {e}"))?;
    if !limit.is_empty() {
        write(&block.join("mem_limit"), limit).map_err(|e| format!("zram{number} gets no limit: {e}"))?;
    }
    let path = tree.path(format!("/dev/zram{number}"));
    let device = OpenOptions::new().write(true).open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    on(&device, &path, size, PRIORITY_RUN, cleanups)?;
    Ok(path.display().to_string())
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

pub(crate) fn file(path: &Path, size: u64, priority: i64, cleanups: &mut Cleanups) -> Result<String, String> {
    let shown = path.display();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|e| format!("{shown}: {e}; give --swap the path of a new file on a disk"))?;
    cleanups.push(Cleanup::File(path.into(), Inode::from_file(&file).ok_or("it has no inode")?));
    // Btrfs swaps only to a file whose pages it does not copy on writing; other file systems have no such flag.
    let _ = ioctl_setflags(&file, IFlags::NOCOW);
    fallocate(&file, FallocateFlags::empty(), 0, size.max(SIZE_MIN)).map_err(|e| match e {
        Errno::NOSPC | Errno::FBIG => {
            format!(
                "{shown}: no room for {} MiB of swap; give --swap a path on a disk with more",
                size.max(SIZE_MIN) >> 20
            )
        }
        _ => format!("{shown}: {e}; {REMEDY}"),
    })?;
    on(&file, path, size.max(SIZE_MIN), priority, cleanups)?;
    Ok(shown.to_string())
}

/// What to do where a file cannot be swapped to: as swapon(8), which says EINVAL for tmpfs, overlay and others.
const REMEDY: &str = "give --swap a path on a disk with ext4, xfs or btrfs";

/// Writes the head of a swap area (`union swap_header` of include/linux/swap.h) and swaps to it.
fn on(file: &File, path: &Path, size: u64, priority: i64, cleanups: &mut Cleanups) -> Result<(), String> {
    let (page, version, last) = (PAGE as usize, 1u32, (size / PAGE - 1) as u32);
    let mut head = vec![0; page];
    head[1024..1028].copy_from_slice(&version.to_ne_bytes());
    head[1028..1032].copy_from_slice(&last.to_ne_bytes());
    head[page - 10..].copy_from_slice(b"SWAPSPACE2");
    cleanups.push(Cleanup::Swap(path.into(), Inode::from_file(file).ok_or("it has no inode")?));
    let done = file.write_all_at(&head, 0).and_then(|()| file.sync_all()).and_then(|()| swap_on(file, priority));
    done.map_err(|e| {
        let why = if Errno::from_io_error(&e) == Some(Errno::INVAL) {
            "its file system cannot swap".into()
        } else {
            e.to_string()
        };
        format!("{}: {why}; {REMEDY}", path.display())
    })
}
