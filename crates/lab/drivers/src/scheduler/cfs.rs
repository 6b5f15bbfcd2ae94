//! The completely fair scheduler as in Linux 2.6.24 (`kernel/sched_fair.c`). The task with the least virtual run time
//! runs, for its share of a period.
//!
//! Names are the kernel's. The model has the period that stretches with more than `NR_LATENCY` tasks, a new task's
//! debit of one slice, the credit of one latency for sleepers, and preemption at wake-up. All tasks have priority 0, so
//! virtual time is time. It has no groups, no second processor and no real-time classes.

use coldframe_core::Ps;

use super::Scheduler;

/// `sysctl_sched_latency` on one processor.
pub const LATENCY: Ps = Ps::from_us(20_000);
/// `sched_nr_latency`: the latency divided by `sysctl_sched_min_granularity`, 4 ms.
const NR_LATENCY: u64 = 5;
/// `sysctl_sched_wakeup_granularity`.
const WAKEUP_GRANULARITY: Ps = Ps::from_us(10_000);

#[derive(Clone, Copy, Debug)]
struct CfsEntity {
    vruntime: u64,
    /// When the task joined the ready tasks. Breaks ties as the kernel's tree does: equal keys go to the right.
    joined: u64,
    ready: bool,
    is_new: bool,
}

#[derive(Debug)]
pub struct Cfs {
    latency: Ps,
    entities: Vec<CfsEntity>,
    running: Option<usize>,
    min_vruntime: u64,
    joins: u64,
    used: Ps,
}

impl Cfs {
    /// A scheduler for this many tasks. Each task runs once in a period of `latency`.
    pub fn new(tasks: usize, latency: Ps) -> Cfs {
        let entities = vec![CfsEntity { vruntime: 0, joined: 0, ready: false, is_new: true }; tasks];
        Cfs { latency, entities, running: None, min_vruntime: 0, joins: 0, used: Ps::ZERO }
    }

    fn ready_ones(&self) -> impl Iterator<Item = (usize, &CfsEntity)> {
        self.entities.iter().enumerate().filter(|(_, e)| e.ready)
    }

    fn update_min_vruntime(&mut self) {
        let least = self.ready_ones().map(|(_, e)| e.vruntime).min();
        self.min_vruntime = self.min_vruntime.max(least.unwrap_or(0));
    }
}

impl Scheduler for Cfs {
    fn wake(&mut self, task: usize) {
        self.joins += 1;
        let CfsEntity { vruntime, is_new, .. } = self.entities[task];
        self.entities[task].ready = true;
        // `place_entity`.
        let placed = match is_new {
            true => self.min_vruntime + self.slice().0,
            false => vruntime.max(self.min_vruntime.saturating_sub(self.latency.0)),
        };
        let joined = self.joins;
        let entity = &mut self.entities[task];
        (entity.vruntime, entity.joined, entity.is_new) = (placed, joined, false);
    }

    fn block(&mut self) {
        if let Some(task) = self.running.take() {
            self.entities[task].ready = false;
            self.update_min_vruntime();
        }
    }

    fn charge(&mut self, ran: Ps) {
        if let Some(task) = self.running {
            self.entities[task].vruntime += ran.0;
            self.used += ran;
            self.update_min_vruntime();
        }
    }

    fn slice(&self) -> Ps {
        let count = self.ready() as u64;
        Ps(self.latency.0 * count.max(NR_LATENCY) / NR_LATENCY / count.max(1))
    }

    fn used(&self) -> Ps {
        self.used
    }

    fn run(&mut self, task: Option<usize>) {
        if let Some(before) = self.running {
            self.joins += 1;
            self.entities[before].joined = self.joins;
        }
        (self.running, self.used) = (task, Ps::ZERO);
    }

    /// The task with the least key, if the running task runs for this time first.
    fn next(&self, running_for: Ps) -> Option<usize> {
        let key = |(task, e): &(usize, &CfsEntity)| match self.running == Some(*task) {
            true => (e.vruntime + running_for.0, u64::MAX),
            false => (e.vruntime, e.joined),
        };
        self.ready_ones().min_by_key(key).map(|(task, _)| task)
    }

    /// `check_preempt_wakeup`.
    fn preempts(&self, woken: usize) -> bool {
        let Some(running) = self.running else { return true };
        self.entities[woken].vruntime + WAKEUP_GRANULARITY.0 < self.entities[running].vruntime
    }

    fn ready(&self) -> usize {
        self.ready_ones().count()
    }

    fn waits(&self, task: usize) -> bool {
        self.entities[task].ready && self.running != Some(task)
    }
}
