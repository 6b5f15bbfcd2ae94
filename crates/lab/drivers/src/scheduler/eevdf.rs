//! Earliest eligible virtual deadline first, as in Linux since 6.6 (`kernel/sched/fair.c`). A task is eligible if it
//! has had no more than its share. The eligible task with the earliest virtual deadline runs until its slice is used
//! up.
//!
//! The model has the base slice, eligibility by the mean of virtual run times, deadlines, the bounded lag that a
//! sleeping task keeps, and "run to parity": a woken task does not preempt before the slice is over. All tasks have
//! priority 0, so virtual time is time. It has no groups, no second processor, and no slices per task.

use coldframe_core::Ps;

use super::Scheduler;

/// `sysctl_sched_base_slice` on one processor.
pub const BASE_SLICE: Ps = Ps::from_us(750);

#[derive(Clone, Copy, Debug)]
struct EevdfEntity {
    vruntime: i64,
    deadline: i64,
    /// Virtual time that the task was owed when it fell asleep.
    lag: i64,
    ready: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    ready: usize,
    vruntime: i128,
}

impl Sums {
    fn with(self, e: &EevdfEntity) -> Sums {
        self.and(e, 1)
    }

    fn without(self, e: &EevdfEntity) -> Sums {
        self.and(e, -1)
    }

    fn and(self, e: &EevdfEntity, times: i128) -> Sums {
        let ready = self.ready.saturating_add_signed(times as isize);
        Sums { ready, vruntime: self.vruntime + times * i128::from(e.vruntime) }
    }
}

#[derive(Debug)]
pub struct Eevdf {
    base_slice: Ps,
    entities: Vec<EevdfEntity>,
    /// The sums of the ready tasks, so a pick goes through the tasks only once.
    sums: Sums,
    running: Option<usize>,
    used: Ps,
    /// The mean when a task last blocked; used while no task is ready.
    mean_before: i64,
}

impl Eevdf {
    /// A scheduler for this many tasks, with slices of this length.
    pub fn new(tasks: usize, base_slice: Ps) -> Eevdf {
        let entities = vec![EevdfEntity { vruntime: 0, deadline: 0, lag: 0, ready: false }; tasks];
        Eevdf { base_slice, entities, sums: Sums::default(), running: None, used: Ps::ZERO, mean_before: 0 }
    }

    /// The ready tasks as they would be after the running one has run for this time.
    fn ready_ones(&self, running_for: Ps) -> impl Iterator<Item = (usize, EevdfEntity)> + '_ {
        let at = move |(task, e): (usize, &EevdfEntity)| match self.running == Some(task) {
            true => (task, e.ran(running_for, self.base_slice)),
            false => (task, *e),
        };
        self.entities.iter().enumerate().filter(|(_, e)| e.ready).map(at)
    }

    /// `avg_vruntime`: the mean.
    fn mean(&self, running_for: Ps) -> i64 {
        let ready = self.entities.iter().filter(|e| e.ready);
        debug_assert_eq!(self.sums, ready.fold(Sums::default(), Sums::with), "the sums are those of the ready ones");
        let mut sums = self.sums;
        if let Some(e) = self.running.map(|task| &self.entities[task]).filter(|e| e.ready && running_for > Ps::ZERO) {
            sums = sums.without(e).with(&e.ran(running_for, self.base_slice));
        }
        match sums.ready {
            0 => self.mean_before,
            ready => sums.vruntime.div_euclid(ready as i128) as i64,
        }
    }

    fn set(&mut self, task: usize, new: EevdfEntity) {
        let old = std::mem::replace(&mut self.entities[task], new);
        if old.ready {
            self.sums = self.sums.without(&old);
        }
        if new.ready {
            self.sums = self.sums.with(&new);
        }
    }
}

impl EevdfEntity {
    /// The entity after this time on the processor. If it reaches its deadline, it gets a new one.
    fn ran(mut self, time: Ps, slice: Ps) -> EevdfEntity {
        self.vruntime += time.0 as i64;
        if self.vruntime >= self.deadline {
            self.deadline = self.vruntime + slice.0 as i64;
        }
        self
    }
}

impl Scheduler for Eevdf {
    fn wake(&mut self, task: usize) {
        let (mean, slice) = (self.mean(Ps::ZERO), self.base_slice);
        let mut entity = self.entities[task];
        entity.vruntime = mean - entity.lag;
        entity.deadline = entity.vruntime + slice.0 as i64;
        entity.ready = true;
        self.set(task, entity);
    }

    fn block(&mut self) {
        let (mean, slice) = (self.mean(Ps::ZERO), self.base_slice);
        if let Some(task) = self.running.take() {
            let mut entity = self.entities[task];
            // `update_entity_lag`: within two slices.
            let most = 2 * slice.0 as i64;
            entity.lag = (mean - entity.vruntime).clamp(-most, most);
            entity.ready = false;
            self.set(task, entity);
            self.mean_before = mean;
        }
    }

    fn charge(&mut self, ran: Ps) {
        if let Some(task) = self.running {
            self.set(task, self.entities[task].ran(ran, self.base_slice));
            self.used += ran;
        }
    }

    fn slice(&self) -> Ps {
        self.base_slice
    }

    fn used(&self) -> Ps {
        self.used
    }

    fn run(&mut self, task: Option<usize>) {
        (self.running, self.used) = (task, Ps::ZERO);
    }

    /// `pick_eevdf`.
    fn next(&self, running_for: Ps) -> Option<usize> {
        let mean = self.mean(running_for);
        let eligible = |(_, e): &(usize, EevdfEntity)| e.vruntime <= mean;
        self.ready_ones(running_for).filter(eligible).min_by_key(|(task, e)| (e.deadline, *task)).map(|(task, _)| task)
    }

    fn preempts(&self, _: usize) -> bool {
        self.running.is_none()
    }

    fn ready(&self) -> usize {
        self.sums.ready
    }

    fn waits(&self, task: usize) -> bool {
        self.entities[task].ready && self.running != Some(task)
    }
}
