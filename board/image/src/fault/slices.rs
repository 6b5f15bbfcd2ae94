//! The alarm's interrupt: ends of loads that no task waits for, the scheduler's tick, and SAP's algorithm 1.
//!
//! ```text
//!   task A runs ─── tick: xi of the slice used ─────────────────── tick: slice used up
//!                        │ next task B, its list                       │ Event::Slice
//!   DataRAM 1            └► WillNeed ─ load ─► Loaded ─ WillNeed ─ ...  │
//!                                                                       └► task B runs
//! ```
//!
//! One DataRAM stays free for a fault of the running task. Its load begins when the chip has ended the one under way.

use coldframe_core::{Event, SlotId, TaskId};

use super::{with, Pager};
use crate::task::Registers;
use crate::{mmu, platform};

impl Pager {
    /// The first task's slice begins.
    pub fn begin(&mut self) {
        let (now, waited) = self.times();
        self.scheduler.enter(0, now, waited);
        self.scheduler.take_tick(now);
        platform::enable_alarm();
        self.arm();
    }

    fn times(&mut self) -> (u64, u64) {
        (self.board.clock.ticks(), self.board.device.waited)
    }

    /// Whether the running slice has only started.
    pub(super) fn is_at_start(&mut self) -> bool {
        if self.scheduler.next_tick().is_none() {
            return false;
        }
        let (now, waited) = self.times();
        self.scheduler.is_at_start(now, waited)
    }

    /// Sets the alarm to what comes next: the end of a load, or a tick.
    fn arm(&mut self) {
        if let Some(at) = self.board.device.ready_at().into_iter().chain(self.scheduler.next_tick()).min() {
            platform::alarm(at, &mut self.board.clock);
        }
    }

    fn interrupt(&mut self, registers: &mut Registers) {
        platform::clear_alarm();
        self.board.device.poll(&mut self.board.clock);
        while let Some(end) = self.board.device.ended() {
            self.deliver(end);
        }
        let (now, waited) = self.times();
        if self.scheduler.take_tick(now) {
            if self.scheduler.has_used_all(now, waited) {
                self.switch(registers);
            } else if self.prefetcher.choice.start.is_some_and(|part| self.scheduler.has_used(part, now, waited)) {
                self.activate();
            }
        }
        self.feed();
        self.arm();
        self.board.flush();
    }

    /// Algorithm 1. Pages of the list that are in RAM come first: the loads would push them out. The paper prints
    /// `nr_tasks > 2`; another task is enough, as in the laboratory.
    fn activate(&mut self) {
        let Some(next) = self.scheduler.next() else { return };
        if core::mem::replace(&mut self.scheduler.turn(next).prefetched, true) {
            return;
        }
        self.prefetcher.activations += 1;
        self.make_recent(next);
        for i in 0..self.listed(next) {
            let page = self.prefetcher.lists.of(TaskId::from(next)).nth(i).expect("it is listed");
            if self.engine.frame_of(page).is_none() {
                self.prefetcher.want(page);
            }
        }
    }

    fn listed(&self, task: usize) -> usize {
        self.prefetcher.lists.of(TaskId::from(task)).len()
    }

    /// Pages of the task's list that wait for it in RAM become recent.
    fn make_recent(&mut self, task: usize) {
        for i in 0..self.listed(task) {
            let page = self.prefetcher.lists.of(TaskId::from(task)).nth(i).expect("it is listed");
            if self.engine.frame_of(page).is_some() {
                self.deliver(Event::WillNeed { page });
            }
        }
    }

    /// Gives hints while a DataRAM can be spared. If only pages of the running slice could make room, the other pages
    /// have none, either.
    pub(super) fn feed(&mut self) {
        while !self.prefetcher.is_done() && self.engine.has_spare_buffer() {
            let Some(page) = self.prefetcher.take() else { return };
            if self.engine.frame_of(page).is_some() {
                continue;
            }
            let dropped = self.engine.counts().prefetches_dropped;
            self.deliver(Event::WillNeed { page });
            if self.engine.counts().prefetches_dropped > dropped {
                self.prefetcher.forget();
            }
        }
    }

    /// LOBI's swap-in: the pages in the aligned part of the page's erase block.
    pub(super) fn read_ahead(&mut self, page: coldframe_core::PageId) {
        let Some(swap) = self.engine.swap() else { return };
        let Some(slot) = swap.slot_of(page) else { return };
        for other in self.prefetcher.choice.window.around(slot, swap).filter_map(|slot| swap.page_in(SlotId(slot))) {
            if other != page && self.engine.frame_of(other).is_none() {
                self.prefetcher.want(other);
            }
        }
    }

    /// The end of a fault: hints, and an alarm for the load that follows from them.
    pub(super) fn after_fault(&mut self) {
        self.feed();
        if self.board.device.ready_at().is_some() {
            self.arm();
        }
    }

    /// The next task runs, with its registers. The running one, if it is alone, has another slice.
    fn switch(&mut self, registers: &mut Registers) {
        let running = self.scheduler.running();
        let next = self.scheduler.next().unwrap_or(running);
        self.saved[running] = *registers;
        self.enter(next, registers);
    }

    /// What was not loaded before the switch is left (section 5.3: pages are loaded "before a context switch happens").
    fn enter(&mut self, task: usize, registers: &mut Registers) {
        let (now, waited) = self.times();
        *registers = self.saved[task];
        let prefetched = self.scheduler.turn(task).prefetched;
        let is_other = task != self.scheduler.running();
        self.scheduler.enter(task, now, waited);
        self.scheduler.turn(task).prefetched = false;
        mmu::enter_domain(task as u32);
        if is_other {
            self.prefetcher.forget();
            // Where nothing can be prefetched, slices need not be kept apart, and the policy is the plain one.
            if self.prefetcher.choice.start.is_some() && self.prefetcher.lists.any_but(TaskId::from(task)) {
                self.deliver(Event::Slice);
                if prefetched {
                    self.make_recent(task);
                }
            }
        }
    }

    /// The running task has ended. Returns whether another one runs, with its registers.
    fn end(&mut self, status: u32, registers: &mut Registers) -> bool {
        self.status = self.status.max(status);
        self.prefetcher.lists.end_task(TaskId::from(self.scheduler.running()));
        self.scheduler.end();
        let next = self.scheduler.next();
        match next {
            Some(next) => self.enter(next, registers),
            None => platform::clear_alarm(),
        }
        self.board.flush();
        next.is_some()
    }
}

#[no_mangle]
extern "C" fn on_interrupt(registers: &mut Registers) {
    with(|pager| pager.interrupt(registers));
}

/// A program has ended. The driver's self-test has no pager.
#[no_mangle]
extern "C" fn on_end(status: u32, registers: &mut Registers) -> bool {
    super::installed().is_some_and(|pager| pager.end(status, registers))
}
