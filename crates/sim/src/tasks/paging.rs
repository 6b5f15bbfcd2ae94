//! The machine of several tasks: page table, bus and clock behind one engine, and who waits for which page.

use std::collections::VecDeque;

use coldframe_core::{Access, After, Command, Engine, Event, Machine, PageId, Ps, TaskId, Ticket};
use coldframe_device::StagePrices;

use super::PrefetchCounts;
use crate::bus::{Bus, Class};
use crate::clock::DeviceTimes;
use crate::page_table::PageTable;

/// What a fault of a task came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The task goes on; the fault was minor.
    Minor,
    /// It waits for the device, or for a page that others have asked for.
    Waits,
}

/// Everything that the engine's commands change.
pub(super) struct World {
    pub(super) table: PageTable,
    pub(super) bus: Bus,
    pub(super) now: Ps,
    pub(super) counts: PrefetchCounts,
    /// Tasks that can go on.
    pub(super) resumed: VecDeque<usize>,
    /// Major faults that were started: task and page.
    pub(super) majors: Vec<(usize, PageId)>,
    prices: StagePrices,
    device: DeviceTimes,
    class: Class,
    /// The page that each task waits for.
    waits_for: Vec<Option<PageId>>,
    /// The load of each page in flight.
    tickets: Vec<Option<Ticket>>,
    /// The device has bytes of the page.
    stored: Vec<bool>,
    /// Prefetched and not touched yet.
    prefetched: Vec<bool>,
    /// Loaded in the background now.
    for_nobody: Vec<bool>,
    /// Loads that need no device.
    zeros: VecDeque<Event>,
    /// Loads under way that nobody waits for, and what a load takes.
    background: u32,
    pub(super) load: Ps,
}

/// The engine and its machine.
pub(super) struct Paging {
    pub(super) engine: Engine,
    pub(super) world: World,
}

impl Paging {
    pub(super) fn new(engine: Engine, prices: StagePrices, device: DeviceTimes) -> Paging {
        let (pages, tasks) = (engine.config().pages, engine.config().tasks);
        let world = World {
            table: PageTable::new(pages, 1),
            bus: Bus::default(),
            now: Ps::ZERO,
            counts: PrefetchCounts::default(),
            resumed: VecDeque::with_capacity(tasks),
            majors: Vec::with_capacity(tasks),
            prices,
            device,
            class: Class::Demand,
            waits_for: vec![None; tasks],
            tickets: vec![None; pages],
            stored: vec![false; pages],
            prefetched: vec![false; pages],
            for_nobody: vec![false; pages],
            zeros: VecDeque::new(),
            background: 0,
            load: device.load,
        };
        Paging { engine, world }
    }

    /// A touch that the page table did not let through.
    pub(super) fn fault(&mut self, task: usize, page: PageId, writing: bool) -> Outcome {
        let world = &mut self.world;
        world.waits_for[task] = Some(page);
        if std::mem::take(&mut world.prefetched[page.index()]) {
            world.counts.used += 1;
        }
        let access = if writing { Access::Write } else { Access::Read };
        let majors = world.majors.len();
        self.handle(Event::Fault { task: TaskId::from(task), page, access }, Class::Demand);
        self.deliver_zeros();
        let world = &mut self.world;
        if world.resumed.back() == Some(&task) {
            world.resumed.pop_back();
            if writing {
                world.table.set_dirty(0, page);
            }
            return Outcome::Minor;
        }
        if let Some(ticket) = world.tickets[page.index()] {
            world.bus.hurry(Event::Loaded { ticket });
        } else if world.majors.len() == majors {
            world.counts.write_waits += 1;
            world.bus.hurry(Event::Written { page });
        }
        Outcome::Waits
    }

    /// A wish for a page that nobody stands still for. False: it was dropped.
    pub(super) fn will_need(&mut self, page: PageId) -> bool {
        let before = self.engine.counts().prefetches_dropped;
        self.handle(Event::WillNeed { page }, Class::Background);
        self.engine.counts().prefetches_dropped == before
    }

    /// Ends of transfers that have come.
    pub(super) fn deliver(&mut self) {
        while let Some(event) = self.world.bus.ended(self.world.now) {
            // What follows from an end are loads of tasks that waited.
            self.handle(event, Class::Demand);
            self.deliver_zeros();
        }
    }

    fn deliver_zeros(&mut self) {
        while let Some(event) = self.world.zeros.pop_front() {
            self.handle(event, Class::Demand);
        }
    }

    fn handle(&mut self, event: Event, class: Class) {
        self.world.class = class;
        self.engine.handle(event, &mut self.world);
    }

    /// Loads under way that were started for nobody.
    pub(super) fn in_background(&self) -> u32 {
        self.world.background
    }

    /// Whether the page, which a task has just faulted on, is on its way to the device.
    pub(super) fn waits_for_write(&self, page: PageId) -> bool {
        self.world.tickets[page.index()].is_none() && self.engine.frame_of(page).is_none()
    }

    /// Whether a load of the page would be worth it: the device has it and RAM has not.
    pub(super) fn is_absent(&self, page: PageId) -> bool {
        let world = &self.world;
        world.stored[page.index()] && world.tickets[page.index()].is_none() && self.engine.frame_of(page).is_none()
    }

    /// Whether the page is in RAM and has been touched lately, as far as its bit says.
    pub(super) fn is_used(&mut self, page: PageId) -> bool {
        self.engine.frame_of(page).is_some() && self.world.table.referenced(0, page, After::Keep)
    }
}

impl World {
    fn load(&mut self, page: PageId, ticket: Ticket) {
        let end = Event::Loaded { ticket };
        if !std::mem::replace(&mut self.stored[page.index()], true) {
            return self.zeros.push_back(end);
        }
        self.tickets[page.index()] = Some(ticket);
        match self.waits_for.iter().position(|waited| *waited == Some(page)) {
            Some(task) => self.majors.push((task, page)),
            None => (self.prefetched[page.index()], self.background) = (true, self.background + 1),
        }
        self.for_nobody[page.index()] = !self.waits_for.contains(&Some(page));
        self.bus.submit(self.now, self.device.load, end, self.class);
    }
}

impl Machine for World {
    fn issue(&mut self, command: Command) {
        match command {
            Command::Stage { stage, work } => self.now += self.prices.of(stage, &work),
            Command::Load { ticket, page, .. } => self.load(page, ticket),
            Command::Move { page, .. } => {
                self.tickets[page.index()] = None;
                self.background -= u32::from(std::mem::take(&mut self.for_nobody[page.index()]));
            }
            Command::Protect { page } => self.table.protect(0, page),
            Command::Write { page, .. } => {
                let takes = self.device.program.unwrap_or(Ps::ZERO);
                self.bus.submit(self.now, takes, Event::Written { page }, self.class);
            }
            Command::Unmap { page } => self.table.unmap(0, page),
            Command::Evict { page, .. } => {
                if std::mem::take(&mut self.prefetched[page.index()]) {
                    self.counts.wasted += 1;
                }
                self.table.unmap(0, page);
            }
            Command::Map { page, writable, referenced, .. } => self.table.map(0, page, writable, referenced),
            Command::Resume { task } => {
                self.waits_for[task.index()] = None;
                self.resumed.push_back(task.index());
            }
            Command::Halt { page, .. } => {
                unreachable!("the simulated device never fails, but page {} was lost", page.0)
            }
            Command::Kill { task } => unreachable!("task {} is ended, but this engine has no slots", task.0),
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        self.table.referenced(0, page, after)
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table.dirty(0, page)
    }
}
