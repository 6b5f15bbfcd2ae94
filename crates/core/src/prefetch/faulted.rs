//! Prefetching lists: for each task, the pages that it had to load lately. They are made present before its next
//! slice (SAP section 3.3 and algorithm 2).
//!
//! Call [`PrefetchLists::major_fault`] for each major fault, [`PrefetchLists::of`] when the task is predicted to run
//! next, and [`PrefetchLists::end_slice`] when one of its slices has ended. The paper says what is added and how much
//! fits. The rest is our reading:
//! - **Order and replacement**: the page faulted longest ago is first. It is prefetched first, and it is removed
//!   first when the list is full. A page that faults again goes to the end.
//! - **Renewal**: a page is removed when it was neither faulted nor used in `idle_max` slices of its task in a row. A
//!   page that is prefetched and used does not fault any more. With faults alone, exactly the useful pages would be
//!   removed.
//! - **Shared pages** are on the list of each task that faulted on them. If one task's prefetch has loaded such a
//!   page, the next finds it present.
//! - **A task that ends** has an empty list; **a page no longer mapped** is removed from the lists.
//!
//! When not to use it: if a task's next slice touches other pages than its last ones (a long sweep), the list only
//! has pages of the past.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ids::{PageId, TaskId};

/// Pages on a list at most, section 5.2.
pub const LIST_MAX: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: PageId,
    /// Slices of the task in a row in which the page was neither faulted nor used.
    idle: u32,
    /// It has faulted since the slice began.
    fresh: bool,
}

/// The lists of all tasks.
#[derive(Clone, Debug)]
pub struct PrefetchLists {
    /// Each has the page faulted longest ago first.
    lists: Box<[Vec<Entry>]>,
    bound: usize,
    idle_max: Option<u32>,
}

impl PrefetchLists {
    /// Empty lists for `tasks` tasks, of at most `bound` pages each. A page is removed after `idle_max` idle slices;
    /// `None`: never.
    pub fn new(tasks: usize, bound: usize, idle_max: Option<u32>) -> PrefetchLists {
        // Room for one more: it is pushed before the first is removed.
        PrefetchLists { lists: (0..tasks).map(|_| Vec::with_capacity(bound + 1)).collect(), bound, idle_max }
    }

    /// The task had to load the page.
    pub fn major_fault(&mut self, task: TaskId, page: PageId) {
        let list = &mut self.lists[task.index()];
        list.retain(|entry| entry.page != page);
        list.push(Entry { page, idle: 0, fresh: true });
        if list.len() > self.bound {
            list.remove(0);
        }
    }

    /// The pages to be made present before the task's next slice, in this order.
    pub fn of(&self, task: TaskId) -> impl ExactSizeIterator<Item = PageId> + '_ {
        self.lists[task.index()].iter().map(|entry| entry.page)
    }

    /// Whether another task than this one has pages on its list.
    pub fn any_but(&self, task: TaskId) -> bool {
        self.lists.iter().enumerate().any(|(other, list)| other != task.index() && !list.is_empty())
    }

    /// A slice of the task has ended; `used` says whether the task has touched a page of the list in it.
    pub fn end_slice(&mut self, task: TaskId, mut used: impl FnMut(PageId) -> bool) {
        let idle_max = self.idle_max;
        self.lists[task.index()].retain_mut(|entry| {
            let idle = !entry.fresh && !used(entry.page);
            entry.idle = if idle { entry.idle + 1 } else { 0 };
            entry.fresh = false;
            idle_max.is_none_or(|most| entry.idle < most)
        });
    }

    /// The task has ended.
    pub fn end_task(&mut self, task: TaskId) {
        self.lists[task.index()].clear();
    }

    /// No task maps the page any more.
    pub fn unmapped(&mut self, page: PageId) {
        self.lists.iter_mut().for_each(|list| list.retain(|entry| entry.page != page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn lists(bound: usize, idle_max: Option<u32>, faults: &[u32]) -> PrefetchLists {
        let mut lists = PrefetchLists::new(2, bound, idle_max);
        faults.iter().for_each(|page| lists.major_fault(A, PageId(*page)));
        lists
    }

    fn pages(lists: &PrefetchLists, task: TaskId) -> Vec<u32> {
        lists.of(task).map(|page| page.0).collect()
    }

    #[test]
    fn a_full_list_loses_the_page_faulted_longest_ago_and_a_second_fault_renews() {
        let lists = lists(3, None, &[1, 2, 3, 1, 4]);
        assert_eq!(pages(&lists, A), [3, 1, 4]);
        assert!(pages(&lists, B).is_empty(), "a list is a task's own");
    }

    #[test]
    fn a_list_of_no_pages_takes_none() {
        assert!(pages(&lists(0, None, &[1, 2]), A).is_empty());
    }

    #[test]
    fn a_page_neither_faulted_nor_used_in_so_many_slices_leaves() {
        let mut lists = lists(8, Some(2), &[1, 2, 3]);
        lists.end_slice(A, |_| false);
        assert_eq!(pages(&lists, A), [1, 2, 3], "all three faulted in this slice");
        lists.end_slice(A, |page| page.0 == 1);
        assert_eq!(pages(&lists, A), [1, 2, 3], "one idle slice is not enough");
        lists.major_fault(A, PageId(3));
        lists.end_slice(A, |page| page.0 == 1);
        assert_eq!(pages(&lists, A), [1, 3]);
    }

    #[test]
    fn without_a_bound_on_idle_slices_nothing_leaves() {
        let mut lists = lists(8, None, &[1]);
        (0..100).for_each(|_| lists.end_slice(A, |_| false));
        assert_eq!(pages(&lists, A), [1]);
    }

    #[test]
    fn a_shared_page_stands_on_both_lists_until_it_is_unmapped_and_an_ended_task_has_none() {
        let mut lists = lists(8, None, &[1, 2]);
        lists.major_fault(B, PageId(2));
        lists.major_fault(B, PageId(5));
        assert_eq!((pages(&lists, A), pages(&lists, B)), (Vec::from([1, 2]), Vec::from([2, 5])));
        lists.unmapped(PageId(2));
        assert_eq!((pages(&lists, A), pages(&lists, B)), (Vec::from([1]), Vec::from([5])));
        lists.end_task(A);
        assert_eq!((pages(&lists, A), pages(&lists, B)), (Vec::new(), Vec::from([5])));
    }
}
