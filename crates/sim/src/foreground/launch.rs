//! What each task did from its beginning until it answered: the pages of its first visit's first moments, read or written. When the low memory
//! killer has ended a task, whoever switches to it waits for that again, since all that it had built up is gone.

use coldframe_core::{PageId, TaskId};

/// A touch that a task's beginning consists of: the page, and whether it is written.
pub(super) type Touch = (PageId, bool);

/// The beginnings of all tasks.
pub(super) struct Launches {
    of: Vec<Vec<Touch>>,
    /// By task: its first visit is over, and nothing is noted any more.
    closed: Vec<bool>,
    /// By page: 1 if its read is noted, 2 if its write is.
    noted: Vec<u8>,
}

impl Launches {
    pub(super) fn new(pages: usize, tasks: usize) -> Launches {
        Launches { of: vec![Vec::new(); tasks], closed: vec![false; tasks], noted: vec![0; pages] }
    }

    /// The task touched the page before it answered. Only a first visit counts, and of equal touches the first.
    pub(super) fn note(&mut self, task: u32, page: PageId, writing: bool) {
        let bit = 1 << u8::from(writing);
        let noted = &mut self.noted[page.index()];
        if !self.closed[task as usize] && *noted & bit == 0 {
            *noted |= bit;
            self.of[task as usize].push((page, writing));
        }
    }

    /// The task's visit is over.
    pub(super) fn close(&mut self, task: Option<u32>) {
        if let Some(task) = task {
            self.closed[task as usize] = true;
        }
    }

    /// The task's beginning, to be done again; to be [put back](Self::put_back).
    pub(super) fn take(&mut self, task: TaskId) -> Vec<Touch> {
        std::mem::take(&mut self.of[task.index()])
    }

    pub(super) fn put_back(&mut self, task: TaskId, touches: Vec<Touch>) {
        self.of[task.index()] = touches;
    }
}
