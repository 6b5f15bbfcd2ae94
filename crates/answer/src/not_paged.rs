//! What the memory is that is not paged: code, mapped files by name, shared memory, stacks.

use coldframe_proc::Rest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files that are named.
const NAMED: usize = 3;

/// Memory that is not paged, by kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NotPaged {
    /// Programs and libraries.
    pub code_bytes: u64,
    /// Other mapped files.
    pub files_bytes: u64,
    /// The largest of these.
    pub files: Vec<File>,
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
}

impl NotPaged {
    /// Of the kinds in RAM, if there are that many bytes in all. `None`: nothing was seen.
    pub(crate) fn of(rest: &Rest, all: u64) -> Option<NotPaged> {
        let mut files: Vec<File> =
            rest.files.iter().map(|(path, bytes)| File { path: path.clone(), bytes: *bytes }).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        files.truncate(NAMED);
        (rest.sum() > 0).then(|| NotPaged {
            code_bytes: rest.code,
            files_bytes: rest.files.values().sum(),
            files,
            shared_bytes: rest.shared,
            stacks_bytes: rest.stacks,
            other_bytes: all.saturating_sub(rest.sum()),
        })
    }
}
