//! Prefetching lists on disk, so that a list serves the next start of the same program: its first fetch has a list.
//!
//! Addresses change with each start. So a page is named by its mapping and its distance in it: from the start of the
//! heap; from the end of other anonymous mappings, which grow downward, and which are counted from the highest one
//! down. Another layout makes a list that is wrong in part. That costs reads and nothing else: a list names pages to
//! load, and never what is in them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use coldframe_proc::{mappings, Mapping, Process};

use crate::files::hash;
use crate::parking::pages::{common, Pages};

/// The name of the mapping of the heap.
const HEAP: &str = "[heap]";
/// The most files in the folder; the oldest goes first.
const FILES_MAX: usize = 64;

/// By mapping, the distances of its pages.
type Stored = BTreeMap<String, Vec<Range<u64>>>;

/// The lists of a user, in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Lists(pub(crate) PathBuf);

impl Lists {
    /// The file of each process: by its program and arguments, and counted if several have the same.
    fn files(&self, processes: impl Iterator<Item = u32>) -> Vec<(u32, PathBuf)> {
        let mut same = BTreeMap::new();
        let file = |process: u32| {
            let entry = Process::of(process);
            let program = std::fs::read_link(entry.file("exe")).unwrap_or_default();
            let key = hash(&format!("{}\0{}", program.display(), entry.command_line().join("\0")));
            let number = same.entry(key).and_modify(|number| *number += 1).or_insert(1);
            (process, self.0.join(format!("{key:016x}-{number}.list")))
        };
        processes.map(file).collect()
    }

    /// What an earlier start of these processes' programs used, at the addresses of now.
    pub(crate) fn load(&self, processes: &[u32]) -> Pages {
        let read = |(process, file): (u32, PathBuf)| {
            let stored: Stored = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
            Some((process, addresses(&stored, &Process::of(process).maps())))
        };
        Pages(self.files(processes.iter().copied()).into_iter().filter_map(read).collect())
    }

    /// Keeps lists. A list that cannot be written is missed at the next start only.
    pub(crate) fn save(&self, pages: &Pages) {
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        for (process, file) in self.files(pages.0.keys().copied()) {
            let stored = distances(&pages.0[&process], &Process::of(process).maps());
            if !stored.is_empty() {
                let new = file.with_extension(std::process::id().to_string());
                let text = serde_json::to_vec(&stored).expect("plain data has a JSON form");
                let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file));
            }
        }
        prune(&self.0);
    }
}

fn prune(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort();
    let many = files.len().saturating_sub(FILES_MAX);
    files[..many].iter().for_each(|(_, path)| drop(std::fs::remove_file(path)));
}

/// The mappings that a list names, each with its name in a list.
fn named(maps: &str) -> Vec<(String, Mapping<'_>)> {
    let mut mappings = mappings(maps);
    mappings.retain(|mapping| mapping.rights.starts_with("rw") && (mapping.name.is_empty() || mapping.name == HEAP));
    let name =
        |(number, mapping): (usize, Mapping<'_>)| if is_heap(&mapping) { HEAP.into() } else { number.to_string() };
    mappings.into_iter().rev().enumerate().map(|(number, mapping)| (name((number, mapping)), mapping)).collect()
}

fn is_heap(mapping: &Mapping) -> bool {
    mapping.name == HEAP
}

/// The distances of pages in their mappings.
fn distances(ranges: &[Range<u64>], maps: &str) -> Stored {
    let within = |(name, mapping): (String, Mapping)| {
        let first = ranges.partition_point(|range| range.end <= mapping.start);
        let behind = ranges.partition_point(|range| range.start < mapping.end);
        let distance = |range: Range<u64>| match is_heap(&mapping) {
            true => range.start - mapping.start..range.end - mapping.start,
            false => mapping.end - range.end..mapping.end - range.start,
        };
        let pages = common(ranges.get(first..behind)?, std::slice::from_ref(&(mapping.start..mapping.end)));
        (!pages.is_empty()).then(|| (name, pages.into_iter().map(distance).collect()))
    };
    named(maps).into_iter().filter_map(within).collect()
}

/// The addresses of these distances, in order, without those that are outside of their mappings.
fn addresses(stored: &Stored, maps: &str) -> Vec<Range<u64>> {
    let mut addresses = Vec::new();
    for (name, mapping) in named(maps) {
        let address = |range: &Range<u64>| match is_heap(&mapping) {
            true => mapping.start.saturating_add(range.start)..mapping.start.saturating_add(range.end),
            false => mapping.end.saturating_sub(range.end)..mapping.end.saturating_sub(range.start),
        };
        let ranges = stored.get(&name).into_iter().flatten().map(address);
        addresses.extend(
            ranges.filter(|range| mapping.start <= range.start && range.start < range.end && range.end <= mapping.end),
        );
    }
    addresses.sort_by_key(|range| range.start);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0000-55d1000 r-xp 00000000 fe:00 12  /usr/bin/sort
55e0000-55f0000 rw-p 00000000 00:00 0  [heap]
7f00000-7f10000 rw-p 00000000 00:00 0
7f20000-7f24000 rw-p 00000000 fe:00 12  /lib/libc.so.6
7f30000-7f31000 rw-p 00000000 00:00 0
";
    const LATER: &str = "\
6600000-6620000 rw-p 00000000 00:00 0  [heap]
7a00000-7a20000 rw-p 00000000 00:00 0
7a30000-7a31000 rw-p 00000000 00:00 0
";

    #[test]
    fn a_list_names_the_same_pages_where_the_next_start_has_them() {
        let used = [0x55e_2000..0x55e_4000, 0x7f0_0000..0x7f0_1000, 0x7f0_f000..0x7f1_0000, 0x7f2_1000..0x7f2_2000];
        let stored = distances(&used, MAPS);
        assert_eq!(addresses(&stored, MAPS), used[..3]);
        assert_eq!(addresses(&stored, LATER), [0x660_2000..0x660_4000, 0x7a1_0000..0x7a1_1000, 0x7a1_f000..0x7a2_0000]);
        assert_eq!(addresses(&stored, "6600000-6601000 rw-p 00000000 00:00 0  [heap]\n"), []);
    }

    #[test]
    fn a_file_that_is_no_list_is_no_list_and_the_oldest_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let (lists, own) = (Lists(folder.path().join("lists")), std::process::id());
        let maps = Process::of(own).maps();
        let (_, heap) = named(&maps).into_iter().last().unwrap();
        let page = heap.start..heap.start + 4096;
        let pages = Pages(BTreeMap::from([(own, vec![page])]));
        lists.save(&pages);
        assert_eq!(lists.load(&[own]).0[&own], pages.0[&own]);
        let (_, file) = lists.files([own].into_iter()).remove(0);
        for text in
            ["", "[]", "{\"[heap]\":[{\"start\":9,\"end\":1}]}", "{\"0\":[{\"start\":0,\"end\":18446744073709551615}]}"]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(lists.load(&[own]).bytes(), 0, "{text}");
        }
        for number in 0..2 * FILES_MAX {
            std::fs::write(lists.0.join(number.to_string()), "").unwrap();
        }
        lists.save(&pages);
        assert_eq!(std::fs::read_dir(&lists.0).unwrap().count(), FILES_MAX);
        assert_eq!(lists.load(&[own]).0[&own], pages.0[&own]);
    }
}
