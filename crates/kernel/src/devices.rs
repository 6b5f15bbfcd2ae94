//! Swap devices, made and removed: zram, and a file (swapon(8), Documentation/admin-guide/blockdev/zram.rst).

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{fallocate, ioctl_setflags, FallocateFlags, IFlags};
use rustix::io::Errno;

use crate::cleanup::{keep, last_line, Cleanup};
use crate::files::write;
use coldframe_proc::Tree;

const CONTROL: &str = "/sys/class/zram-control";
/// Used before the machine's own swap.
const PRIORITY: &str = "32767";
/// Where the tools are that a user's PATH may lack.
const TOOLS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
/// The largest zram device: as zram-generator's on Fedora, the machine's RAM or this. Its table takes 0.4 % of its
/// size.
pub(crate) const ZRAM_MAX: u64 = 8 << 30;
/// Smaller swap is not worth a device; mkswap refuses less than ten pages.
const LEAST: u64 = 1 << 20;

/// Makes a zram device and swaps to it. Each step is recorded at once, so that a device that is half made is removed,
/// too.
pub(crate) fn zram(tree: &Tree, size: u64, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    let control = tree.path(CONTROL);
    if !control.is_dir() {
        let _ = Command::new("modprobe").arg("zram").env("PATH", TOOLS).output();
    }
    let number = std::fs::read_to_string(control.join("hot_add"))
        .map_err(|e| format!("this machine gives no zram device ({e}); as root: modprobe zram, or --swap FILE"))?;
    let number: u32 = number.trim().parse().map_err(|_| format!("zram gives no device but {number}"))?;
    cleanups.push(Cleanup::Zram(number));
    let block = tree.path(format!("/sys/block/zram{number}"));
    // A kernel without lz4 has another compressor, which stays.
    let _ = write(&block.join("comp_algorithm"), "lz4");
    write(&block.join("disksize"), size.to_string()).map_err(|e| format!("zram{number} gets no size: {e}"))?;
    let device = format!("/dev/zram{number}");
    on(&tree.path(&device), cleanups)?;
    Ok(device)
}

/// Removes a zram device.
pub(crate) fn remove(tree: &Tree, number: u32) -> Result<(), String> {
    let failed = |e: std::io::Error| {
        format!("zram{number} stays ({e}); as root: swapoff /dev/zram{number}; zramctl --reset /dev/zram{number}")
    };
    write(&tree.path(format!("/sys/block/zram{number}/reset")), "1").map_err(failed)?;
    write(&tree.path(CONTROL).join("hot_remove"), number.to_string()).map_err(failed)
}

/// Turns zswap on. Its old settings are recorded.
pub(crate) fn zswap(tree: &Tree, cleanups: &mut Vec<Cleanup>) -> Result<(), String> {
    // A kernel without lz4 keeps its compressor. Half of the RAM: the group's limit goes down by what zswap takes.
    for (name, value) in [("compressor", "lz4"), ("max_pool_percent", "50"), ("enabled", "Y")] {
        let path = tree.path(format!("/sys/module/zswap/parameters/{name}"));
        keep(&path, cleanups)?;
        let written = write(&path, value);
        written.or_else(|e| if name == "compressor" { Ok(()) } else { Err(format!("{}: {e}", path.display())) })?;
    }
    Ok(())
}

pub(crate) fn file(path: &Path, size: u64, cleanups: &mut Vec<Cleanup>) -> Result<String, String> {
    let shown = path.display();
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|e| format!("{shown}: {e}; give --swap the path of a new file on a disk"))?;
    cleanups.push(Cleanup::File(path.into()));
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
    file.sync_all().map_err(|e| format!("{shown}: {e}"))?;
    on(path, cleanups)?;
    Ok(shown.to_string())
}

/// What to do where a file cannot be swapped to: as swapon(8), which says EINVAL for tmpfs, overlay and others.
const REMEDY: &str = "give --swap a path on a disk with ext4, xfs or btrfs";

fn on(path: &Path, cleanups: &mut Vec<Cleanup>) -> Result<(), String> {
    for (tool, arguments) in [("mkswap", &[][..]), ("swapon", &["-p", PRIORITY][..])] {
        let done = Command::new(tool).args(arguments).arg(path).env("PATH", TOOLS).env("LC_ALL", "C").output();
        let done = done.map_err(|e| format!("{tool} cannot be started ({e}); install util-linux"))?;
        if !done.status.success() {
            let why = match last_line(&done.stderr) {
                why if why.ends_with("Invalid argument") => "its file system cannot swap".into(),
                why => why,
            };
            return Err(format!("{}: {why}; {REMEDY}", path.display()));
        }
    }
    cleanups.push(Cleanup::Swap(path.into()));
    Ok(())
}

/// Ends swapping to a device or file. Its pages are loaded into RAM first.
pub(crate) fn off(path: &Path) -> Result<(), String> {
    let failed = |why: String| format!("{} stays on as swap: {why}; as root: swapoff {0}", path.display());
    let done = Command::new("swapoff")
        .arg(path)
        .env("PATH", TOOLS)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| failed(e.to_string()))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(failed(last_line(&done.stderr))),
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
