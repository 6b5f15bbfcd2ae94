//! The machine in virtual time: page table, bus, clock and meters below an engine. Drivers give it references: a
//! string ([`crate::Lane`]), and tasks under a scheduler (`drivers::tasks`).
//!
//! ```text
//!   driver ── a reference that the page table does not let through ──► World::handle ──► engine
//!     ▲                                                                    │ commands
//!     └── resumed, killed, halted ◄── page table, bus, clock, meters ◄─────┘
//! ```
//!
//! The place of a page decides its [`Route`]: the time of the processor and the time of the device for a load or a
//! write. No formula computes overlap: a load that starts before the search continues while the search's price moves
//! the clock, and a task that waits then waits for the rest of the load.

use std::collections::VecDeque;

use coldframe_core::{After, Command, Engine, Event, Machine, PageId, Ps, SlotId, Stage, TaskId, Ticket, Work};
use coldframe_journal::{self as journal, Journal};

use crate::bus::{Bus, Class};
use crate::clock::Clock;
use crate::faulty::Faulty;
use crate::in_slots::InSlots;
use crate::meters::Meters;
use crate::page_table::PageTable;
use crate::read_ahead::window_pages;
use coldframe_core::prefetch::Window;

pub use crate::prices::{CollectTimes, DeviceTimes, MachineConfig, Route, Stages, Way, Zeros};

/// The kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// True fault: the page was not in RAM.
    True,
    /// False fault: the page was in RAM, but not mapped.
    False,
    /// The page was mapped.
    Write,
}

/// Everything that the engine's commands change, except the page table.
pub struct World {
    config: MachineConfig,
    number: u32,
    homes: usize,
    /// The bus of the device.
    pub bus: Bus,
    /// The queue for new transfers.
    pub class: Class,
    /// The clock.
    pub clock: Clock,
    /// The kind of the fault that is being handled.
    pub kind: FaultKind,
    /// What is counted besides.
    pub meters: Meters,
    /// Pages that a device has.
    pub stored: Vec<bool>,
    /// Pages whose last load was from a device.
    loaded: Vec<bool>,
    /// The page that is being moved came from no device.
    moves_free: bool,
    /// Pages of files, which are never zeros; empty: there are none.
    pub file: Vec<bool>,
    /// Loads of pages that are zeros.
    pub zero_loads: u64,
    /// Pages read from a device.
    pub reads: u64,
    /// Pages written to a device.
    pub writes: u64,
    /// Ends of transfers without a device.
    done: VecDeque<Event>,
    /// Ends of transfers on a device that takes no time, while the processor takes none either; `None`: they take time,
    /// on the bus.
    pub instant: Option<VecDeque<Event>>,
    /// Loads of zeros. They cannot fail.
    zeros: VecDeque<Event>,
    /// Tasks that can go on.
    pub resumed: VecDeque<usize>,
    /// Tasks killed for lack of memory.
    pub killed: Vec<TaskId>,
    /// Tasks stopped because one of their pages is lost.
    pub halted: Vec<TaskId>,
    faulty: Option<Box<Faulty>>,
    /// The journal, if one is kept.
    pub journal: Option<Journal>,
}

impl World {
    /// Lane `number` of a page table, for an engine with these bounds.
    pub fn new(config: MachineConfig, number: u32, pages: usize, buffers: u32) -> World {
        World {
            number,
            homes: pages,
            bus: Bus::default(),
            class: Class::Demand,
            clock: Clock::default(),
            kind: FaultKind::True,
            meters: Meters::new(buffers),
            stored: vec![false; pages],
            loaded: vec![false; pages],
            moves_free: false,
            file: Vec::new(),
            zero_loads: 0,
            reads: 0,
            writes: 0,
            done: VecDeque::new(),
            instant: None,
            zeros: VecDeque::new(),
            resumed: VecDeque::with_capacity(16),
            killed: Vec::new(),
            halted: Vec::new(),
            faulty: config.failures.map(|failures| Box::new(Faulty::new(failures))),
            journal: None,
            config,
        }
    }

    /// From now on, pages are read in their slots, and these reads are counted.
    pub fn read_in_slots(&mut self) {
        self.meters.in_slots = Some(InSlots::new(self.homes, self.config.slot_read, self.config.reads_max));
    }

    /// Of this many consecutive references to a page, the number that reach memory.
    pub fn uncached(&self, times: u32) -> u32 {
        times.min(self.config.lines)
    }

    /// Sets the times of collections; transfers then take time on the bus.
    pub fn set_collect(&mut self, collect: CollectTimes) {
        (self.config.collect, self.instant) = (collect, None);
    }

    /// Gives the event to the engine, and then all events that follow without a device.
    pub fn handle(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        match event {
            Event::Fault { task, page, .. } if self.config.window != Window::Alone => {
                let (together, before) = (window_pages(self.config.window, page, engine), engine.counts().true_faults);
                self.turn_and_follow(engine, table, event);
                if engine.counts().true_faults > before {
                    self.read_together(engine, table, task, &together);
                }
            }
            _ => self.turn_and_follow(engine, table, event),
        }
    }

    /// Asks for the pages beside the one that the task has just begun to wait for. No task waits for them, so they come
    /// after it.
    fn read_together(&mut self, engine: &mut Engine, table: &mut PageTable, task: TaskId, together: &[PageId]) {
        if let Some(watch) = &mut self.meters.watch {
            watch.wished_for = task.0;
        }
        for page in together {
            self.class = Class::Background;
            self.turn_and_follow(engine, table, Event::WillNeed { page: *page });
        }
    }

    fn turn_and_follow(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        self.turned(engine, table, event);
        loop {
            // What follows from an end are loads of tasks that waited.
            if let Some(event) = self.faulty.as_mut().and_then(|faulty| faulty.next_failure()) {
                self.class = Class::Demand;
                self.step(engine, table, event);
            } else if let Some(event) = self.zeros.pop_front() {
                self.class = Class::Demand;
                self.step(engine, table, event);
            } else if let Some(event) = self.done.pop_front() {
                self.class = Class::Demand;
                self.turned(engine, table, event);
            } else {
                return;
            }
        }
    }

    /// The event as the device reports it.
    fn turned(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        let event = self.faulty.as_mut().map_or(event, |faulty| faulty.turn(event));
        self.step(engine, table, event);
    }

    fn step(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        if let Event::Loaded { ticket } = event {
            self.clock.load_ended();
            self.meters.load_ended(ticket);
        }
        if self.journal.is_none() && self.faulty.is_none() {
            return engine.handle(event, &mut View { table, world: self });
        }
        let (now, mut journal) = (self.clock.now.0, self.journal.take());
        match self.faulty.take() {
            None => journal::handle(engine, event, now, &mut View { table, world: self }, journal.as_mut()),
            Some(mut faulty) => {
                let mut view = View { table, world: self };
                journal::handle(engine, event, now, &mut faulty.around(&mut view), journal.as_mut());
                self.faulty = Some(faulty);
            }
        }
        self.journal = journal;
    }

    /// Gives the engine all ends that have come by now.
    pub fn deliver(&mut self, engine: &mut Engine, table: &mut PageTable) {
        while let Some(event) =
            self.instant.as_mut().map_or_else(|| self.bus.ended(self.clock.now), VecDeque::pop_front)
        {
            self.class = Class::Demand;
            self.handle(engine, table, event);
        }
    }

    /// Waits for the next end, and gives it to the engine. Returns false if no transfer is under way.
    pub fn wait(&mut self, engine: &mut Engine, table: &mut PageTable) -> bool {
        let next = match &mut self.instant {
            Some(ends) => ends.pop_front().map(|event| (self.clock.now, event)),
            None => self.bus.next_event(),
        };
        let Some((end, event)) = next else { return false };
        self.clock.wait_until(end);
        self.handle(engine, table, event);
        true
    }

    fn stage(&mut self, stage: Stage, work: &Work) {
        if self.instant.is_some() {
            return;
        }
        if stage == Stage::TransHostMem && std::mem::take(&mut self.moves_free) {
            return;
        }
        let time = match &self.config.stages {
            Stages::Each(prices) => prices.of(stage, work),
            Stages::AtOnce(fault) if stage == Stage::PreProcess => *fault,
            Stages::AtOnce(_) => Ps::ZERO,
        };
        self.clock.spend(stage, time);
    }

    fn load(&mut self, page: PageId, ticket: Ticket, from: SlotId) {
        let (i, end, in_area) = (page.index(), Event::Loaded { ticket }, self.in_area(from));
        self.kind = FaultKind::True;
        let zeros = !in_area && !self.has_bytes(page);
        self.zero_loads += u64::from(zeros);
        self.meters.load(page, zeros);
        self.loaded[i] = false;
        if zeros && self.config.zeros != Zeros::Loaded {
            self.stored[i] = self.config.zeros == Zeros::Once;
            return self.zeros.push_back(end);
        }
        let way = if in_area { self.config.area.load } else { self.config.home.load };
        self.meters.load_begins(page, ticket);
        self.clock.spend(Stage::TransHostMem, way.processor);
        let Some(takes) = way.device else { return self.done.push_back(end) };
        self.reads += 1;
        self.loaded[i] = true;
        if let Some(ends) = &mut self.instant {
            return ends.push_back(end);
        }
        let ends = self.bus.submit(self.clock.now, takes, Some(end), self.class);
        self.clock.load_begins(ends);
    }

    fn in_area(&self, slot: SlotId) -> bool {
        slot.index().checked_sub(self.homes).is_some_and(|slot| slot < self.config.area_slots)
    }

    /// Whether a device or a file has the page.
    fn has_bytes(&self, page: PageId) -> bool {
        self.stored[page.index()] || self.is_file(page)
    }

    /// Whether the page belongs to a file.
    pub fn is_file(&self, page: PageId) -> bool {
        self.file.get(page.index()).copied().unwrap_or(false)
    }

    fn write(&mut self, page: PageId, to: SlotId) {
        let (end, slot) = (Event::Written { page }, to.index().checked_sub(self.homes));
        let way = if self.in_area(to) { self.config.area.write } else { self.config.home.write };
        self.clock.spend(Stage::GetFreeframe, way.processor);
        self.stored[page.index()] = true;
        self.meters.write(page, slot);
        let Some(takes) = way.device else { return self.done.push_back(end) };
        self.writes += 1;
        if let Some(ends) = &mut self.instant {
            return ends.push_back(end);
        }
        self.bus.submit(self.clock.now, takes, Some(end), self.class);
    }
}

/// The machine as the engine sees it.
pub struct View<'a> {
    /// The page table.
    pub table: &'a mut PageTable,
    /// The rest of the machine.
    pub world: &'a mut World,
}

impl Machine for View<'_> {
    fn issue(&mut self, command: Command) {
        let (table, world) = (&mut *self.table, &mut *self.world);
        match command {
            Command::Stage { stage, work } => {
                if work.false_fault {
                    world.kind = FaultKind::False;
                }
                world.stage(stage, &work);
            }
            Command::Load { ticket, page, from, .. } => world.load(page, ticket, from),
            // The stage's price includes it.
            Command::Move { page, .. } => {
                let loaded = world.loaded[page.index()];
                world.moves_free = world.config.moves_loaded_only && !loaded;
                if world.config.moves > Ps::ZERO && loaded {
                    world.bus.submit(world.clock.now, world.config.moves, None, world.class);
                }
            }
            Command::Protect { page } => table.protect(world.number, page),
            Command::Write { page, to, .. } => world.write(page, to),
            Command::Unmap { page } => {
                world.meters.leaves_place(page, table);
                table.unmap(world.number, page);
            }
            Command::Evict { page, .. } => {
                world.meters.leaves_place(page, table);
                if let Some(watch) = &mut world.meters.watch {
                    let touched = table.referenced(world.number, page, After::Keep);
                    watch.leaves(page, touched, world.class == Class::Background);
                }
                table.unmap(world.number, page);
            }
            Command::Map { page, place, writable, referenced } => {
                world.meters.leaves_place(page, table);
                world.meters.enters(page, place, table);
                table.map(world.number, page, writable, referenced);
            }
            Command::Zero { page, .. } => {
                world.meters.load(page, true);
                table.map(world.number, page, true, false);
            }
            Command::CopySlot { .. } => {
                world.bus.submit(world.clock.now, world.config.collect.copy, None, world.class);
            }
            Command::EraseBlock { .. } => {
                world.bus.submit(world.clock.now, world.config.collect.erase, None, world.class);
            }
            Command::Resume { task } => {
                if let Some(watch) = &mut world.meters.watch {
                    watch.resumed(task);
                }
                world.resumed.push_back(task.index());
            }
            Command::Kill { task } => world.killed.push(task),
            Command::Halt { task, .. } => world.halted.push(task),
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let referenced = self.table.referenced(self.world.number, page, after);
        if let Some(watch) = self.world.meters.watch.as_mut().filter(|_| referenced) {
            watch.touched(page);
        }
        referenced
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table.dirty(self.world.number, page)
    }

    fn filled(&mut self, page: PageId) -> bool {
        self.table.dirty(self.world.number, page)
    }
}
