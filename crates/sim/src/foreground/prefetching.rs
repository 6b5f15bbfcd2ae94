//! SAP's prefetching lists for tasks in the foreground: pages that a task had to copy are loaded before it comes
//! back. The task that was away longest is predicted to come back next; with round robin this is right.
//!
//! A page that is read in its slot is on no list, since it needs no copy. So with direct read the lists hold pages
//! that are written.

use coldframe_core::prefetch::PrefetchLists;
use coldframe_core::{PageId, Ps, TaskId};

use super::Prefetch;

/// Idle visits after which a page leaves its list. Only another copy keeps a page on the list, since uses of a page are
/// not seen.
const IDLE_MAX: u32 = 2;

/// The lists, and the activation moment.
pub(super) struct Prefetching {
    config: Option<Prefetch>,
    lists: PrefetchLists,
    /// Tasks by their last visit, the oldest first. Tasks that never ran come first; their lists are empty.
    turn: Vec<TaskId>,
    done: bool,
}

impl Prefetching {
    pub(super) fn new(config: Option<Prefetch>, tasks: usize, services: &[bool]) -> Prefetching {
        let bound = config.map_or(0, |c| c.bound);
        let visits = |task: &usize| !services.get(*task).copied().unwrap_or(false);
        Prefetching {
            config,
            lists: PrefetchLists::new(tasks, bound, Some(IDLE_MAX)),
            turn: (0..tasks).filter(visits).map(TaskId::from).collect(),
            done: false,
        }
    }

    /// Notes a fault that is over. A page that was copied goes on the task's list.
    pub(super) fn faulted(&mut self, task: TaskId, page: PageId, in_slot: bool) {
        if self.config.is_some() && !in_slot {
            self.lists.major_fault(task, page);
        }
    }

    pub(super) fn switched(&mut self, task: TaskId) {
        self.done = false;
        if let Some(before) = self.turn.last().filter(|before| **before != task) {
            self.lists.end_slice(*before, |_| false);
        }
        self.turn.retain(|other| *other != task);
        self.turn.push(task);
    }

    /// Whether the activation moment has come, for this time since the switch. True once in each visit.
    pub(super) fn is_due(&mut self, since: Ps) -> bool {
        let due = !self.done && self.config.is_some_and(|c| since >= c.activation);
        self.done |= due;
        due
    }

    /// The list of the task that is expected next.
    pub(super) fn wishes(&self) -> Vec<PageId> {
        self.turn.first().map(|task| self.lists.of(*task).collect()).unwrap_or_default()
    }
}
