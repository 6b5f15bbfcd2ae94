//! What there is to swap to, and what compressed pages take of RAM.

use std::path::{Path, PathBuf};

use crate::group::version::Version;
use crate::KernelError;
use coldframe_proc::{text, SwapArea, Tree};

pub(crate) mod devices;

use devices::PRIORITY_RUN;

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

    /// The names of all kinds.
    pub const WORDS: [&'static str; 4] = ["none", "zram", "file", "zswap"];

    /// Its name, without its file.
    pub fn word(&self) -> &'static str {
        SwapKind::WORDS[match self {
            SwapKind::None => 0,
            SwapKind::Zram => 1,
            SwapKind::File(_) => 2,
            SwapKind::Zswap(_) => 3,
        }]
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

    /// Whether some of it has room and stays: the swap of a run of coldframe's, which goes at the run's end, has a
    /// higher priority.
    pub fn lasts(&self) -> bool {
        self.0.iter().any(|area| area.used < area.size && area.priority < PRIORITY_RUN)
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

/// The swap of one run.
#[derive(Debug, Clone)]
pub struct SwapSpace {
    tree: Tree,
    names: Vec<String>,
    /// Whether zswap has pages at a cost that no group pays.
    zswap: bool,
    /// The compressed pages before the run.
    before: Pool,
}

/// Compressed pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pool {
    /// Bytes of the pages.
    pub held: u64,
    /// Bytes of RAM that they take.
    pub taken: u64,
}

impl SwapSpace {
    /// All swap that is on now.
    pub fn on(tree: &Tree, version: Version) -> SwapSpace {
        SwapSpace::named(tree, version, Swaps::read(tree).0.iter().map(SwapArea::name).collect())
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
        // With v2 the group pays for it.
        let zswap = version == Version::One && tree.zswap();
        let mut space = SwapSpace { tree: tree.clone(), names, zswap, before: Pool::default() };
        space.before = space.pool();
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

    /// The zram devices that are swapped to now: pages of a run may lie on that of another one.
    fn zrams(&self) -> Vec<String> {
        self.tree.swap_areas().iter().filter_map(|area| area.zram().map(String::from)).collect()
    }

    /// The compressed pages that no cgroup is charged for. The first number of `mm_stat` is the bytes of a zram
    /// device's pages, and the third is all memory of it (Documentation/admin-guide/blockdev/zram.rst).
    fn pool(&self) -> Pool {
        let mut pool = Pool::default();
        for device in self.zrams() {
            let stat = text(&self.tree.path(format!("/sys/block/{device}/mm_stat")));
            let of = |n: usize| stat.split_whitespace().nth(n).and_then(|word| word.parse().ok()).unwrap_or(0);
            pool = Pool { held: pool.held + of(0), taken: pool.taken + of(2) };
        }
        if self.zswap {
            let of = |name| self.tree.meminfo(name);
            pool = Pool { held: pool.held + of("Zswapped"), taken: pool.taken + of("Zswap") };
        }
        pool
    }

    /// The compressed pages of a group with so many bytes in swap: its part of all. `None`: it is not known how many;
    /// those that are more than before the run.
    pub fn compressed(&self, swapped: Option<u64>) -> Pool {
        let (now, before) = (self.pool(), self.before);
        let held = swapped.unwrap_or(now.held.saturating_sub(before.held)).min(now.held);
        let taken = match swapped {
            Some(_) => (u128::from(now.taken) * u128::from(held) / u128::from(now.held.max(1))) as u64,
            None => now.taken.saturating_sub(before.taken),
        };
        Pool { held, taken }
    }
}
