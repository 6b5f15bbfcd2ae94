//! The machine in virtual time: page table, bus, clock and meters below an engine. Drivers give it references: a
//! string ([`crate::Lane`]), tasks under a scheduler ([`crate::tasks`]), tasks in the foreground
//! ([`crate::Foreground`]).
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

use coldframe_core::{After, Command, Engine, Event, Machine, PageId, Place, Ps, SlotId, Stage, TaskId, Ticket, Work};
use coldframe_device::StagePrices;
use coldframe_trace::journal::{self, Journal};

use crate::bus::{Bus, Class};
use crate::faulty::{Failures, Faulty};
use crate::in_slots::InSlots;
use crate::page_table::PageTable;
use crate::read_ahead::beside;
use crate::swap::read_ahead::Window;
use crate::tasks::reclaim::WRITES_MAX;
use crate::tasks::token::SwapToken;
use crate::tier::TierTimes;
use crate::watch::Watch;
use crate::xip::XipMeter;

/// What the device takes for one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceTimes {
    /// LoadStopover.
    pub load: Ps,
    /// Programming a page after it has crossed the bus; `None` if no source gives it. Writes then take the device no time, and the
    /// result says so.
    pub program: Option<Ps>,
}

/// What a collection takes the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectTimes {
    /// One page read and programmed within the device.
    pub copy: Ps,
    /// One block erased.
    pub erase: Ps,
}

/// What a page takes on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// The processor.
    pub processor: Ps,
    /// The device, beside the processor; `None`: no device has a part in it.
    pub device: Option<Ps>,
}

/// What pages take to and from a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// To RAM, up to the buffer.
    pub load: Way,
    /// From RAM.
    pub write: Way,
}

impl Route {
    /// Of a device that loads by itself; a write crosses the bus by the processor's hand first, which takes so long.
    pub fn device(times: DeviceTimes, crossing: Ps) -> Route {
        Route {
            load: Way { processor: Ps::ZERO, device: Some(times.load) },
            write: Way { processor: crossing, device: Some(times.program.unwrap_or(Ps::ZERO)) },
        }
    }
}

/// What the processor takes for the stages of a fault.
#[derive(Clone, Copy, Debug)]
pub enum Stages {
    /// Each its own price.
    Each(StagePrices),
    /// All of a fault so long, at its beginning.
    AtOnce(Ps),
}

/// Where the bytes of a page come from that was never written out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// From the device, which has every page from the beginning, as the boards of SWL and DDB have.
    Loaded,
    /// They are zeros the first time, which cost nothing; after that the device has the page.
    Once,
    /// They are zeros, which cost nothing.
    Free,
}

/// What the machine is made of.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Stages.
    pub stages: Stages,
    /// Pages in their home slots.
    pub home: Route,
    /// Pages in the swap area.
    pub area: Route,
    /// Pages that were never written out.
    pub zeros: Zeros,
    /// Collections of the swap area.
    pub collect: CollectTimes,
    /// A reference to a page in its slot takes so much longer than one to RAM.
    pub slot_read: Ps,
    /// References after which a page that is read in its slot is said to be read often; `None`: never.
    pub reads_max: Option<u32>,
    /// Which transfers fail.
    pub failures: Option<Failures>,
    /// Only pages that a device has loaded are moved from a buffer; the copy of others is on their way, and zeros are made in their frame.
    pub moves_loaded_only: bool,
    /// Cache lines of a page: references to it in a row read each line in a buffer or a slot once. `u32::MAX`: there is no cache.
    pub lines: u32,
    /// Slots of a swap area on flash that are read together with a page that a task waits for.
    pub window: Window,
}

impl MachineConfig {
    /// One device for home slots and swap area.
    pub fn device(prices: StagePrices, times: DeviceTimes, zeros: Zeros) -> MachineConfig {
        let route = Route::device(times, prices.trans_host_mem);
        MachineConfig {
            stages: Stages::Each(prices),
            home: route,
            area: route,
            zeros,
            collect: CollectTimes::default(),
            slot_read: Ps::ZERO,
            reads_max: None,
            failures: None,
            moves_loaded_only: false,
            lines: u32::MAX,
            window: Window::Alone,
        }
    }
}

/// Of which kind a fault turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultKind {
    /// The page had to be brought.
    True,
    /// It was in RAM and not mapped.
    False,
    /// It was mapped.
    Write,
}

/// Everything that the engine's commands change, but the page table.
pub(crate) struct World {
    config: MachineConfig,
    number: u32,
    homes: usize,
    pub(crate) bus: Bus,
    /// The queue that transfers join.
    pub(crate) class: Class,
    pub(crate) now: Ps,
    pub(crate) stages: [Ps; 6],
    /// Processor time that was hidden behind loads.
    pub(crate) hidden: Ps,
    /// When the loads in flight started and the last of them will end.
    loading: Option<(Ps, Ps)>,
    pub(crate) kind: FaultKind,
    pub(crate) xip: XipMeter,
    pub(crate) in_slots: Option<InSlots>,
    /// Pages whose bytes a device has.
    pub(crate) stored: Vec<bool>,
    /// Pages that a device loaded when they came last.
    loaded: Vec<bool>,
    /// The page that is moved now came from no device.
    moves_free: bool,
    /// Pages of files, which are never zeros; empty: none.
    pub(crate) file: Vec<bool>,
    pub(crate) zero_loads: u64,
    /// Pages read from a device.
    pub(crate) reads: u64,
    /// Pages written to a device.
    pub(crate) writes: u64,
    /// Slots of an area that is rewritten in place, in the order of the writes; kept only for such.
    pub(crate) slot_log: Option<Vec<u32>>,
    /// Ends of what no device had a part in.
    done: VecDeque<Event>,
    /// Loads of zeros and from a tier, which cannot fail.
    zeros: VecDeque<Event>,
    /// Tasks that can go on.
    pub(crate) resumed: VecDeque<usize>,
    /// Tasks ended for want of memory.
    pub(crate) killed: Vec<TaskId>,
    /// Tasks stopped because a page of theirs is lost.
    pub(crate) halted: Vec<TaskId>,
    /// What became of pages that were prefetched, by task.
    pub(crate) watch: Option<Box<Watch>>,
    /// The swap token, if the tasks have one.
    pub(crate) token: Option<Box<SwapToken>>,
    /// Writes go behind all loads that a task waits for, while the device's queue has room.
    pub(crate) behind: bool,
    /// The device takes transfers in the order in which they come.
    pub(crate) in_order: bool,
    /// What a tier takes, if there is one.
    pub(crate) tier: Option<Box<TierTimes>>,
    faulty: Option<Box<Faulty>>,
    pub(crate) journal: Option<Journal>,
}

impl World {
    /// Lane `number` of a page table, for an engine of these bounds.
    pub(crate) fn new(config: MachineConfig, number: u32, pages: usize, buffers: u32) -> World {
        World {
            number,
            homes: pages,
            bus: Bus::default(),
            class: Class::Demand,
            now: Ps::ZERO,
            stages: [Ps::ZERO; 6],
            hidden: Ps::ZERO,
            loading: None,
            kind: FaultKind::True,
            xip: XipMeter::new(buffers),
            in_slots: None,
            stored: vec![false; pages],
            loaded: vec![false; pages],
            moves_free: false,
            file: Vec::new(),
            zero_loads: 0,
            reads: 0,
            writes: 0,
            slot_log: None,
            done: VecDeque::new(),
            zeros: VecDeque::new(),
            resumed: VecDeque::with_capacity(16),
            killed: Vec::new(),
            halted: Vec::new(),
            watch: None,
            token: None,
            behind: false,
            in_order: false,
            tier: None,
            faulty: config.failures.map(|failures| Box::new(Faulty::new(failures))),
            journal: None,
            config,
        }
    }

    /// Pages are read in their slots from now on, and that is counted.
    pub(crate) fn read_in_slots(&mut self) {
        self.in_slots = Some(InSlots::new(self.homes, self.config.slot_read, self.config.reads_max));
    }

    /// Of so many references in a row those that reach memory.
    pub(crate) fn uncached(&self, times: u32) -> u32 {
        times.min(self.config.lines)
    }

    pub(crate) fn set_collect(&mut self, collect: CollectTimes) {
        self.config.collect = collect;
    }

    /// Gives the event to the engine, and all that follows from it without a device.
    pub(crate) fn handle(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        match event {
            Event::Fault { task, page, .. } if self.config.window != Window::Alone => {
                let (together, before) = (beside(self.config.window, page, engine), engine.counts().true_faults);
                self.turn_and_follow(engine, table, event);
                if engine.counts().true_faults > before {
                    self.read_together(engine, table, task, &together);
                }
            }
            _ => self.turn_and_follow(engine, table, event),
        }
    }

    /// Pages that lie beside the one that the task has just begun to wait for. No task waits for them, so they come behind it.
    fn read_together(&mut self, engine: &mut Engine, table: &mut PageTable, task: TaskId, together: &[PageId]) {
        if let Some(watch) = &mut self.watch {
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

    /// The event as the device tells it.
    fn turned(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        let event = self.faulty.as_mut().map_or(event, |faulty| faulty.turn(event));
        self.step(engine, table, event);
    }

    fn step(&mut self, engine: &mut Engine, table: &mut PageTable, event: Event) {
        if let Event::Loaded { ticket } = event {
            self.loading = self.loading.filter(|(_, end)| *end > self.now);
            self.came(ticket);
        }
        if self.journal.is_none() && self.faulty.is_none() {
            return engine.handle(event, &mut View { table, world: self });
        }
        let (now, mut journal) = (self.now.0, self.journal.take());
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

    fn came(&mut self, ticket: Ticket) {
        if let Some(watch) = &mut self.watch {
            watch.came(ticket);
        }
    }

    /// Gives the engine every end that has come by now.
    pub(crate) fn deliver(&mut self, engine: &mut Engine, table: &mut PageTable) {
        while let Some(event) = self.bus.ended(self.now) {
            self.class = Class::Demand;
            self.handle(engine, table, event);
        }
    }

    /// Gives the engine the next end, for which the processor waits. False: nothing is under way.
    pub(crate) fn wait(&mut self, engine: &mut Engine, table: &mut PageTable) -> bool {
        let Some((end, event)) = self.bus.next_event() else { return false };
        self.wait_until(end);
        self.handle(engine, table, event);
        true
    }

    /// Time that the processor spends on a stage; the part beside a load in flight is the load's.
    fn spend(&mut self, stage: Stage, time: Ps) {
        let beside = match self.loading {
            Some((_, end)) => end.saturating_sub(self.now).min(time),
            None => Ps::ZERO,
        };
        self.hidden += beside;
        self.stages[stage as usize] += time - beside;
        self.now += time;
    }

    /// The processor has nothing to do until the device is done.
    fn wait_until(&mut self, end: Ps) {
        match self.loading {
            // From its start to its end, whatever else was done meanwhile.
            Some((start, load_end)) if load_end == end => self.stages[Stage::LoadStopover as usize] += end - start,
            Some(_) => {}
            None => self.stages[Stage::LoadStopover as usize] += end.saturating_sub(self.now),
        }
        self.now = self.now.max(end);
    }

    fn stage(&mut self, stage: Stage, work: &Work) {
        if stage == Stage::TransHostMem && std::mem::take(&mut self.moves_free) {
            return;
        }
        let time = match &self.config.stages {
            Stages::Each(prices) => prices.of(stage, work),
            Stages::AtOnce(fault) if stage == Stage::PreProcess => *fault,
            Stages::AtOnce(_) => Ps::ZERO,
        };
        self.spend(stage, time);
    }

    fn load(&mut self, page: PageId, ticket: Ticket, from: SlotId) {
        let (i, end, in_area) = (page.index(), Event::Loaded { ticket }, from.index() >= self.homes);
        self.kind = FaultKind::True;
        let zeros = !in_area && !self.has_bytes(page);
        self.zero_loads += u64::from(zeros);
        self.loaded[i] = false;
        if zeros && self.config.zeros != Zeros::Loaded {
            self.stored[i] = self.config.zeros == Zeros::Once;
            return self.zeros.push_back(end);
        }
        let way = if in_area { self.config.area.load } else { self.config.home.load };
        if let Some(watch) = &mut self.watch {
            watch.load(page, ticket);
        }
        self.spend(Stage::TransHostMem, way.processor);
        let Some(takes) = way.device else { return self.done.push_back(end) };
        self.reads += 1;
        self.loaded[i] = true;
        let class = self.queue(self.class);
        let ends = self.bus.submit(self.now, takes, Some(end), class);
        let start = self.loading.map_or(self.now, |(start, _)| start);
        self.loading = Some((start, ends));
    }

    fn tier(&self) -> &TierTimes {
        self.tier.as_ref().expect("an engine with a tier")
    }

    /// The bytes are there at once. A page that nobody has written to, and no device has, is zeros: one word.
    fn compress(&mut self, page: PageId, dirty: bool) {
        const WORD: u32 = 8;
        let zeros = !dirty && self.config.zeros != Zeros::Loaded && !self.has_bytes(page);
        let (takes, size) = (self.tier().compress, if zeros { WORD } else { self.tier().sizes.of(page) });
        self.spend(Stage::GetFreeframe, takes);
        self.done.push_back(Event::Compressed { page, size });
    }

    /// A device has the page, or a file does.
    fn has_bytes(&self, page: PageId) -> bool {
        self.stored[page.index()] || self.file.get(page.index()).copied().unwrap_or(false)
    }

    /// It cannot fail, as no device has a part in it.
    fn unpack(&mut self, ticket: Ticket) {
        self.kind = FaultKind::True;
        self.spend(Stage::TransHostMem, self.tier().decompress);
        self.zeros.push_back(Event::Loaded { ticket });
    }

    fn write(&mut self, page: PageId, to: SlotId) {
        let (end, slot) = (Event::Written { page }, to.index().checked_sub(self.homes));
        let way = if slot.is_some() { self.config.area.write } else { self.config.home.write };
        self.spend(Stage::GetFreeframe, way.processor);
        self.stored[page.index()] = true;
        if let (Some(slot), Some(log)) = (slot, &mut self.slot_log) {
            log.push(slot as u32);
        }
        let Some(takes) = way.device else { return self.done.push_back(end) };
        self.writes += 1;
        let behind = self.behind && self.bus.writes() < WRITES_MAX;
        let class = self.queue(if behind { Class::Background } else { self.class });
        self.bus.submit(self.now, takes, Some(end), class);
    }

    /// The queue that a transfer of this class joins.
    fn queue(&self, class: Class) -> Class {
        if self.in_order {
            Class::Demand
        } else {
            class
        }
    }

    /// The swap token makes the page look touched.
    fn is_spared(&mut self, page: PageId) -> bool {
        let World { token: Some(token), watch: Some(watch), .. } = self else { return false };
        token.spares(page, |task| watch.is_waiting(task))
    }

    /// The page is in no buffer and no slot any more.
    fn leaves_place(&mut self, page: PageId, table: &PageTable) {
        self.xip.leaves(page, table);
        if let Some(in_slots) = &mut self.in_slots {
            in_slots.leaves(page);
        }
    }
}

/// The whole of it, as the engine sees it.
pub(crate) struct View<'a> {
    pub(crate) table: &'a mut PageTable,
    pub(crate) world: &'a mut World,
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
            // Priced with the stage.
            Command::Move { page, .. } => {
                world.moves_free = world.config.moves_loaded_only && !world.loaded[page.index()];
            }
            Command::Protect { page } => table.protect(world.number, page),
            Command::Write { page, to, .. } => world.write(page, to),
            Command::Unmap { page } => {
                world.leaves_place(page, table);
                table.unmap(world.number, page);
            }
            Command::Evict { page, .. } => {
                world.leaves_place(page, table);
                if let Some(watch) = &mut world.watch {
                    watch.leaves(page);
                }
                table.unmap(world.number, page);
            }
            Command::Map { page, place, writable, referenced } => {
                world.leaves_place(page, table);
                match place {
                    Place::Frame(_) => {}
                    Place::Buffer(_) => world.xip.enters(page, table),
                    Place::Slot(_) => world.in_slots.as_mut().expect("the machine reads in slots").enters(page),
                }
                table.map(world.number, page, writable, referenced);
            }
            Command::CopySlot { .. } => {
                world.bus.submit(world.now, world.config.collect.copy, None, world.class);
            }
            Command::EraseBlock { .. } => {
                world.bus.submit(world.now, world.config.collect.erase, None, world.class);
            }
            Command::Compress { page, dirty, .. } => world.compress(page, dirty),
            Command::Unpack { ticket, .. } => world.unpack(ticket),
            // It is written as it was before.
            Command::TakeOut { .. } => world.spend(Stage::GetFreeframe, world.tier().decompress),
            // A copy of some hundred bytes, or none.
            Command::Store { .. } | Command::Forget { .. } | Command::Shift { .. } | Command::Lend { .. } => {}
            Command::Resume { task } => {
                if let Some(watch) = &mut world.watch {
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
        if let Some(watch) = self.world.watch.as_mut().filter(|_| referenced) {
            watch.touched(page, self.world.now);
        }
        referenced || self.world.is_spared(page)
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table.dirty(self.world.number, page)
    }
}
