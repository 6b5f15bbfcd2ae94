//! Models of schedulers on one processor. A scheduler can say in advance which task runs next.
//!
//! [`Scheduler::next`] is the second call of SAP's section 3.2: it gives the answer of [`Scheduler::switch`] in
//! advance, without a side effect. The two differ only if something happens in between (a task wakes, blocks or
//! begins). To add a scheduler, copy `scheduler/round_robin.rs` and add its line to [`ALL`].

use coldframe_core::Ps;

mod cfs;
mod eevdf;
mod round_robin;

/// Makes a scheduler for this many tasks, all of the same priority. The time is the scheduler's own parameter: the
/// slice of round robin, the latency of CFS (in which each task runs once), the base slice of EEVDF. `None`: the
/// kernel's value.
pub type Make = fn(usize, Option<Ps>) -> Box<dyn Scheduler>;

pub const ALL: &[(&str, Make)] = &[
    ("round-robin", |tasks, slice| Box::new(round_robin::RoundRobin::new(tasks, slice.unwrap_or(round_robin::SLICE)))),
    ("cfs", |tasks, latency| Box::new(cfs::Cfs::new(tasks, latency.unwrap_or(cfs::LATENCY)))),
    ("eevdf", |tasks, slice| Box::new(eevdf::Eevdf::new(tasks, slice.unwrap_or(eevdf::BASE_SLICE)))),
];

pub fn find(name: &str) -> Option<Make> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
}

/// A scheduler. Tasks are numbered from 0. At most one task runs, the ready ones wait.
pub trait Scheduler {
    /// The task becomes ready: it is new, or it slept.
    fn wake(&mut self, task: usize);

    /// The running task stops being ready: it sleeps, or has ended.
    fn block(&mut self);

    /// The running task sleeps by its own choice: the rest of its slice is forgotten.
    fn pause(&mut self) {
        self.block();
    }

    /// Charges the running task for this time since the last charge.
    fn charge(&mut self, ran: Ps);

    fn slice(&self) -> Ps;

    /// The used part of that slice.
    fn used(&self) -> Ps;

    /// Puts the running task, if there is one, back among the ready tasks, and lets this ready one run.
    fn run(&mut self, task: Option<usize>);

    /// Lets the next task run.
    fn switch(&mut self) -> Option<usize> {
        let next = self.next(Ps::ZERO);
        self.run(next);
        next
    }

    /// The task that `switch` would let run if the running task ran for this time and nothing else happened. No side
    /// effect.
    fn next(&self, running_for: Ps) -> Option<usize>;

    /// Whether this task, which has just woken, preempts the running one.
    fn preempts(&self, woken: usize) -> bool;

    /// The number of ready tasks, with the running one.
    fn ready(&self) -> usize;

    /// Whether the task is ready and not running.
    fn waits(&self, task: usize) -> bool;
}

#[cfg(test)]
mod tests;
