//! Threads and devices met in a trace, with their names and address spaces.

use rustc_hash::FxHashMap;

use coldframe_store::provenance::Task;

/// Most that are listed; the cloud traces have some thousands. The rows bear their numbers in any case.
const LISTED_MAX: usize = 1 << 16;

#[derive(Default)]
pub(super) struct Tasks {
    met: FxHashMap<u32, (u32, Vec<u8>)>,
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

    /// A device with an address space of its own, named `word number`.
    #[inline]
    pub(super) fn meet_number(&mut self, number: u32, word: impl Fn() -> String) {
        if self.last.replace(number) != Some(number) && !self.met.contains_key(&number) {
            self.meet(number, number, format!("{} {number}", word()).as_bytes());
        }
    }

    /// Their list, in order.
    pub(super) fn list(&self) -> Vec<Task> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let task = |(id, (space, name)): (&u32, &(u32, Vec<u8>))| Task { id: *id, name: text(name), space: *space };
        let mut tasks: Vec<Task> = self.met.iter().map(task).collect();
        tasks.sort_unstable_by_key(|task| task.id);
        tasks
    }
}
