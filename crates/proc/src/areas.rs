//! The mappings of watched processes: which are heap, and what the others have in RAM together.

use std::collections::HashMap;

use crate::maps::{Counts, Mapping};

/// A mapping as it was at a look.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Area {
    /// Its first address, and the one after its last.
    pub start: u64,
    pub end: u64,
    /// What it maps, as a hash of device, file and offset; `None`: memory without a file.
    pub file: Option<u64>,
    /// Private memory without a file and not a stack.
    pub heap: bool,
    pub counts: Counts,
}

impl Area {
    pub fn of(mapping: &Mapping) -> Area {
        let Mapping { start, end, rights, offset, device, inode, name, counts } = *mapping;
        let special = name.starts_with("[stack") || name.starts_with("[v");
        let file = (inode != 0).then(|| hash((offset, device, inode)));
        Area { start, end, file, heap: file.is_none() && rights.ends_with('p') && !special, counts }
    }
}

fn hash(of: impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// KiB of what is not heap. Processes that map the same part of a file have it once.
pub fn rest<'a>(all: impl Iterator<Item = &'a Area>) -> u64 {
    let mut files: HashMap<u64, u64> = HashMap::new();
    let mut own = 0;
    for area in all.filter(|area| !area.heap) {
        match area.file {
            Some(file) => {
                let most = files.entry(file).or_default();
                *most = (*most).max(area.counts.rss);
            }
            None => own += area.counts.rss,
        }
    }
    own + files.values().sum::<u64>()
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

    #[test]
    fn a_file_that_two_processes_map_is_there_once_and_their_stacks_are_not() {
        let (one, other) = (areas(), areas());
        assert_eq!(rest(one.iter()), 400 + 20 + 16);
        assert_eq!(rest(one.iter().chain(&other)), 400 + 2 * 20 + 16);
    }
}
