//! What the memory is that is not paged: code, mapped files by name, shared memory, stacks.

use coldframe_proc::{Files, Rest, PAGE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files that are named.
const NAMED: usize = 5;
/// Files matter if so much of them is referenced, or this part of all that the program needs.
const LARGE: u64 = 32 << 20;
const PART: u64 = 10;

/// Memory that is not paged, by kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NotPaged {
    /// Programs and libraries.
    pub code_bytes: u64,
    /// Other mapped files.
    pub files_bytes: u64,
    /// The largest of both.
    pub files: Vec<File>,
    /// Of all files, what was referenced between two clearings of the pages' bits.
    #[serde(default)]
    pub referenced_bytes: u64,
    /// Shared memory.
    pub shared_bytes: u64,
    /// Stacks of first threads.
    pub stacks_bytes: u64,
    /// The rest: static data, stacks of other threads, the C library's own.
    pub other_bytes: u64,
}

/// A mapped file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Bytes of it in RAM.
    pub bytes: u64,
    /// Bytes of it that are mapped.
    #[serde(default)]
    pub mapped_bytes: u64,
    /// Of those in RAM, referenced between two clearings.
    #[serde(default)]
    pub referenced_bytes: u64,
}

impl NotPaged {
    /// Of the kinds in RAM, if there are that many bytes in all. `None`: nothing was seen.
    pub(crate) fn of(rest: &Rest, all: u64) -> Option<NotPaged> {
        let mut kinds = NotPaged {
            shared_bytes: rest.shared,
            stacks_bytes: rest.stacks,
            other_bytes: all.saturating_sub(rest.sum() - rest.data),
            ..NotPaged::default()
        };
        kinds.see(&rest.files);
        (rest.sum() > 0).then_some(kinds)
    }

    /// Takes these files for those that were seen before.
    pub(crate) fn see(&mut self, files: &Files) {
        let bytes = |code| files.values().filter(|file| file.code == code).map(|file| file.resident).sum();
        (self.code_bytes, self.files_bytes) = (bytes(true), bytes(false));
        self.referenced_bytes = files.values().map(|file| file.referenced).sum();
        // A database maps more than its file has.
        let length = |path: &str| std::fs::metadata(path).map_or(u64::MAX, |file| file.len().next_multiple_of(PAGE));
        self.files = Vec::from_iter(files.iter().map(|(path, file)| File {
            path: path.clone(),
            bytes: file.resident,
            mapped_bytes: file.mapped.min(length(path)),
            referenced_bytes: file.referenced,
        }));
        self.files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        self.files.truncate(NAMED);
    }

    /// Whether the files are large, or much of what the program needs in all.
    pub fn matter(&self, all: u64) -> bool {
        self.referenced_bytes >= LARGE || PART * self.referenced_bytes >= all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_matter_if_they_are_large_or_much_of_a_small_program() {
        let of = |mib: u64, all: u64| {
            let referenced = NotPaged { referenced_bytes: mib << 20, ..NotPaged::default() };
            referenced.matter(all << 20)
        };
        assert!(of(32, 1000) && of(5, 50) && !of(31, 1000) && !of(5, 51));
    }
}
