//! Tasks that take turns in the foreground, as applications on a phone do. They share one engine, one clock and a swap
//! area whose slots are rewritten in place.
//!
//! Make a [`Foreground`], feed it the blocks of a multi-task trace, and take the [`ForegroundResult`]. A row that names
//! another task than the row before brings that task to the foreground. A row's `time` is when the row happens if no
//! fault delays it. The trace does not know which tasks were killed. A killed task repeats what it did at its first
//! start (`launch.rs`), and then goes on with its rows. Services work in the background: their rows switch nothing, and
//! no user waits for them.
//!
//! ```text
//!  a page of a file   ──►  the card (device beside the processor), through the block layer
//!  an anonymous page  ──►  the swap area: a copy by the processor, through the block layer or not; or the card as well
//!                          its first touch: zeros
//! ```

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::swap::SwapAreas;
use coldframe_core::{Access, Backed, Below, Caps, Config, Counts, Engine, Event, PageId, Ps, SlotsConfig, TaskId};
use coldframe_journal::{Head, Journal};
use coldframe_store::{Block, Kind, Reference};

use crate::front_end::Spaces;
use coldframe_lane::faulty::Failures;
use coldframe_lane::lane::{LaneError, SwapDone};
use coldframe_lane::machine::{CollectTimes, DeviceTimes, MachineConfig, Route, Stages, Way, World, Zeros};
use coldframe_lane::numbering::Numbering;
use coldframe_lane::page_table::{Masks, PageTable};
use coldframe_lane::window::Window;
use coldframe_lane::PageRef;

mod launch;

use launch::Launches;

/// log2 of the page size: a slot is a page of 4 KiB.
const PAGE_SHIFT: u32 = 12;

/// A configuration.
#[derive(Clone, Debug)]
pub struct ForegroundConfig {
    /// Policy with its parameters.
    pub policy: PolicyChoice,
    /// Page fault handler: the order of search and load.
    pub handler: &'static Handler,
    /// Frames of RAM for the tasks.
    pub frames: usize,
    /// The swap area, and the threshold of the low memory killer.
    pub slots: SlotsConfig,
    /// A log on flash, or Linux's map of slots there, in place of slots that are rewritten in place. No task is then
    /// killed for lack of memory.
    pub flash: Option<(SwapAreas, CollectTimes)>,
    /// Buffers of the card, at least 1. A handler that runs pages from the buffer needs 2.
    pub buffers: u32,
    /// Transfers that fail.
    pub failures: Option<Failures>,
    /// Direct read: pages in the swap area are read there, without a copy.
    pub direct_read: bool,
    /// After this many reads in its slot, a page is copied to RAM; `None`: it never is.
    pub reads_max: Option<u32>,
    /// By task: whether the task is a service. A service is never in the foreground.
    pub services: Vec<bool>,
    /// Times.
    pub prices: ForegroundPrices,
}

/// Times of the processor and the device.
#[derive(Clone, Copy, Debug)]
pub struct ForegroundPrices {
    /// Trap, page table and return, for each fault.
    pub fault: Ps,
    /// Processor time to bring a page from the swap area.
    pub swap_in: Ps,
    /// Processor time to write a page to the swap area.
    pub swap_out: Ps,
    /// Whether the swap area is on the card too. The card then does its part of each transfer.
    pub swap_on_card: bool,
    /// Extra time of a reference to a page in its slot, over a reference to DRAM.
    pub slot_read: Ps,
    /// Time in the block layer, for each page from or to a file.
    pub block_layer: Ps,
    /// The card.
    pub card: DeviceTimes,
    /// References within this time after a switch count as part of the switch.
    pub answer: Ps,
}

/// A switch: a task comes to the foreground.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The task.
    pub task: u32,
    /// Whether the task had to start: it was killed before, or it runs for the first time.
    pub cold: bool,
    /// Time in fault handling until the task's working set was in RAM.
    pub delay: Ps,
}

/// The result of a run.
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
    /// References to pages in their slots, by direct read.
    pub reads_in_slots: u64,
    /// Slots of the area, in the order of the writes.
    pub slot_log: Vec<u32>,
    /// Time in fault handling.
    pub paging: Ps,
    /// Extra time of references to slots, over references to DRAM.
    pub slot_reading: Ps,
    /// Time for copies that no task waited for.
    pub beside: Ps,
    /// The time of the last reference.
    pub end: Ps,
    /// The counts of a swap area on flash; `None`: there is none.
    pub swap: Option<SwapDone>,
    /// References to pages in the card's buffers.
    pub xip_reads: u64,
    /// How often a task was stopped, because the device failed and a page was lost.
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
    /// Time for copies that no task waited for.
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
    services: Vec<bool>,
    answer: Ps,
    last: Ps,
}

impl Foreground {
    /// A run for this many pages and address spaces.
    ///
    /// # Errors
    /// Parameters that do not fit the frames, or bounds of zero.
    pub fn new(config: &ForegroundConfig, pages: usize, spaces: Spaces, tasks: usize) -> Result<Foreground, LaneError> {
        let ForegroundConfig { buffers, direct_read, .. } = *config;
        let caps = Caps { reference_bit: true, dirty_bit: true, buffers, direct_read, places: false };
        let bounds = Config { frames: config.frames, pages, tasks, evict_batch: 1, caps };
        let policy = config.policy.build(config.frames, pages)?;
        let mut machine = config.prices.machine();
        (machine.reads_max, machine.failures) = (config.reads_max, config.failures);
        let below = match &config.flash {
            Some((flash, collect)) => {
                machine.collect = *collect;
                Below::Swap(flash.clone())
            }
            None => Below::Slots(config.slots),
        };
        let head = Head { below, ..Head::new(config.policy.to_string(), config.handler, bounds) };
        let engine = Engine::builder(bounds, policy, config.handler).below(head.below.clone()).build()?;
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
            services: config.services.clone(),
            answer: config.prices.answer,
            last: Ps::ZERO,
        })
    }

    /// Takes the rows of a block. `backed` says what the page of a row belongs to.
    ///
    /// # Panics
    /// If the trace has more pages or tasks than the run was made for.
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
    }

    fn is_service(&self, task: TaskId) -> bool {
        self.services.get(task.index()).copied().unwrap_or(false)
    }

    /// The user switches to this task.
    fn is_awaited(&self, task: TaskId) -> bool {
        self.current == Some(task) && self.last < self.switched + self.answer
    }

    fn access(&mut self, task: TaskId, page: PageId, writing: bool, count: u32) {
        let mut took = Ps::ZERO;
        let kind = if writing { PageRef::WRITE_KIND } else { 0 };
        if !self.table.hit(&self.masks, page.index(), kind) {
            // A killed task starts again with its next reference.
            let Some(time) = self.fault(task, page, writing) else { return };
            took = time;
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
        if let Below::Slots(_) = self.head.below {
            self.handle(Event::Foreground { task });
        }
    }

    /// Starts a killed task again: the task repeats what it did at its first start. The first time, this does nothing.
    fn launch(&mut self, task: TaskId) {
        let touches = self.launches.take(task);
        touches.iter().for_each(|(page, writing)| self.access(task, *page, *writing, 1));
        self.launches.put_back(task, touches);
    }

    /// Handles an event that no task waits for, and everything that follows from it.
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
        if let Below::Slots(_) = self.head.below {
            self.handle(Event::Owned { task, page, backed });
        }
    }

    fn handle(&mut self, event: Event) {
        self.world.handle(&mut self.engine, &mut self.table, event);
        self.note_ends();
    }

    /// Takes the tasks that were killed for lack of memory, or stopped because a page is lost. The memory of a stopped
    /// task is released. Otherwise the task would meet the lost page again and again.
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

    /// The delay against the trace's own times.
    fn delayed(&self) -> Ps {
        self.paging + self.world.in_slots.as_ref().map_or(Ps::ZERO, |in_slots| in_slots.longer)
    }

    /// Sets the clock to the current reference, and reports the transfers that have ended by then.
    fn catch_up(&mut self) {
        self.world.now = self.world.now.max(self.last + self.delayed());
        self.world.deliver(&mut self.engine, &mut self.table);
        self.note_ends();
    }

    /// Handles a fault until the task can repeat its access. Returns the time taken; `None`: the page is lost, and the
    /// task was stopped.
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

    /// Keeps a journal from now on. Call it before the first row.
    pub fn keep_journal(&mut self) {
        self.world.journal = Some(Journal::new(&self.head));
    }

    /// Takes the part of the journal that is new; empty without a journal.
    pub fn drain_journal(&mut self) -> Vec<u8> {
        self.world.journal.as_mut().map(Journal::drain).unwrap_or_default()
    }

    /// The engine, for inspection.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The result so far.
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
    /// The configuration of the machine with these prices.
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
            area_slots: usize::MAX,
            moves: Ps::ZERO,
            moves_loaded_only: false,
            lines: u32::MAX,
            window: Window::Alone,
        }
    }
}

#[cfg(test)]
mod tests;
