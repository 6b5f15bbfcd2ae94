//! Tasks that take turns in the foreground, as applications on a phone do: one engine, a swap area whose slots are rewritten in place, and
//! a clock.
//!
//! Make a [`Foreground`], feed it the blocks of a multi-task trace, and take the [`ForegroundResult`]. A task that a row names after another
//! one is in the foreground from then on. A row's `time` says when it happens if no fault delays it. The trace knows nothing of tasks that are
//! ended: such a task does again what it did at its first beginning (`launch.rs`) before it goes on with its rows. Services work in the
//! background: their rows switch nothing, and nobody waits for them.
//!
//! ```text
//!  a page of a file   ──►  the card (device beside the processor), through the block layer
//!  an anonymous page  ──►  the swap area: a copy by the processor, through the block layer or not; or the card as well
//!                          its first touch: zeros
//! ```

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::swap::Swap;
use coldframe_core::{Access, Backed, Caps, Config, Counts, Engine, Event, PageId, Ps, SlotsConfig, TaskId};
use coldframe_trace::journal::{Head, Journal, SwapHead};
use coldframe_trace::{Block, Kind, Reference};

use crate::faulty::Failures;
use crate::front_end::{PageRef, Spaces};
use crate::lane::{LaneError, SwapDone};
use crate::machine::{CollectTimes, DeviceTimes, MachineConfig, Route, Stages, Way, World, Zeros};
use crate::numbering::Numbering;
use crate::page_table::{Masks, PageTable};
use crate::swap::read_ahead::Window;

mod launch;
mod prefetching;

use launch::Launches;
use prefetching::Prefetching;

/// log2 of the page size: a slot is a page of 4 KiB.
const PAGE_SHIFT: u32 = 12;

/// A configuration.
#[derive(Clone, Debug)]
pub struct ForegroundConfig {
    /// Policy with its parameters.
    pub policy: PolicyChoice,
    /// The order of search and load.
    pub handler: &'static Handler,
    /// Frames of RAM for the tasks.
    pub frames: usize,
    /// The swap area and the killer's threshold.
    pub slots: SlotsConfig,
    /// A log on flash, or Linux's map of slots there, instead of slots that are rewritten in place; then nobody is ended for want of memory.
    pub flash: Option<(SwapHead, CollectTimes)>,
    /// Buffers of the card, at least 1; a handler that runs pages from there wants 2.
    pub buffers: u32,
    /// Which transfers fail.
    pub failures: Option<Failures>,
    /// Swapped pages are read where they lie.
    pub direct_read: bool,
    /// Reads after which a page that is read where it lies is copied; `None`: it never is.
    pub reads_max: Option<u32>,
    /// What is loaded for the task that is expected next.
    pub prefetch: Option<Prefetch>,
    /// By task: it works in the background and is never in the foreground.
    pub services: Vec<bool>,
    /// What things take.
    pub prices: ForegroundPrices,
}

/// What things take.
#[derive(Clone, Copy, Debug)]
pub struct ForegroundPrices {
    /// Trap, page table and return of each fault.
    pub fault: Ps,
    /// A page from the swap area: the processor's part.
    pub swap_in: Ps,
    /// A page to the swap area: the processor's part.
    pub swap_out: Ps,
    /// The swap area lies on the card too, which then does its part of the work.
    pub swap_on_card: bool,
    /// A reference to a page in its slot takes so much longer than one to DRAM.
    pub slot_read: Ps,
    /// The block layer, for each page from or to a file.
    pub block_layer: Ps,
    /// The card.
    pub card: DeviceTimes,
    /// How long after a switch references belong to the switch.
    pub answer: Ps,
}

/// Prefetching lists (SAP section 3) for tasks that come back in the order of their last visits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefetch {
    /// Most pages on a list.
    pub bound: usize,
    /// The activation moment: so long after a switch the next task's list is loaded.
    pub activation: Ps,
}

/// A task came to the foreground.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Which.
    pub task: u32,
    /// It had been ended, or never begun.
    pub cold: bool,
    /// Fault handling until its working set answered.
    pub delay: Ps,
}

/// What a run has found out.
#[derive(Clone, Debug)]
pub struct ForegroundResult {
    /// The engine's counts.
    pub counts: Counts,
    /// Switches, oldest first.
    pub switches: Vec<Switch>,
    /// Pages read from the card.
    pub card_reads: u64,
    /// Pages written to the card.
    pub card_writes: u64,
    /// References answered in slots, by direct read.
    pub reads_in_slots: u64,
    /// Slots of the area in the order in which they were written.
    pub slot_log: Vec<u32>,
    /// Time in fault handling.
    pub paging: Ps,
    /// Time by which references to slots took longer than references to DRAM.
    pub slot_reading: Ps,
    /// Time for copies that nobody waited for.
    pub beside: Ps,
    /// When the last reference was answered.
    pub end: Ps,
    /// What a swap area on flash did, if there is one.
    pub swap: Option<SwapDone>,
    /// References answered in the card's buffers.
    pub xip_reads: u64,
    /// Times that a task was stopped, because the device had failed and a page was lost.
    pub halts: u64,
}

/// A run.
pub struct Foreground {
    engine: Engine,
    world: World,
    table: PageTable,
    masks: Masks,
    head: Head,
    paging: Ps,
    /// Copies that nobody waited for.
    beside: Ps,
    halts: u64,
    /// By task.
    pages_of: Vec<Vec<PageId>>,
    numbering: Numbering,
    spaces: Spaces,
    owned: usize,
    current: Option<TaskId>,
    switched: Ps,
    switches: Vec<Switch>,
    ended: Vec<bool>,
    launches: Launches,
    prefetching: Prefetching,
    services: Vec<bool>,
    answer: Ps,
    last: Ps,
}

impl Foreground {
    /// For so many pages and address spaces.
    ///
    /// # Errors
    /// Parameters that do not fit the frames, or bounds of zero.
    pub fn new(config: &ForegroundConfig, pages: usize, spaces: Spaces, tasks: usize) -> Result<Foreground, LaneError> {
        let ForegroundConfig { buffers, direct_read, .. } = *config;
        let caps = Caps { reference_bit: true, dirty_bit: true, buffers, direct_read, places: false };
        let bounds = Config { frames: config.frames, pages, tasks, evict_batch: 1, caps };
        let policy = config.policy.build(config.frames, pages)?;
        let mut engine = Engine::new(bounds, policy, config.handler)?;
        let mut head = Head::new(config.policy.to_string(), config.handler, bounds);
        let mut machine = config.prices.machine();
        (machine.reads_max, machine.failures) = (config.reads_max, config.failures);
        match &config.flash {
            Some((flash, collect)) => {
                engine.set_swap(Swap::new(pages, flash.slots_per_block, &flash.areas)?);
                (head.swap, machine.collect) = (Some(flash.clone()), *collect);
            }
            None => {
                engine.set_slots(config.slots);
                head.slots = Some(config.slots);
            }
        }
        let mut world = World::new(machine, 0, pages, buffers);
        world.file = vec![false; pages];
        world.slot_log = config.flash.is_none().then(Vec::new);
        if direct_read {
            world.read_in_slots();
        }
        let mut table = PageTable::new(pages, 1);
        if config.handler.needs_xip {
            table.count_reads();
        }
        Ok(Foreground {
            engine,
            world,
            masks: table.masks(),
            table,
            head,
            paging: Ps::ZERO,
            beside: Ps::ZERO,
            halts: 0,
            pages_of: vec![Vec::new(); tasks],
            numbering: Numbering::new(PAGE_SHIFT),
            spaces,
            owned: 0,
            current: None,
            switched: Ps::ZERO,
            switches: Vec::new(),
            ended: vec![true; tasks],
            launches: Launches::new(pages, tasks, config.prices.answer),
            prefetching: Prefetching::new(config.prefetch, tasks, &config.services),
            services: config.services.clone(),
            answer: config.prices.answer,
            last: Ps::ZERO,
        })
    }

    /// Takes the rows of a block; `backed` says what a row's page belongs to.
    ///
    /// # Panics
    /// If the trace has more pages or tasks than were announced.
    pub fn feed(&mut self, block: &Block, backed: &dyn Fn(&Reference) -> Backed) {
        block.iter().for_each(|row| self.reference(row, backed));
    }

    fn reference(&mut self, row: Reference, backed: &dyn Fn(&Reference) -> Backed) {
        let task = TaskId(self.spaces.of(row.task));
        self.last = Ps::from_ns(row.time);
        if self.current != Some(task) && !self.is_service(task) {
            self.switch(task);
        }
        let page = PageId(self.numbering.number(task.0, row.address >> PAGE_SHIFT));
        if self.numbering.count() > self.owned {
            self.own(task, page, backed(&row));
        }
        if std::mem::take(&mut self.ended[task.index()]) {
            self.launch(task);
        }
        let writing = row.kind == Kind::Write;
        self.launches.note(task, page, writing, self.last);
        self.access(task, page, writing, row.count);
        self.prefetch();
    }

    fn is_service(&self, task: TaskId) -> bool {
        self.services.get(task.index()).copied().unwrap_or(false)
    }

    /// The user waits for this task.
    fn is_awaited(&self, task: TaskId) -> bool {
        self.current == Some(task) && self.last < self.switched + self.answer
    }

    fn access(&mut self, task: TaskId, page: PageId, writing: bool, count: u32) {
        let mut took = Ps::ZERO;
        let kind = if writing { PageRef::WRITE_KIND } else { 0 };
        if !self.table.hit(&self.masks, page.index(), kind) {
            // A task that is stopped begins anew with its next reference.
            let Some(time) = self.fault(task, page, writing) else { return };
            took = time;
            self.prefetching.faulted(task, page, self.is_read_in_slot(page));
            self.table.touch(0, page, writing);
        }
        if self.table.counts_reads() && !writing {
            self.table.count_more(page, count);
        }
        if let Some(in_slots) = &mut self.world.in_slots {
            took += in_slots.touch(page, count);
        }
        if self.world.in_slots.as_mut().is_some_and(|in_slots| in_slots.is_read_often(page)) {
            self.settle(Event::ReadOften { page });
        }
        if self.is_awaited(task) {
            self.switches.last_mut().expect("a task is in the foreground").delay += took;
        }
    }

    fn switch(&mut self, task: TaskId) {
        self.current = Some(task);
        self.switched = self.last;
        self.switches.push(Switch { task: task.0, cold: self.ended[task.index()], delay: Ps::ZERO });
        self.prefetching.switched(task);
        if self.head.slots.is_some() {
            self.handle(Event::Foreground { task });
        }
    }

    /// A task that was ended is begun anew: it does what it did when it was begun first. Nothing the first time.
    fn launch(&mut self, task: TaskId) {
        let touches = self.launches.take(task);
        touches.iter().for_each(|(page, writing)| self.access(task, *page, *writing, 1));
        self.launches.put_back(task, touches);
    }

    /// Loads what the task that is expected next had to copy lately, once in each visit.
    fn prefetch(&mut self) {
        if self.prefetching.is_due(self.last - self.switched) {
            for page in self.prefetching.wishes() {
                self.settle(Event::WillNeed { page });
            }
        }
    }

    fn is_read_in_slot(&self, page: PageId) -> bool {
        self.world.in_slots.as_ref().is_some_and(|in_slots| in_slots.has(page))
    }

    /// An event for which nobody stands still, with all that follows from it.
    fn settle(&mut self, event: Event) {
        self.catch_up();
        let began = self.world.now;
        self.handle(event);
        while self.engine.is_loading() && self.world.wait(&mut self.engine, &mut self.table) {}
        self.note_ends();
        self.beside += self.world.now - began;
    }

    fn own(&mut self, task: TaskId, page: PageId, backed: Backed) {
        self.owned += 1;
        self.pages_of[task.index()].push(page);
        self.world.file[page.index()] = backed == Backed::File;
        if self.head.slots.is_some() {
            self.handle(Event::Owned { task, page, backed });
        }
    }

    fn handle(&mut self, event: Event) {
        self.world.handle(&mut self.engine, &mut self.table, event);
        self.note_ends();
    }

    /// Tasks that were ended for want of memory, or stopped because a page is lost. The memory of one that was stopped is given back, or it
    /// would come upon the lost page again and again.
    fn note_ends(&mut self) {
        for task in self.world.killed.drain(..) {
            self.ended[task.index()] = true;
        }
        while let Some(task) = self.world.halted.pop() {
            self.halts += 1;
            self.ended[task.index()] = true;
            for i in 0..self.pages_of[task.index()].len() {
                let page = self.pages_of[task.index()][i];
                let event = Event::Released { page };
                if !self.world.file[page.index()] && self.engine.accepts(&event) {
                    self.world.handle(&mut self.engine, &mut self.table, event);
                    self.world.stored[page.index()] = false;
                }
            }
        }
    }

    /// By how much the trace's own times are exceeded.
    fn delayed(&self) -> Ps {
        self.paging + self.world.in_slots.as_ref().map_or(Ps::ZERO, |in_slots| in_slots.longer)
    }

    /// The clock stands at the reference that is at hand, and what has ended by now is told.
    fn catch_up(&mut self) {
        self.world.now = self.world.now.max(self.last + self.delayed());
        self.world.deliver(&mut self.engine, &mut self.table);
        self.note_ends();
    }

    /// The whole fault, until the task can repeat its access. Returns what it took; `None`: the page is lost and the task was stopped.
    fn fault(&mut self, task: TaskId, page: PageId, writing: bool) -> Option<Ps> {
        self.catch_up();
        let began = self.world.now;
        self.world.resumed.clear();
        let (access, halts) = (if writing { Access::Write } else { Access::Read }, self.halts);
        self.handle(Event::Fault { task, page, access });
        while self.world.resumed.is_empty() && self.halts == halts {
            assert!(self.world.wait(&mut self.engine, &mut self.table), "a task that stands still waits for the card");
            self.note_ends();
        }
        let took = self.world.now - began;
        self.paging += took;
        (self.halts == halts).then_some(took)
    }

    /// Keeps a journal from now on; to be called before the first row.
    pub fn keep_journal(&mut self) {
        self.world.journal = Some(Journal::new(&self.head));
    }

    /// Takes out what the journal has grown by; empty if none is kept.
    pub fn drain_journal(&mut self) -> Vec<u8> {
        self.world.journal.as_mut().map(Journal::drain).unwrap_or_default()
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What it has found out so far.
    pub fn result(&self) -> ForegroundResult {
        let world = &self.world;
        let in_slots = world.in_slots.as_ref().map_or((0, Ps::ZERO), |in_slots| (in_slots.reads, in_slots.longer));
        ForegroundResult {
            counts: *self.engine.counts(),
            switches: self.switches.clone(),
            card_reads: world.reads,
            card_writes: world.writes,
            reads_in_slots: in_slots.0,
            slot_log: world.slot_log.clone().unwrap_or_default(),
            paging: self.paging,
            slot_reading: in_slots.1,
            beside: self.beside,
            end: self.last + self.delayed(),
            swap: self.engine.swap().map(SwapDone::of),
            xip_reads: world.xip.reads(&self.table),
            halts: self.halts,
        }
    }
}

impl ForegroundPrices {
    /// The machine that they are the prices of.
    pub fn machine(&self) -> MachineConfig {
        let through = |processor, device: Option<Ps>| Way { processor, device };
        let program = self.card.program.unwrap_or(Ps::ZERO);
        let (load, write) = match self.swap_on_card {
            true => (Some(self.card.load), Some(program)),
            false => (None, None),
        };
        MachineConfig {
            stages: Stages::AtOnce(self.fault),
            home: Route {
                load: through(self.block_layer, Some(self.card.load)),
                write: through(self.block_layer, Some(program)),
            },
            area: Route { load: through(self.swap_in, load), write: through(self.swap_out, write) },
            zeros: Zeros::Free,
            collect: CollectTimes::default(),
            slot_read: self.slot_read,
            reads_max: None,
            failures: None,
            moves_loaded_only: false,
            lines: u32::MAX,
            window: Window::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::fault::handler::sequential;
    use coldframe_trace::journal::replay;

    const US: Ps = Ps(1_000_000);

    fn prices() -> ForegroundPrices {
        ForegroundPrices {
            fault: US,
            swap_in: US * 10,
            swap_out: US * 100,
            swap_on_card: false,
            slot_read: Ps(1_000),
            block_layer: US * 1_000,
            card: DeviceTimes { load: US * 10_000, program: Some(US * 100_000) },
            answer: US * 500,
        }
    }

    /// The run, and its journal, which a fresh engine must repeat.
    fn run(frames: usize, slots: usize, direct_read: bool, rows: &[(u32, u64, Kind)]) -> ForegroundResult {
        run_with(frames, slots, direct_read, None, rows)
    }

    fn run_with(
        frames: usize,
        slots: usize,
        direct_read: bool,
        reads_max: Option<u32>,
        rows: &[(u32, u64, Kind)],
    ) -> ForegroundResult {
        let policy = PolicyChoice::parse("fifo").unwrap();
        let slots = SlotsConfig { slots, files_min: 0 };
        let prices = prices();
        let config = ForegroundConfig {
            policy,
            handler: &sequential::HANDLER,
            frames,
            slots,
            flash: None,
            buffers: 1,
            failures: None,
            direct_read,
            reads_max,
            prefetch: None,
            services: Vec::new(),
            prices,
        };
        let mut run = Foreground::new(&config, 16, Spaces::default(), 3).unwrap();
        run.keep_journal();
        let row =
            |(task, page, kind): &(u32, u64, Kind)| Reference { task: *task, ..Reference::new(page << 12, 4, *kind) };
        let block: Block = rows.iter().map(row).collect();
        run.feed(&block, &|row| if row.address >> 12 < 8 { Backed::Anonymous } else { Backed::File });
        run.engine().check();
        let replayed = replay(&run.drain_journal()).unwrap();
        assert!(replayed.commands > 0 && replayed.events > rows.len() as u64);
        run.result()
    }

    #[test]
    fn a_direct_read_takes_a_fault_and_a_copy_takes_a_swap_in() {
        let rows = [(0, 0, Kind::Write), (0, 1, Kind::Write), (0, 0, Kind::Read), (0, 0, Kind::Read)];
        let (with, without) = (run(1, 4, true, &rows), run(1, 4, false, &rows));
        // Three faults and page 0 out; without direct read also page 1 out and page 0 in.
        assert_eq!((with.paging, without.paging), (US * 103, US * 213));
        assert_eq!((with.reads_in_slots, with.counts.swap_ins), (2, 0));
        assert_eq!((without.reads_in_slots, without.counts.swap_ins), (0, 1));
        assert_eq!((with.slot_log, without.slot_log), (vec![0], vec![0, 1]));
    }

    #[test]
    fn files_come_from_the_card_and_the_task_waits_for_it() {
        let done = run(2, 4, true, &[(0, 8, Kind::Fetch), (0, 9, Kind::Write), (0, 1, Kind::Write)]);
        // Three faults, two reads from the card; page 8 is dropped, page 9 stays.
        assert_eq!(done.paging, US * (3 + 2 * 11_000));
        assert_eq!((done.card_reads, done.card_writes), (2, 0));
    }

    #[test]
    fn reads_in_slots_take_their_time_and_the_one_too_many_copies() {
        let read = (0, 0, Kind::Read);
        let rows = [(0, 0, Kind::Write), (0, 1, Kind::Write), read, read, read, read];
        let (twice, ever) = (run_with(1, 4, true, Some(2), &rows), run_with(1, 4, true, None, &rows));
        // Three of four reads in the slot, the third one too many; the copy traps, sends page 1 out, and is nobody's wait.
        assert_eq!((twice.reads_in_slots, ever.reads_in_slots), (3, 4));
        assert_eq!((twice.slot_reading, ever.slot_reading), (Ps(3_000), Ps(4_000)));
        assert_eq!((twice.counts.swap_ins, twice.counts.read_often, twice.beside), (1, 1, US * 111));
        assert_eq!((ever.counts.swap_ins, ever.beside, twice.paging), (0, Ps::ZERO, ever.paging));
    }

    #[test]
    fn a_service_is_never_in_the_foreground_and_begins_anew_when_it_was_ended() {
        let prices = prices();
        let policy = PolicyChoice::parse("fifo").unwrap();
        let slots = SlotsConfig { slots: 0, files_min: 0 };
        let config = ForegroundConfig {
            policy,
            handler: &sequential::HANDLER,
            frames: 2,
            slots,
            flash: None,
            buffers: 1,
            failures: None,
            direct_read: false,
            reads_max: None,
            prefetch: None,
            services: vec![false, true],
            prices,
        };
        let mut run = Foreground::new(&config, 16, Spaces::default(), 2).unwrap();
        // The service builds page 0 up and is ended for task 0's second page; at its next row, a read of page 1, it builds page 0 up again.
        let row = |(task, page, time): (u32, u64, u64)| Reference {
            task,
            time,
            ..Reference::new(page << 12, 4, Kind::Write)
        };
        let second = 1_000_000_000;
        let rows: Block = [(1, 0, 0), (0, 0, 0), (0, 1, 1), (1, 1, second)].into_iter().map(row).collect();
        run.feed(&rows, &|_| Backed::Anonymous);
        let done = run.result();
        assert_eq!(done.switches.len(), 1);
        assert_eq!((done.counts.kills, done.counts.cold_faults), (1, 5));
    }

    #[test]
    fn what_was_copied_is_there_before_the_task_comes_back() {
        let policy = PolicyChoice::parse("fifo").unwrap();
        let slots = SlotsConfig { slots: 8, files_min: 0 };
        let visit =
            |(i, task): (usize, &u32)| {
                let start = i as u64 * 1_000_000_000;
                // At the activation moment a frame is free of the visit's own pages.
                [(0, start), (0, start + 500_000_000), (0, start + 900_000_000)].map(|(page, time): (u64, u64)| {
                    Reference { task: *task, time, ..Reference::new(page << 12, 4, Kind::Write) }
                })
            };
        let rows: Block = [0, 1, 0, 1, 0].iter().enumerate().flat_map(visit).collect();
        let run = |prefetch| {
            let config = ForegroundConfig {
                policy: policy.clone(),
                handler: &sequential::HANDLER,
                frames: 1,
                slots,
                flash: None,
                buffers: 1,
                failures: None,
                direct_read: false,
                reads_max: None,
                prefetch,
                services: Vec::new(),
                prices: prices(),
            };
            let mut run = Foreground::new(&config, 16, Spaces::default(), 2).unwrap();
            run.feed(&rows, &|_| Backed::Anonymous);
            run.result()
        };
        let with = run(Some(Prefetch { bound: 4, activation: Ps(900_000_000_000) }));
        let without = run(None);
        // One frame: three switches back copy one page each, unless it was copied at the end of the visit before; the last visit's
        // end copies one for a visit that does not come.
        assert_eq!((without.counts.swap_ins, without.counts.prefetches), (3, 0));
        assert_eq!((with.counts.swap_ins, with.counts.prefetches), (4, 4));
        let waits = |r: &ForegroundResult| r.switches.iter().skip(2).map(|s| s.delay).sum::<Ps>();
        assert_eq!((waits(&with), waits(&without)), (Ps::ZERO, US * 3 * 111));
    }

    #[test]
    fn a_task_that_was_ended_comes_back_cold() {
        let write = |task| (task, 0, Kind::Write);
        let done = run(1, 0, true, &[write(0), write(1), write(0)]);
        let seen: Vec<_> = done.switches.iter().map(|s| (s.task, s.cold, s.delay)).collect();
        assert_eq!(seen, [(0, true, US), (1, true, US), (0, true, US)]);
        assert_eq!((done.counts.kills, done.counts.homeless), (2, 0));
        let room = run(2, 0, true, &[write(0), write(1), write(0)]);
        assert_eq!((room.counts.kills, room.switches[2].cold), (0, false));
    }
}
