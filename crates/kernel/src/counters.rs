//! What a memory group has counted: faults, refaults, memory by kind.

use std::path::Path;

use crate::files::number;
use crate::version::Version;
use coldframe_proc::{field, text};

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
    /// Bytes of data in RAM: heap, stacks, private data.
    pub data: u64,
    /// Bytes of data in swap.
    pub swapped: u64,
    /// Bytes of files in RAM.
    pub files: u64,
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
    pub(crate) fn read(version: Version, folder: &Path) -> Counters {
        let stat = text(&folder.join("memory.stat"));
        match version {
            Version::One => one(&stat, folder),
            Version::Two => two(&stat, folder),
        }
    }
}

/// `total_` is the group with those below it (Documentation/admin-guide/cgroup-v1/memory.rst, 5.2).
fn one(stat: &str, folder: &Path) -> Counters {
    let of = |name: &str| field(stat, &format!("total_{name}")).unwrap_or(0);
    Counters {
        faults: of("pgfault"),
        major_faults: of("pgmajfault"),
        refaults: of("workingset_refault_anon"),
        file_refaults: of("workingset_refault_file"),
        data: of("rss"),
        swapped: of("swap"),
        files: of("cache"),
        mapped: of("mapped_file"),
        kernel: number(&folder.join("memory.kmem.usage_in_bytes")).unwrap_or(0),
        locked: of("unevictable"),
        zswap: 0,
        killed: field(&text(&folder.join("memory.oom_control")), "oom_kill").unwrap_or(0),
    }
}

fn two(stat: &str, folder: &Path) -> Counters {
    let of = |name: &str| field(stat, name).unwrap_or(0);
    Counters {
        faults: of("pgfault"),
        major_faults: of("pgmajfault"),
        refaults: of("workingset_refault_anon"),
        file_refaults: of("workingset_refault_file"),
        data: of("anon"),
        swapped: number(&folder.join("memory.swap.current")).unwrap_or(0),
        files: of("file"),
        mapped: of("file_mapped"),
        kernel: of("kernel"),
        locked: of("unevictable"),
        zswap: of("zswap"),
        killed: field(&text(&folder.join("memory.events")), "oom_kill").unwrap_or(0),
    }
}
