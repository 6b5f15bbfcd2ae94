//! Threads met in a trace, with their names and address spaces.

use std::collections::BTreeMap;

use crate::provenance::Task;

/// Most threads that are listed; the rows bear their numbers in any case.
const LISTED_MAX: usize = 1 << 16;

/// Threads met so far.
#[derive(Default)]
pub(super) struct Tasks {
    met: BTreeMap<u32, (u32, Vec<u8>)>,
    last: Option<u32>,
}

impl Tasks {
    /// Thread `task` of the process `space`, with its present name. The last name counts, because `exec` changes it.
    pub(super) fn meet(&mut self, task: u32, space: u32, name: &[u8]) {
        let known = self.met.len();
        match self.met.get_mut(&task) {
            Some((_, old)) if self.last == Some(task) && old == name => {}
            Some((_, old)) => {
                old.clear();
                old.extend_from_slice(name);
            }
            None if known < LISTED_MAX => drop(self.met.insert(task, (space, name.to_vec()))),
            None => {}
        }
        self.last = Some(task);
    }

    /// Their list, in order.
    pub(super) fn list(&self) -> Vec<Task> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        self.met.iter().map(|(id, (space, name))| Task { id: *id, name: text(name), space: *space }).collect()
    }
}
