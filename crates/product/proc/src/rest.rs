//! What processes have in RAM besides their heaps, by kind: code, mapped files by name, shared memory, stacks.

use crate::files::{add_files, is_shared, Files};
use crate::maps::{mappings, Mapping};
use crate::process::Process;

/// Bytes in RAM besides the heap.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rest {
    /// Shared memory.
    pub shared: u64,
    /// Stacks of first threads; another thread's stack looks as a heap does.
    pub stacks: u64,
    /// Pages of mapped files that a process has changed for itself: static data.
    pub data: u64,
    /// All other mapped files, programs and libraries.
    pub files: Files,
    /// The code of programs and libraries: first address, address after it, the file's name.
    pub texts: Vec<(u64, u64, String)>,
}

impl Rest {
    /// Of some processes. A file that several have mapped is there once, and the pages of each are all its own.
    /// `without`: words in paths of files that do not count.
    pub fn of(processes: &[u32], without: &[&str]) -> Rest {
        let mut rest = Rest::default();
        for process in processes {
            let text = Process::of(*process).smaps().unwrap_or_default();
            let mut all = mappings(&text);
            all.iter_mut().for_each(|mapping| mapping.counts.pss = 0);
            rest.add(&all, without);
        }
        rest
    }

    /// Adds what a process maps now. Of pages that it shares, it has its part.
    pub fn add(&mut self, mappings: &[Mapping], without: &[&str]) {
        let counts = |mapping: &&Mapping| !without.iter().any(|word| mapping.name.contains(word));
        add_files(&mut self.files, &mappings.iter().filter(counts).copied().collect::<Vec<_>>());
        let text = |mapping: &&Mapping| mapping.inode != 0 && mapping.rights.contains('x');
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        self.texts.extend(mappings.iter().filter(text).map(|mapping| (mapping.start, mapping.end, name(mapping.name))));
        for mapping in mappings.iter().filter(counts) {
            let share = |kib: u64| (kib * 1024) as f64 * mapping.counts.share();
            let bytes = share(mapping.counts.rss) as u64;
            match mapping.inode {
                _ if is_shared(mapping.name) => self.shared += bytes,
                0 if mapping.name.starts_with("[stack") => self.stacks += bytes,
                0 => {}
                _ => self.data += share(mapping.counts.anonymous.min(mapping.counts.rss)) as u64,
            }
        }
    }

    /// Programs and libraries, or all other files.
    pub fn in_files(&self, code: bool) -> u64 {
        self.files.values().filter(|file| file.code == code).map(|file| file.resident).sum()
    }

    /// All of it.
    pub fn sum(&self) -> u64 {
        self.shared + self.stacks + self.data + self.in_files(true) + self.in_files(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-004a0000 r-xp 00001000 fe:00 1234                               /usr/bin/a program
Rss:                 400 kB
004a0000-004b0000 rw-p 000a1000 fe:00 1234                               /usr/bin/a program
Rss:                  40 kB
Anonymous:            30 kB
01c00000-01c80000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 480 kB
7f0000000000-7f0000100000 r--s 00000000 fe:00 99                         /data/model.bin
Rss:                1000 kB
Referenced:          700 kB
7f0000100000-7f0000110000 r--s 00100000 fe:00 99                         /data/model.bin
Rss:                  24 kB
7ffd10000000-7ffd10021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  20 kB
7ffd10030000-7ffd10034000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
Rss:                  16 kB
";

    #[test]
    fn each_kind_has_its_own_sum_and_two_processes_have_a_file_once() {
        let mut rest = Rest::default();
        rest.add(&mappings(TEXT), &[]);
        rest.add(&mappings(TEXT), &[]);
        let kib = |bytes: u64| bytes / 1024;
        assert_eq!([rest.in_files(true), rest.shared, rest.stacks].map(kib), [410, 32, 40]);
        let model = rest.files["/data/model.bin"];
        assert_eq!([model.mapped, model.resident, model.referenced].map(kib), [1088, 1024, 700]);
        assert_eq!(kib(rest.sum()), 2 * 30 + 410 + 32 + 40 + 1024);
        // Five workers that use one shared memory have it once.
        let shared = "\
7f00-7f01 rw-s 00000000 00:01 77                         /dev/zero (deleted)
Rss:               65536 kB
Pss:               13107 kB
";
        let mut workers = Rest::default();
        (0..5).for_each(|_| workers.add(&mappings(shared), &[]));
        assert_eq!(kib(workers.shared), 65_535);
        let mut without = Rest::default();
        without.add(&mappings(TEXT), &["model", "/dev/zero"]);
        assert_eq!((without.in_files(false), without.shared), (0, 0));
    }
}
