//! The launch of each task: the pages that it read or wrote before it answered. If the low memory killer has ended a
//! task, the task does its launch again at its next reference, since its memory is lost.

use coldframe_core::{PageId, Ps, TaskId};

/// A touch that a task's beginning consists of: the page, and whether it is written.
pub(super) type Touch = (PageId, bool);

/// The beginnings of all tasks.
pub(super) struct Launches {
    of: Vec<Vec<Touch>>,
    /// By task: when it was begun first.
    began: Vec<Option<Ps>>,
    /// By page: 1 if its read is noted, 2 if its write is.
    noted: Vec<u8>,
    /// How long a beginning lasts.
    answer: Ps,
}

impl Launches {
    pub(super) fn new(pages: usize, tasks: usize, answer: Ps) -> Launches {
        Launches { of: vec![Vec::new(); tasks], began: vec![None; tasks], noted: vec![0; pages], answer }
    }

    /// The task touches the page now. Of equal touches the first counts, and none after its beginning.
    pub(super) fn note(&mut self, task: TaskId, page: PageId, writing: bool, now: Ps) {
        let began = *self.began[task.index()].get_or_insert(now);
        let (bit, noted) = (1 << u8::from(writing), &mut self.noted[page.index()]);
        if now < began + self.answer && *noted & bit == 0 {
            *noted |= bit;
            self.of[task.index()].push((page, writing));
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
