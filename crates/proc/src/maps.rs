//! The mappings of a process and their counts: `/proc/PID/smaps` (`proc_pid_smaps(5)`).

use std::collections::HashMap;

/// A mapping. Counts are in KiB, as the kernel prints them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Mapping {
    /// Its first address, and the one after its last.
    pub start: u64,
    pub end: u64,
    /// What it maps, as a hash of device, file and offset; `None`: memory without a file.
    pub file: Option<u64>,
    /// Private memory without a file and not a stack.
    pub heap: bool,
    /// In RAM.
    pub rss: u64,
    /// In RAM, each page divided by the number of its users.
    pub pss: u64,
    /// Referenced since the bits were cleared.
    pub referenced: u64,
    /// In huge pages.
    pub huge: u64,
    /// In swap.
    pub swap: u64,
}

/// All mappings in the text of `smaps`.
pub fn mappings(text: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        // A field's name begins with a capital letter, an address never does.
        if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
            all.extend(head(line));
            continue;
        }
        let (Some(mapping), Some((name, value))) = (all.last_mut(), line.split_once(':')) else { continue };
        let place = match name {
            "Rss" => &mut mapping.rss,
            "Pss" => &mut mapping.pss,
            "Referenced" => &mut mapping.referenced,
            "AnonHugePages" => &mut mapping.huge,
            "Swap" => &mut mapping.swap,
            _ => continue,
        };
        *place = value.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    }
    all
}

/// `7f2c4000-7f2c8000 rw-p 00000000 00:00 0    [name]`
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let (rights, offset, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let name = words.next().unwrap_or("");
    let file = (inode != "0").then(|| hash(&[offset, device, inode]));
    let special = name.starts_with("[stack") || name.starts_with("[v");
    Some(Mapping { start, end, file, heap: file.is_none() && rights.ends_with('p') && !special, ..Mapping::default() })
}

fn hash(words: &[&str]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// KiB of what is not heap. Processes that map the same part of a file have it once.
pub fn rest<'a>(all: impl Iterator<Item = &'a Mapping>) -> u64 {
    let mut files: HashMap<u64, u64> = HashMap::new();
    let mut own = 0;
    for mapping in all.filter(|mapping| !mapping.heap) {
        match mapping.file {
            Some(file) => {
                let most = files.entry(file).or_default();
                *most = (*most).max(mapping.rss);
            }
            None => own += mapping.rss,
        }
    }
    own + files.values().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three mappings as Linux 6.18 prints them, with the fields that matter here and some that do not.
    const TEXT: &str = "\
00400000-004a0000 r-xp 00001000 fe:00 1234                               /usr/bin/a program
Size:                640 kB
Rss:                 400 kB
Pss:                 100 kB
Referenced:          300 kB
VmFlags: rd ex mr mw me
01c00000-01c80000 rw-p 00000000 00:00 0                                  [heap]
Size:                512 kB
Rss:                 480 kB
Pss:                 240 kB
Pss_Dirty:           240 kB
Referenced:           12 kB
AnonHugePages:         4 kB
Swap:                  8 kB
SwapPss:               8 kB
7ffd10000000-7ffd10021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  20 kB
7ffd10030000-7ffd10034000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
Rss:                  16 kB
";

    #[test]
    fn only_private_memory_without_a_file_is_heap() {
        let all = mappings(TEXT);
        assert_eq!(all.iter().map(|mapping| mapping.heap).collect::<Vec<_>>(), [false, true, false, false]);
        let heap = all[1];
        assert_eq!(
            (heap.start, heap.rss, heap.pss, heap.referenced, heap.huge, heap.swap),
            (0x1c0_0000, 480, 240, 12, 4, 8)
        );
    }

    #[test]
    fn a_file_that_two_processes_map_is_there_once_and_their_stacks_are_not() {
        let (one, other) = (mappings(TEXT), mappings(TEXT));
        assert_eq!(rest(one.iter()), 400 + 20 + 16);
        assert_eq!(rest(one.iter().chain(&other)), 400 + 2 * 20 + 16);
    }

    #[test]
    fn what_is_no_list_of_mappings_has_none() {
        assert_eq!(mappings(""), []);
        assert_eq!(mappings("Rss: 5 kB\nnonsense\n12-x\n"), []);
    }
}
