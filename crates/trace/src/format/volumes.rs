//! The devices of a block trace, each a task with an address space of its own.

use rustc_hash::FxHashSet;

use crate::provenance::Task;

/// Most devices that are listed by name; the cloud traces have some thousands. The rows bear their numbers in any case.
const LISTED_MAX: usize = 1 << 16;

/// The device numbers met so far.
#[derive(Default)]
pub(super) struct Volumes {
    met: FxHashSet<u32>,
    last: Option<u32>,
}

impl Volumes {
    #[inline]
    pub(super) fn meet(&mut self, number: u32) {
        if self.last != Some(number) {
            self.last = Some(number);
            if self.met.len() < LISTED_MAX {
                self.met.insert(number);
            }
        }
    }

    /// Their list, in order, each named `word number`.
    pub(super) fn tasks(&self, word: &str) -> Vec<Task> {
        let mut numbers: Vec<u32> = self.met.iter().copied().collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|id| Task { id, name: format!("{word} {id}"), space: id }).collect()
    }
}
