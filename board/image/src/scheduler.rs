//! Who runs: the tasks take turns, a slice each.
//!
//! A slice is time of the processor. The time that it waits for the chip, with the task that faulted, is not used from
//! the slice (the laboratory's tasks on a board count alike). A task that faults keeps the processor.

use crate::mmu::TASKS;

/// Ticks of the scheduler in a slice.
const TICKS: u64 = 20;

/// The part of a slice that is its start, as its divisor.
const START: u64 = 8;

/// What the scheduler knows of a task.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    ended: bool,
    /// Algorithm 1's flag: the prefetching of its next slice has been done.
    pub prefetched: bool,
}

/// Tasks in turn.
pub struct Scheduler {
    turns: [Turn; TASKS as usize],
    tasks: usize,
    running: usize,
    /// Ticks of the clock.
    slice: Option<u64>,
    next_tick: u64,
    began: u64,
    waited: u64,
    /// Slices that began after another task's.
    pub switches: u64,
}

impl Scheduler {
    /// For so many tasks; the first one runs. Without a slice a task runs until it ends.
    pub fn new(tasks: usize, slice: Option<u64>) -> Scheduler {
        Scheduler {
            turns: Default::default(),
            tasks,
            running: 0,
            slice,
            next_tick: 0,
            began: 0,
            waited: 0,
            switches: 0,
        }
    }

    /// The task that runs.
    pub fn running(&self) -> usize {
        self.running
    }

    /// A task's turn.
    pub fn turn(&mut self, task: usize) -> &mut Turn {
        &mut self.turns[task]
    }

    /// The task that runs after the one that runs now, if there is another (algorithm 1's `get_next_to`).
    pub fn next(&self) -> Option<usize> {
        (1..self.tasks).map(|i| (self.running + i) % self.tasks).find(|task| !self.turns[*task].ended)
    }

    /// Part of its slice that the running task has used, in ticks of the clock; `waited` is the time waited so far.
    fn used(&self, now: u64, waited: u64) -> u64 {
        (now - self.began).saturating_sub(waited - self.waited)
    }

    /// Whether the running task has used up its slice.
    pub fn has_used_all(&self, now: u64, waited: u64) -> bool {
        self.slice.is_some_and(|slice| self.used(now, waited) >= slice)
    }

    /// Whether the running task has used more than this part of its slice, in percent.
    pub fn has_used(&self, percent: u64, now: u64, waited: u64) -> bool {
        self.slice.is_some_and(|slice| 100 * self.used(now, waited) > percent * slice)
    }

    /// Whether the slice has only started.
    pub fn is_at_start(&self, now: u64, waited: u64) -> bool {
        self.slice.is_some_and(|slice| START * self.used(now, waited) < slice)
    }

    /// The next tick; none without slices.
    pub fn next_tick(&self) -> Option<u64> {
        self.slice.map(|_| self.next_tick)
    }

    /// Whether a tick is due; then the next one is a tick later.
    pub fn take_tick(&mut self, now: u64) -> bool {
        let due = self.next_tick().is_some_and(|at| at <= now);
        if due {
            self.next_tick = now + self.slice.map_or(0, |slice| (slice / TICKS).max(1));
        }
        due
    }

    /// A slice of this task begins. The running task's time unit has ended, so it may be prefetched for again.
    pub fn enter(&mut self, task: usize, now: u64, waited: u64) {
        self.turns[self.running].prefetched = false;
        self.switches += u64::from(task != self.running);
        (self.running, self.began, self.waited) = (task, now, waited);
    }

    /// The running task has ended.
    pub fn end(&mut self) {
        self.turns[self.running].ended = true;
    }
}
