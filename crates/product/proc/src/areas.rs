//! The mappings of watched processes, and which of them are heap.

use crate::maps::{Counts, Mapping};

/// A mapping as it was at a look.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Area {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Private memory without a file and not a stack.
    pub heap: bool,
    /// Its counts.
    pub counts: Counts,
}

impl Area {
    /// From `maps` or `smaps`.
    pub fn of(mapping: &Mapping) -> Area {
        let Mapping { start, end, rights, inode, name, counts, .. } = *mapping;
        let special = name.starts_with("[stack") || name.starts_with("[v");
        Area { start, end, heap: inode == 0 && rights.ends_with('p') && !special, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 prints them.
    const TEXT: &str = "\
00400000-004a0000 r-xp 00001000 fe:00 1234                               /usr/bin/a program
Rss:                 400 kB
01c00000-01c80000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 480 kB
7ffd10000000-7ffd10021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  20 kB
7ffd10030000-7ffd10034000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
Rss:                  16 kB
";

    fn areas() -> Vec<Area> {
        crate::mappings(TEXT).iter().map(Area::of).collect()
    }

    #[test]
    fn only_private_memory_without_a_file_is_heap() {
        assert_eq!(areas().iter().map(|area| area.heap).collect::<Vec<_>>(), [false, true, false, false]);
    }
}
