//! Slow memory, in which pages are read where they are (DR.Swap, TCAD 2016, section III.B): a memory file, on a NUMA
//! node of its own (CXL, persistent memory) or in a tmpfs.
//!
//! The managed addresses are a private mapping of this file, so a page's slot is at the page's own place in the file. A
//! read of a page that is out maps its slot, write-protected; a write copies the page to DRAM.
//!
//! The file has no memory policy, since the kernel would take the private copies in RAM by it, too: a thread that
//! writes to a new slot has the node's policy meanwhile.
//!
//! The kernel must not swap the file out: it would bring such a page back at a touch, without a message. So what is
//! written is locked.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{fstatfs, ftruncate, memfd_create, MemfdFlags};

use crate::swap::device::{nameless, open_folder, Device};
use crate::sys::{self, fatal, Errno, Sys};
use crate::{LiveError, PAGE};

/// `include/uapi/linux/magic.h`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Pause before the next request for room, in microseconds.
const SPACE_US: u64 = 100_000;

/// A memory file with a slot for each page.
#[derive(Debug)]
pub struct Slow {
    file: RawFd,
    /// The file, mapped, so that what is touched here stays in memory.
    at: usize,
    len: usize,
    node: Option<Policy>,
}

impl Slow {
    /// `place`: `node:N`, or a folder of a tmpfs. For `pages` pages.
    ///
    /// # Errors
    /// The place is none of these, or the kernel does not give the memory.
    pub fn open(place: &str, pages: usize) -> Result<(Slow, Device), LiveError> {
        let len = pages * PAGE;
        let bad = |reason: String| LiveError::Backing { path: place.into(), reason };
        let node = place.strip_prefix("node:").map(|n| n.parse::<usize>());
        let file = match node {
            Some(Ok(n)) if Path::new(&format!("/sys/devices/system/node/node{n}")).exists() => {
                memfd_create("coldframe slow memory", MemfdFlags::CLOEXEC)
            }
            Some(Ok(n)) => {
                let there = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
                return Err(bad(format!("there is no node {n}; there are {}", there.trim())));
            }
            Some(Err(_)) => return Err(bad("a node is given by its number, as node:1".into())),
            None => in_tmpfs(Path::new(place)).map_err(bad)?,
        };
        let file = file.map_err(|e| bad(sys::words(e).to_string()))?;
        let at = ftruncate(&file, len as u64).and_then(|_| sys::map_file(file.as_raw_fd(), len, libc::PROT_READ));
        let at = at.map_err(|e| bad(format!("its memory cannot be mapped: {}", sys::words(e))))?;
        let device = Device::new(sys::move_high(file), Path::new(place), None, None);
        let node = node.and_then(Result::ok).map(Policy::only).transpose();
        let node = node.and_then(|node| node.map(|only| only.during(|| ()).map(|()| only)).transpose());
        let node = node.map_err(|e| bad(format!("the kernel gives no memory of this node: {}", sys::words(e))))?;
        let slow = Slow { file: device.raw(), at, len, node };
        slow.stay_in_memory()?;
        Ok((slow, device))
    }

    fn stay_in_memory(&self) -> Result<(), LiveError> {
        let on_fault = libc::MLOCK_ONFAULT as usize;
        // SAFETY: memory of ours.
        let locked = unsafe { sys::call(libc::SYS_mlock2, [self.at, self.len, on_fault, 0, 0, 0]) };
        let swaps = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
        match locked {
            Err(error) if swaps => Err(LiveError::Missing {
                feature: "slow memory",
                reason: format!("the kernel could swap it out, since it cannot be locked ({})", sys::words(error)),
                remedy: "raise `ulimit -l`, run as root, or switch the machine's swap off",
            }),
            _ => Ok(()),
        }
    }

    pub fn file(&self) -> RawFd {
        self.file
    }

    /// Writes a page into its slot, which may be a `new` one. While there is no room for it, this waits.
    pub fn put(&self, device: &Device, page: usize, from: usize, new: bool) {
        match new {
            true => self.on_node(|_| self.write(device, page, from)),
            false => self.write(device, page, from),
        }
    }

    fn write(&self, device: &Device, page: usize, from: usize) {
        let mut reported = false;
        loop {
            // SAFETY: a page of the caller's.
            match unsafe { device.write(from, PAGE, (page * PAGE) as u64) } {
                Ok(()) => break,
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    if !std::mem::replace(&mut reported, true) {
                        let path = device.path().display();
                        fatal::say(format_args!(
                            "{path}: no room in slow memory; the program waits until there is some"
                        ));
                    }
                    sys::sleep_us(SPACE_US);
                }
                Err(error) => fatal::stop(format_args!("{}: {}", device.path().display(), sys::words(error))),
            }
        }
        // SAFETY: the file has this page now.
        unsafe { ((self.at + page * PAGE) as *const u8).read_volatile() };
    }

    /// Runs `work`, whose new memory is of the slow node, with the address of the slots. A thread of the program seldom
    /// comes here, and a filter of the program's could end it for the policy: there only the place is another.
    pub fn on_node(&self, work: impl Fn(usize)) {
        let node = self.node.filter(|_| !sys::pids::pager_is_elsewhere());
        if node.is_none_or(|node| node.during(|| work(self.at)).is_err()) {
            work(self.at);
        }
    }

    pub fn free(&self, page: usize, pages: usize) {
        let mode = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as usize;
        // SAFETY: no pointers. If it fails, the memory is only used longer.
        let _ = unsafe { sys::call(libc::SYS_fallocate, [self.file as usize, mode, page * PAGE, pages * PAGE, 0, 0]) };
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // SAFETY: no thread reads it any more.
        unsafe { sys::unmap_memory(self.at, self.len) };
    }
}

/// A thread's policy for new memory: its mode, and the nodes as a mask.
#[derive(Clone, Copy, Debug)]
struct Policy {
    mode: libc::c_int,
    nodes: [u64; 16],
}

impl Policy {
    fn only(node: usize) -> Sys<Policy> {
        let mut nodes = [0; 16];
        *nodes.get_mut(node / 64).ok_or(Errno::INVAL)? = 1 << (node % 64);
        Ok(Policy { mode: libc::MPOL_BIND, nodes })
    }

    /// Runs `work` with this policy; if that is refused, not at all.
    fn during(&self, work: impl FnOnce()) -> Sys<()> {
        let mut before = Policy { mode: 0, nodes: [0; 16] };
        let bits = 8 * size_of_val(&before.nodes);
        let into = [&raw mut before.mode as usize, before.nodes.as_mut_ptr() as usize, bits, 0, 0, 0];
        // SAFETY: there is room for both.
        unsafe { sys::call(libc::SYS_get_mempolicy, into) }?;
        // SAFETY: the mask lives through the call.
        let set = |to: &Policy| unsafe {
            sys::call(libc::SYS_set_mempolicy, [to.mode as usize, to.nodes.as_ptr() as usize, bits, 0, 0, 0])
        };
        set(self)?;
        work();
        // What was allowed a moment ago.
        let _ = set(&before);
        Ok(())
    }
}

/// A file in a tmpfs: the kernel watches private mappings of no other file. The error is a reason.
fn in_tmpfs(path: &Path) -> Result<Sys<OwnedFd>, String> {
    const DAX: &str = "make it a node (daxctl reconfigure-device --mode=system-ram), and give node:N";
    match std::fs::metadata(path) {
        Err(error) => return Err(format!("{error}; give node:N, or a folder of a tmpfs (/dev/shm)")),
        Ok(meta) if !meta.is_dir() => return Err(format!("it is no folder; if it is a DAX device, {DAX}")),
        Ok(_) => {}
    }
    let folder = match open_folder(path) {
        Ok(folder) => folder,
        Err(error) => return Ok(Err(error)),
    };
    match fstatfs(&folder) {
        Ok(about) if about.f_type as u64 == TMPFS_MAGIC => Ok(nameless(folder.as_raw_fd())),
        _ => Err(format!(
            "the kernel cannot watch private mappings of its files; give a folder of a tmpfs, or if it is DAX, {DAX}"
        )),
    }
}
