//! The guest's address ranges, from `/proc/PID/maps` of the QEMU that runs it.
//!
//! QEMU's own ranges are in the same list. The guest's are those between guest address 0 (`guest_base`) and the first
//! mapping of QEMU's executable: QEMU places a 64-bit guest below itself, and a 32-bit one into 4 GiB that it
//! reserves. QEMU never maps guest code as executable, since it runs a translation. So the rights of a file's
//! segments are read from its ELF header.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use coldframe_proc::{mappings, Mapping as Range};
use coldframe_store::Mapping;

/// The union of the tables seen in one recording.
#[derive(Default)]
pub struct Maps {
    mappings: BTreeSet<(u64, u64, String, String)>,
}

impl Maps {
    /// Adds a table: `base` is the host address of guest address 0, `bits` the guest's word size, `emulator` QEMU's
    /// file, and `program` the guest's.
    pub fn add(&mut self, text: &str, base: u64, bits: u8, emulator: &Path, program: &Path) {
        let program = program.canonicalize().unwrap_or_default();
        let lines: Vec<Range> = mappings(text);
        let itself = lines.iter().filter(|line| Path::new(line.name) == emulator).map(|line| line.start).min();
        let top = match bits {
            32 => base + (1 << 32),
            _ => itself.filter(|start| *start > base).unwrap_or(base),
        };
        let guest: Vec<&Range> = lines.iter().filter(|line| line.start >= base && line.end <= top).collect();
        let mut segments: Vec<(u64, u64)> = Vec::new();
        for line in guest.iter().filter(|line| line.name.starts_with('/') && line.offset == 0) {
            for (start, end, protection) in elf_segments(Path::new(line.name), line.start - base) {
                if self.mappings.insert((start, end, protection.into(), line.name.into())) {
                    segments.push((start, end));
                }
            }
        }
        let mut below: Option<&Range> = None;
        for line in guest {
            let (start, end) = (line.start - base, line.end - base);
            let before = below.replace(line);
            let touches = before.is_some_and(|b| b.end == line.start);
            // QEMU reserves the guest's address space by ranges without any right.
            if line.rights.starts_with("---") || self.covered(start, end) {
                continue;
            }
            let name = match line.name {
                "" if touches && before.is_some_and(|b| b.rights.starts_with("---")) && end - start >= 1 << 16 => {
                    "[stack]"
                }
                "" if touches && before.is_some_and(|b| Path::new(b.name) == program) => "[heap]",
                "" => "[anon]",
                name => name,
            };
            self.mappings.insert((start, end, line.rights.into(), name.into()));
        }
    }

    /// Whether the segments of one file already cover the range.
    fn covered(&self, start: u64, end: u64) -> bool {
        let file = |name: &str| name.starts_with('/');
        let mut at = start;
        for (from, to, _, name) in &self.mappings {
            if file(name) && *from <= at && at < *to {
                at = *to;
            }
        }
        at >= end
    }

    /// The table by address. A range that is covered by another one of the same name, seen before it grew, is left out.
    pub fn finish(self) -> Vec<Mapping> {
        let covers = |big: &&(u64, u64, String, String), small: &(u64, u64, String, String)| {
            *big != small && big.0 <= small.0 && small.1 <= big.1 && (&big.2, &big.3) == (&small.2, &small.3)
        };
        let small: Vec<_> =
            self.mappings.iter().filter(|s| self.mappings.iter().any(|b| covers(&b, s))).cloned().collect();
        let mapping = |(start, end, protection, name)| Mapping { name, start, end, protection };
        self.mappings.into_iter().filter(|m| !small.contains(m)).map(mapping).collect()
    }
}

/// The loadable segments of the ELF file mapped from its start at `at`: first byte, last byte + 1 (in whole pages),
/// rights.
fn elf_segments(path: &Path, at: u64) -> Vec<(u64, u64, &'static str)> {
    const PAGE: u64 = 4096;
    let loads = loads(path).unwrap_or_default();
    let Some(lowest) = loads.iter().map(|[_, address, _]| address & !(PAGE - 1)).min() else { return Vec::new() };
    let ranges = loads.into_iter().map(|[flags, address, size]| {
        let start = at.wrapping_add(address - lowest);
        let rights = match flags & 7 {
            5 => "r-xp",
            6 => "rw-p",
            7 => "rwxp",
            1 => "--xp",
            _ => "r--p",
        };
        (start & !(PAGE - 1), (start + size).next_multiple_of(PAGE), rights)
    });
    ranges.collect()
}

/// Flags, address and size in memory of each loadable segment, by the program headers, which follow the file's own.
fn loads(path: &Path) -> Option<Vec<[u64; 3]>> {
    const LOAD: u64 = 1;
    let mut head = Vec::new();
    File::open(path).ok()?.take(1 << 16).read_to_end(&mut head).ok()?;
    let word = |at: usize, bytes: usize| {
        let bytes = head.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte)))
    };
    if !head.starts_with(b"\x7fELF") || head.get(5) != Some(&1) {
        return None;
    }
    // Bytes of a word; where the file's header has place, size and number of the others; flags, address and size there.
    let (long, [place, size, number], [flags, address, memory]) = match head[4] {
        2 => (8, [32, 54, 56], [4, 16, 40]),
        _ => (4, [28, 42, 44], [24, 8, 20]),
    };
    let (place, size, number) = (word(place, long)? as usize, word(size, 2)? as usize, word(number, 2)? as usize);
    let headers = (0..number).map(|i| place + i * size).filter(|at| word(*at, 4) == Some(LOAD));
    headers.map(|at| Some([word(at + flags, 4)?, word(at + address, long)?, word(at + memory, long)?])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemus_own_ranges_are_left_out_and_guest_addresses_begin_at_the_base() {
        let text = "\
10000-20000 r--p 00000000 00:00 0 [low]
4000000000-4000001000 ---p 00000000 00:00 0
4000001000-4000801000 rw-p 00000000 00:00 0
4000900000-4000901000 rw-p 00000000 00:00 0
555555554000-555555580000 r-xp 00000000 fe:00 12   /usr/bin/qemu x
7ffff0000000-7ffff0001000 rw-p 00000000 00:00 0
";
        let mut maps = Maps::default();
        maps.add(text, 0, 64, Path::new("/usr/bin/qemu x"), Path::new("/none"));
        let got: Vec<_> = maps.finish().into_iter().map(|m| (m.start, m.end, m.name)).collect();
        let want = [
            (0x10000, 0x20000, "[low]"),
            (0x40_0000_1000, 0x40_0080_1000, "[stack]"),
            (0x40_0090_0000, 0x40_0090_1000, "[anon]"),
        ];
        assert_eq!(got, want.map(|(a, b, n)| (a, b, n.to_string())));

        let mut maps = Maps::default();
        maps.add(text, 0x40_0000_0000, 32, Path::new("/none"), Path::new("/none"));
        assert_eq!(maps.finish()[0].start, 0x1000);
    }

    #[test]
    fn rights_of_a_binary_come_from_its_own_header() {
        let own = std::env::current_exe().unwrap();
        let segments = elf_segments(&own, 0x1_0000_0000);
        assert!(segments.iter().any(|(start, end, rights)| *rights == "r-xp" && start < end), "{segments:x?}");
        assert!(segments.iter().all(|(start, _, _)| *start >= 0x1_0000_0000));
    }
}
