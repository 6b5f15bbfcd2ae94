//! What processes have in RAM besides their heaps, by kind: code, mapped files by name, shared memory, stacks.

use std::collections::{BTreeMap, HashSet};

use crate::maps::{mappings, Mapping};
use crate::process::Process;

/// Names of memory that processes share, and that is no file of a disk.
const SHARED: [&str; 4] = ["/dev/shm/", "/dev/zero", "/SYSV", "/memfd:"];

/// Bytes in RAM besides the heap.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rest {
    /// Programs and libraries.
    pub code: u64,
    /// Shared memory.
    pub shared: u64,
    /// Stacks of first threads; another thread's stack looks as a heap does.
    pub stacks: u64,
    /// All other mapped files, by their paths.
    pub files: BTreeMap<String, u64>,
    /// The code of programs and libraries: first address, address after it, the file's name.
    pub texts: Vec<(u64, u64, String)>,
}

impl Rest {
    /// Of some processes. A file that several have mapped is there once. `without`: words in paths of files that do not
    /// count.
    pub fn of(processes: &[u32], without: &[&str]) -> Rest {
        let mut all = Rest::default();
        for process in processes {
            let text = Process::of(*process).smaps().unwrap_or_default();
            all.add(&mappings(&text), without);
        }
        all
    }

    fn add(&mut self, mappings: &[Mapping], without: &[&str]) {
        let code: HashSet<&str> =
            mappings.iter().filter(|one| one.rights.contains('x')).map(|mapping| mapping.name).collect();
        let (mut files, mut programs) = (BTreeMap::new(), 0);
        let text = |mapping: &&Mapping| mapping.inode != 0 && mapping.rights.contains('x');
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        self.texts.extend(mappings.iter().filter(text).map(|one| (one.start, one.end, name(one.name))));
        for mapping in mappings {
            let (name, bytes) = (mapping.name, mapping.counts.rss * 1024);
            match mapping.inode {
                _ if without.iter().any(|word| name.contains(word)) => {}
                _ if SHARED.iter().any(|start| name.starts_with(start)) => self.shared += bytes,
                0 if name.starts_with("[stack") => self.stacks += bytes,
                0 => {}
                _ if code.contains(name) => programs += bytes,
                _ => *files.entry(name.to_string()).or_insert(0) += bytes,
            }
        }
        self.code = self.code.max(programs);
        for (name, bytes) in files {
            let most = self.files.entry(name).or_default();
            *most = (*most).max(bytes);
        }
    }

    /// All of it.
    pub fn sum(&self) -> u64 {
        self.code + self.shared + self.stacks + self.files.values().sum::<u64>()
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
01c00000-01c80000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 480 kB
7f0000000000-7f0000100000 r--s 00000000 fe:00 99                         /data/model.bin
Rss:                1000 kB
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
        assert_eq!([rest.code, rest.shared, rest.stacks].map(kib), [440, 32, 40]);
        assert_eq!(rest.files.iter().collect::<Vec<_>>(), [(&"/data/model.bin".to_string(), &(1024 << 10))]);
        assert_eq!(kib(rest.sum()), 440 + 32 + 40 + 1024);
        let mut without = Rest::default();
        without.add(&mappings(TEXT), &["model", "/dev/zero"]);
        assert_eq!((without.files.len(), without.shared), (0, 0));
    }
}
