//! The start of prefetching, and the pages that are hinted then (SAP sections 3.1 and 3.2, algorithm 1).

use coldframe_core::{PageId, Ps, TaskId};

use super::{Cpu, Paging};
use crate::tasks::Activation;

impl Cpu {
    /// How much of its time unit the running task has used.
    pub(super) fn used(&self) -> Ps {
        self.running.map_or(Ps::ZERO, |task| self.tasks[task].unit_used)
    }

    /// The running task's time unit: its slice, or less if it used less before its last pause.
    pub(super) fn unit(&self) -> Ps {
        let slice = self.scheduler.slice();
        self.running.and_then(|task| self.tasks[task].unit_last).map_or(slice, |last| last.min(slice))
    }

    /// Algorithm 1.
    pub(super) fn activate(&mut self) {
        let rest = self.scheduler.slice().saturating_sub(self.scheduler.used());
        let Some(next) = self.scheduler.next(rest).filter(|next| Some(*next) != self.running) else { return };
        if self.scheduler.ready() < self.prefetching.ready_min || self.tasks[next].prefetched {
            return;
        }
        (self.tasks[next].prefetched, self.tasks[next].arrived) = (true, true);
        self.predicted = Some(next);
        // This comes first. Otherwise the loads would push out listed pages that are in RAM.
        self.make_recent(next);
        let allowed = if self.prefetching.guard { self.paging.allowance() } else { usize::MAX };
        let absent = self.lists.of(TaskId::from(next)).filter(|page| self.paging.is_absent(*page));
        (self.pending, self.pending_for) = (absent.take(allowed).collect(), next);
        self.paging.counts.activations += 1;
        self.feed();
    }

    /// Gives prefetch hints for as many pages as the device's queue takes.
    pub(super) fn feed(&mut self) {
        let may = |paging: &Paging, depth: u32| paging.in_background() < depth && paging.engine.has_spare_buffer();
        while !self.pending.is_empty() && may(&self.paging, self.prefetching.depth) {
            let page = self.pending.pop_front().expect("there is one");
            if !self.paging.is_absent(page) {
                continue;
            }
            if !self.paging.will_need(self.pending_for, page) {
                // Only pages of the running slice could make room: the others have none, either.
                self.pending.clear();
            }
            self.paging.read_together(self.pending_for, page);
        }
    }

    /// The rest of the time unit that the running task must use before the timer is due; `None`: there is no timer.
    pub(super) fn until_timer(&self) -> Option<Ps> {
        let Activation::Timer(xi) = self.prefetching.activation else { return None };
        let rest = self.unit().0 as f64 * xi - self.used().0 as f64;
        (xi < 1.0).then_some(Ps(rest.max(0.0) as u64))
    }

    /// The timer rings. The task may have waited with the processor until then and used nothing, so it may be too
    /// early.
    pub(super) fn ring(&mut self) {
        self.charge();
        let rest = self.until_timer().filter(|rest| *rest > Ps::ZERO);
        self.timer = rest.map(|rest| self.now() + rest);
        if rest.is_none() {
            self.activate();
        }
    }

    /// Makes the pages that wait for the task the most recent. Otherwise its own faults would push them out before it
    /// touches them: they are older than the pages of the slice before, which no task will touch soon. Once is enough:
    /// a task that sleeps on faults is dispatched thousands of times, and pages prefetched in vain would never leave.
    pub(super) fn make_recent(&mut self, task: usize) {
        let waits = |page: &PageId| self.paging.waits(*page);
        let waiting: Vec<PageId> = self.lists.of(TaskId::from(task)).filter(waits).collect();
        for page in waiting {
            self.paging.will_need(task, page);
        }
    }
}
