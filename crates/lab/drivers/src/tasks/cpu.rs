//! The processor: the running task, the end of its slice, and the events in between.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use coldframe_core::prefetch::PrefetchLists;
use coldframe_core::{Below, Caps, Config, Engine, PageId, Ps, TaskId};
use coldframe_journal::{Head, Journal};

use super::paging::{FaultOutcome, Paging};
use super::{Activation, ListRule, OnFault, Prefetching, Step, TaskResult, TaskSpec, TasksConfig, TasksResult};
use crate::scheduler::Scheduler;
use coldframe_lane::lane::{LaneError, SwapDone};
use coldframe_lane::machine::World;
use coldframe_lane::meters::Meters;
use coldframe_lane::page_table::Masks;
use coldframe_lane::PageRef;

mod activation;
mod foreground;
mod memory;
mod task;

use foreground::Foreground;
pub use foreground::{ForegroundResult, Switch, Turns};
use task::Task;

pub struct Cpu {
    paging: Paging,
    masks: Masks,
    head: Head,
    area: Below,
    /// By page: whether a task has touched it. Kept only where pages have owners.
    owned: Vec<bool>,
    /// Whether pages can be read in buffers or slots.
    in_place: bool,
    scheduler: Box<dyn Scheduler>,
    tasks: Vec<Task>,
    lists: PrefetchLists,
    prefetching: Prefetching,
    reference: Ps,
    tick: Ps,
    next_tick: Ps,
    timer: Option<Ps>,
    /// The times when tasks start, or resume after a pause; the next first.
    alarms: BinaryHeap<Reverse<(Ps, usize)>>,
    running: Option<usize>,
    on_fault: OnFault,
    /// Whether the running task keeps the processor while it waits for a page.
    stands: bool,
    /// The turns of the trace, which then schedules the tasks.
    foreground: Option<Foreground>,
    last: Option<usize>,
    charged: Ps,
    predicted: Option<usize>,
    /// Pages that still need a prefetch hint, and their task.
    pending: VecDeque<PageId>,
    pending_for: usize,
    idle: Ps,
    switches: u64,
    references: u64,
}

impl Cpu {
    /// A processor before the first task starts.
    pub fn new(config: &TasksConfig, specs: &[TaskSpec]) -> Result<Cpu, LaneError> {
        let tasks = specs.len();
        let pages = specs.iter().map(|spec| spec.first_page + spec.program.pages).max().unwrap_or(0) as usize;
        let p = config.prefetching;
        // A buffer for each task and one for each background load, so a demand load always has one. If pages stay in
        // buffers, there are only as many as the device has; more would add to the RAM.
        let queued = if config.handler.needs_xip { 0 } else { (specs.len() as u32 + p.depth) * config.read_together };
        let buffers = queued + config.caps.buffers;
        let caps = Caps { buffers, ..config.caps };
        let bounds = Config { frames: config.frames, pages, tasks, evict_batch: config.evict_batch, caps };
        let policy = config.policy.build(config.frames, pages)?;
        let (below, arrival) = (config.area.clone(), p.arrival);
        let head = Head { below, arrival, ..Head::new(config.policy.to_string(), config.handler, bounds) };
        let builder = Engine::builder(bounds, policy, config.handler);
        let engine = builder.below(head.below.clone()).arrival(arrival).build()?;
        let mut world = World::new(config.machine.clone(), 0, pages, buffers);
        world.meters.xip.price(config.xip_surplus);
        if caps.direct_read {
            world.read_in_slots();
        }
        let mut owned = Vec::new();
        if let Some(slots) = config.area.slots {
            owned = vec![false; pages];
            world.meters.slot_writes = vec![0; slots.slots];
        }
        let mut paging = Paging::new(engine, world, config.read_together);
        if config.handler.needs_xip {
            paging.table.count_reads();
        }
        let in_place = caps.direct_read || config.handler.needs_xip;
        Ok(Cpu {
            masks: paging.table.masks(),
            head,
            in_place,
            area: config.area.clone(),
            owned,
            paging,
            scheduler: (config.scheduler)(tasks, config.slice),
            tasks: specs.iter().map(Task::new).collect(),
            lists: PrefetchLists::new(tasks, p.list_max),
            prefetching: p,
            reference: config.reference,
            tick: config.tick,
            next_tick: config.tick,
            timer: None,
            alarms: (0..tasks).map(|task| Reverse((Ps::ZERO, task))).collect(),
            running: None,
            on_fault: config.on_fault,
            stands: false,
            foreground: None,
            last: None,
            charged: Ps::ZERO,
            predicted: None,
            pending: VecDeque::new(),
            pending_for: 0,
            idle: Ps::ZERO,
            switches: 0,
            references: 0,
        })
    }

    /// Runs until the tasks that end have ended.
    pub fn run(&mut self) -> TasksResult {
        let done: Result<TasksResult, std::convert::Infallible> = self.run_with_journal(&mut |_| Ok(()));
        done.unwrap_or_else(|never| match never {})
    }

    /// As [`run`](Self::run), and hands the journal to `sink`, piece by piece.
    pub fn run_with_journal<E>(&mut self, sink: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<TasksResult, E> {
        /// Turns of the loop between two pieces.
        const TURNS: usize = 1 << 12;
        let mut turn = 0;
        while self.tasks.iter().any(Task::goes_on) {
            self.events();
            match self.running {
                Some(_) if self.stands => self.stand(),
                Some(task) => self.go_on(task),
                None => self.wait(),
            }
            turn += 1;
            if turn == TURNS {
                turn = 0;
                sink(&self.drain_journal())?;
            }
        }
        sink(&self.drain_journal())?;
        Ok(self.result())
    }

    /// Keeps a journal from now on. Call it before [`run`](Self::run).
    pub fn keep_journal(&mut self) {
        self.paging.world.journal = Some(Journal::new(&self.head));
    }

    /// Takes the part of the journal that is new; empty without a journal.
    pub fn drain_journal(&mut self) -> Vec<u8> {
        self.paging.world.journal.as_mut().map(Journal::drain).unwrap_or_default()
    }

    /// Checks the engine's invariants. Only for tests, since it looks at everything.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.paging.engine.check();
    }

    fn now(&self) -> Ps {
        self.paging.world.clock.now
    }

    /// Everything that has come by now.
    fn events(&mut self) {
        while let Some(Reverse((_, task))) = self.alarms.peek().copied().filter(|Reverse((at, _))| *at <= self.now()) {
            self.alarms.pop();
            self.wake(task);
        }
        self.paging.deliver();
        self.note_majors();
        self.note_ends();
        while let Some(task) = self.paging.world.resumed.pop_front() {
            if let Some(page) = self.tasks[task].writing.take() {
                self.paging.table.set_dirty(0, page);
            }
            self.tasks[task].served = true;
            let waited = self.now() - self.tasks[task].stalled;
            self.tasks[task].result.stall.record(waited);
            self.end_fault(task);
            match std::mem::take(&mut self.stands) {
                true => {}
                false => self.wake(task),
            }
        }
        self.feed();
        if self.timer.is_some_and(|at| at <= self.now()) {
            self.ring();
        }
        if self.next_tick <= self.now() {
            let missed = (self.now() - self.next_tick).0 / self.tick.0;
            self.next_tick += self.tick * (missed + 1);
            self.tick();
        }
        if self.running.is_none() {
            self.switch();
        }
    }

    fn wake(&mut self, task: usize) {
        self.charge();
        self.tasks[task].woken = self.now();
        self.scheduler.wake(task);
        let held = self.prefetching.follow && self.predicted.is_some();
        if self.running.is_some() && !self.stands && !held && self.scheduler.preempts(task) {
            self.switch();
        }
    }

    /// The running task's time until now.
    fn charge(&mut self) {
        let ran = self.now() - self.charged;
        self.charged = self.now();
        if let Some(task) = self.running {
            self.scheduler.charge(ran);
            self.tasks[task].unit_used += ran;
        }
    }

    fn tick(&mut self) {
        self.charge();
        if self.running.is_none() {
            return;
        }
        if !self.stands && self.scheduler.used() >= self.scheduler.slice() {
            return self.switch();
        }
        if let Activation::Tick(xi) = self.prefetching.activation {
            if xi < 1.0 && self.used().0 as f64 > xi * self.unit().0 as f64 {
                self.activate();
            }
        }
    }

    /// Nobody is ready: until something ends or begins.
    fn wait(&mut self) {
        let until = self.paging.world.bus.next_end().into_iter().chain(self.next_alarm()).min();
        let until = until.expect("tasks that sleep wait for the device or the clock").max(self.now());
        self.idle += until - self.now();
        self.paging.world.clock.now = until;
        self.charged = until;
    }

    /// The running task waits with the processor: until the next thing happens.
    fn stand(&mut self) {
        self.charge();
        let until = self.until().max(self.now());
        self.paging.world.clock.now = until;
        self.charged = until;
    }

    fn switch(&mut self) {
        self.charge();
        if let Some(task) = self.running.take() {
            self.leave(task);
            self.tasks[task].woken = self.now();
        }
        let predicted = self.predicted.take();
        let follow = predicted.filter(|task| self.prefetching.follow && self.scheduler.waits(*task));
        let next = match follow {
            Some(task) => {
                self.scheduler.run(Some(task));
                Some(task)
            }
            None => self.scheduler.switch(),
        };
        let counts = &mut self.paging.counts;
        match (predicted, next) {
            (Some(predicted), Some(next)) if predicted == next => counts.predicted += 1,
            (Some(_), _) => counts.mispredicted += 1,
            (None, _) => {}
        }
        if let Some(task) = next {
            self.enter(task);
        }
    }

    fn enter(&mut self, task: usize) {
        let now = self.now();
        self.running = Some(task);
        self.come_to_foreground(task);
        let waited = now - self.tasks[task].woken;
        self.tasks[task].result.wait.record(waited);
        if self.last != Some(task) {
            (self.last, self.switches) = (Some(task), self.switches + 1);
            if !self.prefetching.past_switch {
                self.pending.clear();
            }
            // Where nothing can be prefetched, slices need not be kept apart, and the policy is the plain one.
            if self.prefetching.activation != Activation::Never && self.lists.any_but(TaskId::from(task)) {
                self.paging.begin_slice();
                if std::mem::take(&mut self.tasks[task].arrived) {
                    self.make_recent(task);
                }
            }
        }
        self.timer = self.until_timer().map(|rest| now + rest);
    }

    /// The task stops running. When it has used up a time unit, it may be prefetched for again.
    fn leave(&mut self, task: usize) {
        self.timer = None;
        if self.tasks[task].unit_used >= self.scheduler.slice() {
            self.end_unit(task);
        }
    }

    fn end_unit(&mut self, task: usize) {
        (self.tasks[task].unit_used, self.tasks[task].prefetched) = (Ps::ZERO, false);
    }

    /// The task sleeps by its own choice, and its time unit ends.
    fn pause(&mut self, task: usize) {
        self.charge();
        self.tasks[task].unit_last = Some(self.tasks[task].unit_used);
        self.end_unit(task);
        self.timer = None;
        self.scheduler.pause();
        self.running = None;
        self.alarms.push(Reverse((self.now() + self.tasks[task].spec.pause, task)));
    }

    fn sleep(&mut self, task: usize) {
        self.charge();
        self.leave(task);
        self.scheduler.block();
        self.running = None;
    }

    fn note_majors(&mut self) {
        for (task, page) in self.paging.watch().majors.drain(..) {
            if takes(&self.prefetching, self.lists.of(TaskId::from(task)), page) {
                self.lists.major_fault(TaskId::from(task), page);
            }
            self.tasks[task].result.major += 1;
        }
    }

    /// Tasks with a lost page, and tasks killed for lack of memory, do not resume.
    fn note_ends(&mut self) {
        let world = &mut self.paging.world;
        if self.foreground.is_some() {
            world.killed.drain(..).for_each(|task| self.tasks[task.index()].ended = true);
            while let Some(task) = self.paging.world.halted.pop() {
                self.lose(task.index());
            }
            return;
        }
        let ends: Vec<TaskId> = world.halted.drain(..).chain(world.killed.drain(..)).collect();
        for task in ends.into_iter().map(TaskId::index) {
            self.tasks[task].halted = true;
            self.lists.end_task(TaskId::from(task));
            if self.running == Some(task) {
                self.stands = false;
                self.charge();
                self.leave(task);
                self.scheduler.block();
                self.running = None;
            }
        }
    }

    /// When the running task must be looked at again.
    fn until(&self) -> Ps {
        let others = self.paging.world.bus.next_end().into_iter().chain(self.next_alarm()).chain(self.timer);
        others.fold(self.next_tick, Ord::min)
    }

    fn next_alarm(&self) -> Option<Ps> {
        self.alarms.peek().map(|Reverse((at, _))| *at)
    }

    /// The hot loop: a hit is one compare, one store and one subtraction.
    fn go_on(&mut self, running: usize) {
        self.launch(running);
        let budget = self.until().saturating_sub(self.now()).0.div_ceil(self.reference.0.max(1)).max(1);
        let mut left = budget as i64;
        let task = &mut self.tasks[running];
        let served = std::mem::take(&mut task.served);
        let again = task.again.as_slice();
        let mut steps = if again.is_empty() { &task.spec.program.steps[task.step..task.turn_ends()] } else { again };
        if task.ended {
            // Before the step that follows, it launches.
            steps = &steps[..steps.len().min(1)];
        }
        let first = task.spec.first_page as usize;
        let Paging { table, world, .. } = &mut self.paging;
        let (mut done, mut fault) = (0usize, None);
        for step in steps {
            if left <= 0 {
                break;
            }
            if !(table.hit(&self.masks, first + step.reference.page(), step.reference.kind()) || served && done == 0) {
                fault = Some(step.reference);
                break;
            }
            left -= i64::from(step.times);
            done += 1;
            let in_slot = |meters: &Meters| meters.is_in_slot(PageId::from(first + step.reference.page()));
            if self.in_place && (table.counts_reads() || in_slot(&world.meters)) {
                break;
            }
        }
        let last = steps.get(done.wrapping_sub(1)).copied();
        match again.is_empty() {
            true => task.step += done,
            false => task.again.by_ref().take(done).for_each(drop),
        }
        let references = (budget as i64 - left) as u64;
        self.references += references;
        let time = self.reference * references;
        self.paging.world.clock.now += time;
        self.tasks[running].result.useful += time;
        if let Some(foreground) = &mut self.foreground {
            foreground.goes_on(time);
        }
        if let Some(step) = last.filter(|_| self.in_place) {
            self.account_in_place(running, PageId::from(first + step.reference.page()), step);
        }
        match fault {
            Some(reference) => self.fault(running, reference),
            None => self.end_round(running),
        }
    }

    fn fault(&mut self, running: usize, reference: PageRef) {
        let page = PageId::from(self.tasks[running].spec.first_page as usize + reference.page());
        self.tasks[running].faulted = self.now();
        if self.area.slots.is_some() {
            self.own(running, page);
        }
        let outcome = self.paging.fault(running, page, reference.writing());
        self.note_majors();
        if outcome == FaultOutcome::Halted {
            self.stands = self.on_fault == OnFault::Keeps;
            return self.note_ends();
        }
        let task = &mut self.tasks[running];
        task.result.minor += u64::from(outcome != FaultOutcome::Waits);
        task.result.in_flight += u64::from(outcome == FaultOutcome::InFlight);
        if outcome == FaultOutcome::Minor {
            return self.end_fault(running);
        }
        task.writing = reference.writing().then_some(page);
        task.stalled = self.paging.world.clock.now;
        match self.on_fault {
            OnFault::Keeps => self.stands = true,
            OnFault::Sleeps => self.sleep(running),
        }
    }

    fn end_round(&mut self, running: usize) {
        let task = &mut self.tasks[running];
        if task.step < task.turn_ends() {
            return;
        }
        if task.step < task.spec.program.steps.len() {
            task.turns += 1;
            if task.turn_end.is_some() {
                self.sleep(running);
                self.begin_turn();
            } else if task.spec.pause > Ps::ZERO {
                self.pause(running);
            }
            return;
        }
        (task.step, task.rounds, task.turns) = (0, task.rounds + 1, 0);
        if task.spec.fresh {
            self.give_back(running);
        }
        let task = &mut self.tasks[running];
        if task.spec.rounds == Some(task.rounds) {
            task.result.ended = Some(self.paging.world.clock.now);
            self.sleep(running);
            self.lists.end_task(TaskId::from(running));
            self.begin_turn();
        } else if task.spec.pause > Ps::ZERO {
            self.pause(running);
        }
    }

    fn result(&mut self) -> TasksResult {
        let prefetches = self.paging.prefetches();
        for (task, prefetched) in self.tasks.iter_mut().zip(prefetches) {
            task.result.prefetched = prefetched;
        }
        let world = &self.paging.world;
        TasksResult {
            counts: *self.paging.engine.counts(),
            tasks: self.tasks.iter().map(|task| task.result.clone()).collect(),
            prefetch: self.paging.counts,
            time: world.clock.now,
            idle: self.idle,
            device_busy: world.bus.busy(),
            device_reads: world.reads,
            device_writes: world.writes,
            switches: self.switches,
            references: self.references,
            xip_reads: world.meters.xip.reads(&self.paging.table),
            reads_in_slots: world.meters.reads_in_slots(),
            swap: self.paging.engine.swap().map(SwapDone::of),
            halted: match &self.foreground {
                Some(foreground) => foreground.halts,
                None => self.tasks.iter().filter(|task| task.halted).count() as u64,
            },
            foreground: self.foreground_result(),
        }
    }
}

/// Whether a list takes the page that its task had to load.
fn takes(p: &Prefetching, mut listed: impl ExactSizeIterator<Item = PageId>, page: PageId) -> bool {
    match p.list {
        ListRule::OldestLeaves => true,
        ListRule::TakesNoMore => listed.len() < p.list_max && listed.all(|listed| listed != page),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_takes_no_more_keeps_the_first_faults_in_their_order() {
        let p = Prefetching { list: ListRule::TakesNoMore, list_max: 2, ..Prefetching::NEVER };
        let takes = |p: &Prefetching, listed: &[u32], page| takes(p, listed.iter().copied().map(PageId), PageId(page));
        assert!(takes(&p, &[1], 2));
        assert!(!takes(&p, &[1], 1), "a second fault does not move a page");
        assert!(!takes(&p, &[1, 2], 3), "it is full");
        let oldest = Prefetching { list: ListRule::OldestLeaves, ..p };
        assert!(takes(&oldest, &[1, 2], 3) && takes(&oldest, &[1], 1));
    }
}
