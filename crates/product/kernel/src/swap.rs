//! What there is to swap to, and what compressed pages take of RAM.

use std::path::{Path, PathBuf};

use crate::group::version::Version;
use crate::KernelError;
use coldframe_proc::{text, SwapArea, Tree, PAGE};

pub(crate) mod devices;

use devices::PRIORITY_MAX;

/// A kind of swap that coldframe makes and takes away again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwapKind {
    /// The program has no swap, whatever the machine has.
    None,
    /// A compressed device in RAM.
    Zram,
    /// A new file.
    File(PathBuf),
    /// A new file behind zswap, which compresses pages in RAM first.
    Zswap(PathBuf),
}

impl SwapKind {
    /// Reads `none`, `zram`, `zswap:FILE` or `FILE`; relative paths are of this process's folder.
    pub fn parse(text: &str) -> SwapKind {
        let absolute = |path: &str| std::path::absolute(path).unwrap_or_else(|_| path.into());
        match text.strip_prefix("zswap:") {
            Some(path) => SwapKind::Zswap(absolute(path)),
            None if text == "none" => SwapKind::None,
            None if text == "zram" => SwapKind::Zram,
            None => SwapKind::File(absolute(text)),
        }
    }

    /// The file to make.
    pub fn file(&self) -> Option<&Path> {
        match self {
            SwapKind::None | SwapKind::Zram => None,
            SwapKind::File(path) | SwapKind::Zswap(path) => Some(path),
        }
    }

    /// The size that it will have, bytes: for this many bytes of pages, or by the machine.
    pub fn size(&self, tree: &Tree, bytes: Option<u64>) -> u64 {
        devices::size(tree, self.file(), bytes)
    }

    /// Whether this kernel has it.
    ///
    /// # Errors
    /// It has not; the message has the remedy.
    pub fn check(&self, tree: &Tree) -> Result<(), KernelError> {
        let (folder, what, remedy) = match self {
            SwapKind::None | SwapKind::File(_) => return Ok(()),
            SwapKind::Zram => ("/sys/class/zram-control", "this kernel has no zram", "as root: modprobe zram"),
            SwapKind::Zswap(_) => ("/sys/module/zswap", "this kernel has no zswap", "use zram"),
        };
        match tree.path(folder).is_dir() {
            true => Ok(()),
            false => Err(KernelError::lacks(what, remedy)),
        }
    }
}

impl std::fmt::Display for SwapKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SwapKind::None => f.write_str("none"),
            SwapKind::Zram => f.write_str("zram"),
            SwapKind::File(path) => write!(f, "{}", path.display()),
            SwapKind::Zswap(path) => write!(f, "zswap:{}", path.display()),
        }
    }
}

/// The swap that is on.
#[derive(Debug, Clone, Default)]
pub struct Swaps(Vec<SwapArea>);

impl Swaps {
    /// Reads what is on.
    pub fn read(tree: &Tree) -> Swaps {
        Swaps(tree.swap_areas())
    }

    /// Bytes free.
    pub fn free(&self) -> u64 {
        self.0.iter().map(|area| area.size - area.used.min(area.size)).sum()
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.0.iter().map(|area| area.used).sum()
    }

    /// Whether some of it has room and stays: the swap of a run of coldframe's, which goes at the run's end, has the
    /// highest priority.
    pub fn lasts(&self) -> bool {
        self.0.iter().any(|area| area.used < area.size && area.priority < PRIORITY_MAX)
    }

    /// Whether some of it is in use on a disk, and not only compressed in RAM.
    pub fn on_disk(&self, tree: &Tree) -> bool {
        self.0.iter().any(|area| area.used > 0 && !area.is_zram()) && !tree.zswap()
    }

    /// An error if nothing can be swapped to.
    ///
    /// # Errors
    /// There is no swap, or it is full.
    pub fn ready(&self) -> Result<(), KernelError> {
        let what = match self.0.is_empty() {
            true => "this machine has no swap",
            false if self.free() == 0 => "all of this machine's swap is in use",
            false => return Ok(()),
        };
        Err(KernelError::lacks(what, "as root, give --swap zram or --swap FILE (a new file on a disk)"))
    }
}

/// The swap of one run, and its counters as they were before the run.
#[derive(Debug, Clone)]
pub struct SwapSpace {
    tree: Tree,
    version: Version,
    names: Vec<String>,
    compressed: u64,
    traffic: Traffic,
}

/// Bytes that the whole machine has moved to swap and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    out: u64,
    back: u64,
}

impl SwapSpace {
    /// All swap that is on now.
    pub fn on(tree: &Tree, version: Version) -> SwapSpace {
        SwapSpace::named(tree, version, Swaps::read(tree).0.into_iter().map(|area| area.name).collect())
    }

    /// A swap that was made for the run. The kernel uses it before all others.
    pub fn new(tree: &Tree, version: Version, name: String) -> SwapSpace {
        SwapSpace::named(tree, version, vec![name])
    }

    /// No swap.
    pub fn none(tree: &Tree, version: Version) -> SwapSpace {
        SwapSpace::named(tree, version, Vec::new())
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.names.is_empty()
    }

    fn named(tree: &Tree, version: Version, names: Vec<String>) -> SwapSpace {
        let mut space = SwapSpace { tree: tree.clone(), version, names, compressed: 0, traffic: traffic(tree) };
        space.compressed = space.pool();
        space
    }

    /// The names of the devices and files, and whether zswap is before them.
    pub fn words(&self) -> String {
        let names = self.names.join(", ");
        match self.tree.zswap() {
            _ if self.is_none() => "none".into(),
            true => format!("{names} behind zswap"),
            false => names,
        }
    }

    /// RAM that compressed pages take, which no cgroup is charged for. The third number of `mm_stat` is all memory of a
    /// zram device (Documentation/admin-guide/blockdev/zram.rst).
    fn pool(&self) -> u64 {
        let zram = |name: &String| {
            let device = name.strip_prefix("/dev/").filter(|device| device.starts_with("zram"))?;
            let stat = text(&self.tree.path(format!("/sys/block/{device}/mm_stat")));
            stat.split_whitespace().nth(2)?.parse::<u64>().ok()
        };
        let zswap = match self.version {
            Version::One if !self.is_none() => self.tree.meminfo("Zswap"),
            // The group pays for it.
            _ => 0,
        };
        self.names.iter().filter_map(zram).sum::<u64>() + zswap
    }

    /// RAM that compressed pages take more than before the run.
    pub fn compressed(&self) -> u64 {
        self.pool().saturating_sub(self.compressed)
    }

    /// Bytes that have left RAM for swap since the run's start, on the whole machine: compressed ones too.
    pub fn out(&self) -> u64 {
        traffic(&self.tree).out.saturating_sub(self.traffic.out)
    }

    /// Bytes that have come back, on the whole machine.
    pub fn back(&self) -> u64 {
        traffic(&self.tree).back.saturating_sub(self.traffic.back)
    }
}

/// `zswpout` counts pages that went to zswap, `pswpout` those that went to a device, zram too.
fn traffic(tree: &Tree) -> Traffic {
    let bytes = |names: [&str; 2]| tree.vmstat(&names) * PAGE;
    Traffic { out: bytes(["pswpout", "zswpout"]), back: bytes(["pswpin", "zswpin"]) }
}
