//! The swap token of Linux 2.6 (`mm/thrash.c`, 2.6.20 and later; Jiang and Zhang, token-ordered LRU): of several tasks
//! that thrash, one keeps its pages, so it makes progress.
//!
//! While the holder waits in a page fault, a search by any other task finds all its pages referenced
//! (`page_referenced_one` in `mm/rmap.c`). A task contends for the token when it faults on a page that it must load. A
//! task gains priority if the intervals between these faults get shorter. A search that has gone through all of RAM
//! without success takes the token away (`disable_swap_token` at priority 0).
//!
//! The engine does not know the token: it reads reference bits from the machine, and the machine includes the token in
//! its answer.

use std::ops::Range;

use coldframe_core::PageId;

use super::reclaim::ReclaimCounts;

/// The token's data of a task.
#[derive(Clone, Debug)]
struct Contender {
    pages: Range<usize>,
    priority: u32,
    /// The count of all tasks' faults at its last fault.
    stamp: u64,
    /// Faults of all tasks between its last two faults.
    interval: u64,
}

/// The swap token.
#[derive(Clone, Debug)]
pub(crate) struct SwapToken {
    tasks: Vec<Contender>,
    holder: Option<usize>,
    faults: u64,
    frames: u64,
    /// The task that searches; `None`: a task of the kernel.
    searcher: Option<usize>,
    /// Pages that this search passed over.
    spared: u64,
    pub(super) counts: ReclaimCounts,
}

impl SwapToken {
    /// A token for tasks with these pages.
    pub(super) fn new(pages: impl Iterator<Item = Range<usize>>, frames: usize) -> SwapToken {
        let tasks = pages.map(|pages| Contender { pages, priority: 0, stamp: 0, interval: 0 }).collect();
        let counts = ReclaimCounts::default();
        SwapToken { tasks, holder: None, faults: 0, frames: frames as u64, searcher: None, spared: 0, counts }
    }

    /// The task must load a page (`grab_swap_token`).
    pub(super) fn contend(&mut self, task: usize) {
        self.faults += 1;
        let holder = self.holder.map(|holder| self.tasks[holder].priority);
        let one = &mut self.tasks[task];
        let interval = self.faults - one.stamp;
        if self.holder == Some(task) {
            one.priority += 2;
        } else {
            if holder.is_some() {
                one.priority = if interval < one.interval { one.priority + 1 } else { one.priority.saturating_sub(1) };
            }
            if holder.is_none_or(|holder| one.priority > holder) {
                one.priority += 2;
                self.holder = Some(task);
                self.counts.token_moves += 1;
            }
        }
        (one.stamp, one.interval) = (self.faults, interval);
    }

    /// A search begins. `by`: the task that searches.
    pub(super) fn search(&mut self, by: Option<usize>) {
        (self.searcher, self.spared) = (by, 0);
    }

    /// Whether this search takes the page as referenced, whatever its bit says. `in_fault` tells whether a task waits
    /// for a page.
    pub(crate) fn spares(&mut self, page: PageId, in_fault: impl Fn(usize) -> bool) -> bool {
        let Some(holder) = self.holder else { return false };
        if self.searcher == Some(holder) || !self.tasks[holder].pages.contains(&page.index()) || !in_fault(holder) {
            return false;
        }
        if self.spared == self.frames {
            self.holder = None;
            self.counts.token_lost += 1;
            return false;
        }
        self.spared += 1;
        self.counts.token_spared += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(frames: usize) -> SwapToken {
        SwapToken::new([0..10, 10..20].into_iter(), frames)
    }

    #[test]
    fn the_holders_pages_are_spared_while_it_waits_and_another_one_searches() {
        let mut token = two(100);
        assert!(!token.spares(PageId(3), |_| true));
        token.contend(0);
        token.search(None);
        assert!(token.spares(PageId(3), |task| task == 0));
        assert!(!token.spares(PageId(13), |_| true) && !token.spares(PageId(3), |task| task == 1));
        token.search(Some(1));
        assert!(token.spares(PageId(3), |_| true));
        token.search(Some(0));
        assert!(!token.spares(PageId(3), |_| true));
    }

    #[test]
    fn a_search_that_has_passed_over_all_of_ram_takes_the_token_away() {
        let mut token = two(2);
        token.contend(0);
        token.search(None);
        let spared: Vec<_> = (0..4).map(|page| token.spares(PageId(page), |_| true)).collect();
        assert_eq!(spared, [true, true, false, false]);
        token.contend(1);
        assert_eq!((token.holder, token.counts.token_moves, token.counts.token_lost), (Some(1), 2, 1));
    }

    /// `grab_swap_token` by hand. The holder begins with 2. The other task's intervals are 2, 1, 1 (not less), 1:
    /// priorities 0, 1, 0, 0. A task with ever shorter intervals gains one each time, and takes the token above the
    /// holder's priority.
    #[test]
    fn who_faults_faster_and_faster_gets_the_token() {
        let mut token = two(100);
        token.contend(0);
        let see = |token: &mut SwapToken| {
            token.contend(1);
            token.tasks[1].priority
        };
        assert_eq!([(); 4].map(|()| see(&mut token)), [0, 1, 0, 0]);
        // Intervals of 6, 4, 3, 2 faults: priorities 0, 1, 2, 3, and 2 more for the token.
        let mut third = SwapToken::new([0..1, 1..2, 2..3].into_iter(), 100);
        third.contend(0);
        for others in [4, 3, 2, 1] {
            (0..others).for_each(|_| third.contend(2));
            third.contend(1);
        }
        assert_eq!((third.tasks[1].priority, third.holder), (5, Some(1)));
    }
}
