//! Pages that no task waits for: those of the next task's list (SAP), and those beside a page in its erase block
//! (LOBI). Both wait here until the chip has a DataRAM to spare.

use alloc::collections::VecDeque;

use coldframe_core::prefetch::{Arrival, PrefetchLists, Window};
use coldframe_core::{PageId, TaskId};

/// What is prefetched, and when.
#[derive(Clone, Copy)]
pub struct Choice {
    /// The part of a slice, in percent, after which the next task's pages are loaded (SAP's xi); none: never.
    pub start: Option<u64>,
    /// Pages of a list.
    pub list_max: usize,
    /// Slots that are read with a page of the swap area.
    pub window: Window,
}

impl Choice {
    /// How a prefetched page enters RAM: as in the laboratory.
    pub fn arrival(&self) -> Arrival {
        match self.start {
            Some(_) => Arrival::MappedBehindSlice,
            None => Arrival::Mapped,
        }
    }
}

/// Lists, and the pages that still need a hint.
pub struct Prefetcher {
    /// What is prefetched, and when.
    pub choice: Choice,
    /// A list for each task.
    pub lists: PrefetchLists,
    pending: VecDeque<PageId>,
    /// Lists that were worked through.
    pub activations: u64,
}

impl Prefetcher {
    /// Empty lists for so many tasks and pages.
    pub fn new(choice: Choice, tasks: usize, pages: usize) -> Prefetcher {
        let lists = PrefetchLists::new(tasks, choice.start.map_or(0, |_| choice.list_max.min(pages)));
        let room = if choice.start.is_some() || choice.window != Window::Alone { pages } else { 0 };
        Prefetcher { choice, lists, pending: VecDeque::with_capacity(room), activations: 0 }
    }

    /// The task had to load the page (algorithm 2).
    pub fn major_fault(&mut self, task: TaskId, page: PageId) {
        if self.choice.start.is_some() {
            self.lists.major_fault(task, page);
        }
    }

    /// The page needs a hint. Nothing is allocated: there is room for each page once.
    pub fn want(&mut self, page: PageId) {
        if self.pending.len() < self.pending.capacity() {
            self.pending.push_back(page);
        }
    }

    /// Whether no page needs a hint.
    pub fn is_done(&self) -> bool {
        self.pending.is_empty()
    }

    /// The next page that needs a hint.
    pub fn take(&mut self) -> Option<PageId> {
        self.pending.pop_front()
    }

    /// No page needs a hint any more.
    pub fn forget(&mut self) {
        self.pending.clear();
    }
}
