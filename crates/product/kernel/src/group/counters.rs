//! What a memory group has counted: faults, refaults, memory by kind.

use std::path::Path;

use crate::files::number;
use crate::group::version::Version;
use coldframe_proc::{field, text, PAGE};

/// The counters of a group, with those of the groups below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Page faults.
    pub faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Pages of data that came back from swap.
    pub refaults: u64,
    /// Pages of files that had been dropped and came back.
    pub file_refaults: u64,
    /// Of both, those that came back so soon that a somewhat larger group would have kept them (refault distance).
    pub near: u64,
    /// Bytes that left for swap, compressed ones too; `None`: this kernel does not count them for a group.
    pub out: Option<u64>,
    /// Bytes that came back; `None`: as above.
    pub back: Option<u64>,
    /// Bytes of data in RAM: heap, stacks, private data.
    pub data: u64,
    /// Bytes of data in swap.
    pub swapped: u64,
    /// Bytes of files in RAM.
    pub files: u64,
    /// Of those, shared memory, and files of a tmpfs.
    pub shared: u64,
    /// Bytes of files that are mapped.
    pub mapped: u64,
    /// Bytes of the kernel's own: page tables, buffers.
    pub kernel: u64,
    /// Bytes that cannot leave: locked.
    pub locked: u64,
    /// Bytes of compressed pages in zswap that the group itself pays for (v2).
    pub zswap: u64,
    /// Processes that the kernel has killed for lack of memory.
    pub killed: u64,
}

impl Counters {
    /// The names in `memory.stat` of both versions. `total_` of v1 is the group with those below it
    /// (Documentation/admin-guide/cgroup-v1/memory.rst, 5.2); v2 has nothing else.
    pub(crate) fn read(version: Version, folder: &Path) -> Counters {
        let stat = text(&folder.join("memory.stat"));
        let single = |file: &str| number(&folder.join(file)).unwrap_or(0);
        let killed_in = |file: &str| field(&text(&folder.join(file)), "oom_kill").unwrap_or(0);
        let by_version = |v1: &str, v2: &str| match version {
            Version::One => field(&stat, &format!("total_{v1}")).unwrap_or(0),
            Version::Two => field(&stat, v2).unwrap_or(0),
        };
        let same = |name: &str| by_version(name, name);
        let (swapped, kernel, killed) = match version {
            Version::One => (same("swap"), single("memory.kmem.usage_in_bytes"), killed_in("memory.oom_control")),
            Version::Two => (single("memory.swap.current"), same("kernel"), killed_in("memory.events")),
        };
        // With v2 since Linux 6.12. Those of zswap are there where the kernel has it.
        let moved = |device: &str, zswap: &str| {
            let pages = field(&stat, device).filter(|_| version == Version::Two)?;
            Some((pages + field(&stat, zswap).unwrap_or(0)) * PAGE)
        };
        Counters {
            faults: same("pgfault"),
            major_faults: same("pgmajfault"),
            refaults: same("workingset_refault_anon"),
            file_refaults: same("workingset_refault_file"),
            near: same("workingset_activate_anon") + same("workingset_activate_file"),
            out: moved("pswpout", "zswpout"),
            back: moved("pswpin", "zswpin"),
            data: by_version("rss", "anon"),
            swapped,
            files: by_version("cache", "file"),
            shared: same("shmem"),
            mapped: by_version("mapped_file", "file_mapped"),
            kernel,
            locked: same("unevictable"),
            zswap: if version == Version::Two { same("zswap") } else { 0 },
            killed,
        }
    }

    /// Bytes that came back from swap: by the kernel's count, or by that of pages that had left and came back.
    pub(crate) fn swapped_in(&self) -> u64 {
        self.back.unwrap_or(self.refaults * PAGE)
    }
}
