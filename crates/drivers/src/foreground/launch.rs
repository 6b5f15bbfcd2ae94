//! The launch of each task: the pages that it read or wrote before it answered. If the low memory killer has ended a
//! task, the task does its launch again at its next reference, since its memory is lost.

use coldframe_core::{PageId, Ps, TaskId};

/// A touch at a task's start: the page, and whether it is written.
pub(super) type Touch = (PageId, bool);

/// The launches of all tasks.
pub(super) struct Launches {
    of: Vec<Vec<Touch>>,
    /// By task: the time of its first start.
    began: Vec<Option<Ps>>,
    /// By page: bit 0: its read is noted; bit 1: its write is noted.
    noted: Vec<u8>,
    /// The duration of a launch.
    answer: Ps,
}

impl Launches {
    pub(super) fn new(pages: usize, tasks: usize, answer: Ps) -> Launches {
        Launches { of: vec![Vec::new(); tasks], began: vec![None; tasks], noted: vec![0; pages], answer }
    }

    /// Notes that the task touches the page now. Of equal touches only the first is noted, and none after the launch.
    pub(super) fn note(&mut self, task: TaskId, page: PageId, writing: bool, now: Ps) {
        let began = *self.began[task.index()].get_or_insert(now);
        let (bit, noted) = (1 << u8::from(writing), &mut self.noted[page.index()]);
        if now < began + self.answer && *noted & bit == 0 {
            *noted |= bit;
            self.of[task.index()].push((page, writing));
        }
    }

    /// Takes the task's launch, to repeat it; give it back with [`put_back`](Self::put_back).
    pub(super) fn take(&mut self, task: TaskId) -> Vec<Touch> {
        std::mem::take(&mut self.of[task.index()])
    }

    pub(super) fn put_back(&mut self, task: TaskId, touches: Vec<Touch>) {
        self.of[task.index()] = touches;
    }
}
