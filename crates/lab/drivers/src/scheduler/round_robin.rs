//! Round robin: a queue and a slice. A task that sleeps on a fault keeps what is left of its slice.

use std::collections::VecDeque;

use coldframe_core::Ps;

use super::Scheduler;

/// Linux's `RR_TIMESLICE`, 100 ms.
pub const SLICE: Ps = Ps::from_us(100_000);

#[derive(Debug)]
pub struct RoundRobin {
    queue: VecDeque<usize>,
    running: Option<usize>,
    slice: Ps,
    used: Vec<Ps>,
}

impl RoundRobin {
    pub fn new(tasks: usize, slice: Ps) -> RoundRobin {
        RoundRobin { queue: VecDeque::with_capacity(tasks), running: None, slice, used: vec![Ps::ZERO; tasks] }
    }
}

impl Scheduler for RoundRobin {
    fn wake(&mut self, task: usize) {
        self.queue.push_back(task);
    }

    fn block(&mut self) {
        self.running = None;
    }

    fn pause(&mut self) {
        if let Some(task) = self.running.take() {
            self.used[task] = Ps::ZERO;
        }
    }

    fn charge(&mut self, ran: Ps) {
        if let Some(task) = self.running {
            self.used[task] += ran;
        }
    }

    fn slice(&self) -> Ps {
        self.slice
    }

    fn used(&self) -> Ps {
        self.running.map_or(Ps::ZERO, |task| self.used[task])
    }

    fn run(&mut self, task: Option<usize>) {
        if let Some(before) = self.running {
            self.used[before] = Ps::ZERO;
            self.queue.push_back(before);
        }
        self.queue.retain(|waiting| Some(*waiting) != task);
        self.running = task;
    }

    fn next(&self, _: Ps) -> Option<usize> {
        self.queue.front().copied().or(self.running)
    }

    fn preempts(&self, _: usize) -> bool {
        false
    }

    fn ready(&self) -> usize {
        self.queue.len() + usize::from(self.running.is_some())
    }

    fn waits(&self, task: usize) -> bool {
        self.queue.contains(&task)
    }
}
