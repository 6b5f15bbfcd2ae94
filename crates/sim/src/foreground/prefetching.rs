//! SAP's prefetching lists for tasks in the foreground: pages that a task had to copy are loaded before it comes
//! back. The task that was away longest is predicted to come back next; with round robin this is right.
//!
//! A page that is read in its slot is on no list, since it needs no copy. So with direct read the lists hold pages
//! that are written.

use coldframe_core::prefetch::PrefetchLists;
use coldframe_core::{PageId, Ps, TaskId};

use super::Prefetch;

/// Idle visits after which a page leaves its list: it is kept by being copied again only, since its uses are not looked at.
const IDLE_MAX: u32 = 2;

/// Lists, and when they are due.
pub(super) struct Prefetching {
    config: Option<Prefetch>,
    lists: PrefetchLists,
    /// Tasks by their last visit, the oldest first; those never seen yet come first and have empty lists.
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

    /// A fault is over. If it copied the page, the page is worth having sooner.
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

    /// Whether the activation moment has come, so long after the switch; true once a visit.
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
