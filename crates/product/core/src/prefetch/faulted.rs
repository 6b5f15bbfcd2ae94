//! Prefetching lists: for each task, the pages that it had to load lately. They are made present before its next
//! slice (SAP section 3.3 and algorithm 2).
//!
//! Call [`PrefetchLists::major_fault`] for each major fault, and [`PrefetchLists::of`] when the task is predicted to
//! run next. The paper says what is added and how much fits. The rest is our reading:
//! - **Order and replacement**: the page faulted longest ago is first. It is prefetched first, and it is removed
//!   first when the list is full. A page that faults again goes to the end. No page is removed earlier: the paper names
//!   no other end.
//! - **Shared pages** are on the list of each task that faulted on them. If one task's prefetch has loaded such a
//!   page, the next finds it present.
//! - **A task that ends** has an empty list.
//!
//! When not to use it: if a task's next slice touches other pages than its last ones (a long sweep), the list only
//! has pages of the past.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::{PageId, TaskId};

/// Pages on a list at most, section 5.2.
pub const LIST_MAX: usize = 1024;

/// The lists of all tasks.
#[derive(Clone, Debug)]
pub struct PrefetchLists {
    /// Each has the page faulted longest ago first.
    lists: Box<[Vec<PageId>]>,
    bound: usize,
}

impl PrefetchLists {
    /// Empty lists for `tasks` tasks, of at most `bound` pages each.
    pub fn new(tasks: usize, bound: usize) -> PrefetchLists {
        // Room for one more: it is pushed before the first is removed.
        PrefetchLists { lists: (0..tasks).map(|_| Vec::with_capacity(bound + 1)).collect(), bound }
    }

    /// The task had to load the page.
    pub fn major_fault(&mut self, task: TaskId, page: PageId) {
        let list = &mut self.lists[task.index()];
        list.retain(|listed| *listed != page);
        list.push(page);
        if list.len() > self.bound {
            list.remove(0);
        }
    }

    /// The pages to be made present before the task's next slice, in this order.
    pub fn of(&self, task: TaskId) -> impl ExactSizeIterator<Item = PageId> + '_ {
        self.lists[task.index()].iter().copied()
    }

    /// Whether another task than this one has pages on its list.
    pub fn any_but(&self, task: TaskId) -> bool {
        self.lists.iter().enumerate().any(|(other, list)| other != task.index() && !list.is_empty())
    }

    /// The task has ended.
    pub fn end_task(&mut self, task: TaskId) {
        self.lists[task.index()].clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn lists(bound: usize, faults: &[u32]) -> PrefetchLists {
        let mut lists = PrefetchLists::new(2, bound);
        faults.iter().for_each(|page| lists.major_fault(A, PageId(*page)));
        lists
    }

    fn pages(lists: &PrefetchLists, task: TaskId) -> Vec<u32> {
        lists.of(task).map(|page| page.0).collect()
    }

    #[test]
    fn a_full_list_loses_the_page_faulted_longest_ago_and_a_second_fault_renews() {
        let lists = lists(3, &[1, 2, 3, 1, 4]);
        assert_eq!(pages(&lists, A), [3, 1, 4]);
        assert!(pages(&lists, B).is_empty(), "a list is a task's own");
    }

    #[test]
    fn a_list_of_no_pages_takes_none() {
        assert!(pages(&lists(0, &[1, 2]), A).is_empty());
    }

    #[test]
    fn a_shared_page_stands_on_both_lists_and_an_ended_task_has_none() {
        let mut lists = lists(8, &[1, 2]);
        lists.major_fault(B, PageId(2));
        lists.major_fault(B, PageId(5));
        assert_eq!((pages(&lists, A), pages(&lists, B)), (Vec::from([1, 2]), Vec::from([2, 5])));
        lists.end_task(A);
        assert_eq!((pages(&lists, A), pages(&lists, B)), (Vec::new(), Vec::from([2, 5])));
    }
}
