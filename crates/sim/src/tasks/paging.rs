//! The machine of several tasks: page table, bus and clock behind one engine, and who waits for which page.

use std::collections::VecDeque;

use coldframe_core::{Access, After, Command, Engine, Event, Machine, PageId, Ps, TaskId, Ticket};
use coldframe_device::StagePrices;

use super::{PrefetchCounts, Prefetched};
use crate::bus::{Bus, Class};
use crate::clock::DeviceTimes;
use crate::page_table::PageTable;

/// What a fault of a task came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The task goes on; the fault was minor.
    Minor,
    /// It waits for the device.
    Waits,
    /// It waits for a page that was on its way already: a minor fault.
    InFlight,
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
    /// The task for which a page was prefetched that nobody has touched yet.
    prefetched: Vec<Option<u32>>,
    /// Such pages now.
    untouched: u64,
    /// The page was prefetched and left untouched, and has not been loaded since.
    lost: Vec<bool>,
    /// The number that each page had when it left last, of all that left but prefetched ones that nobody touched.
    left: Vec<u64>,
    leavings: u64,
    /// When each page was last found touched.
    touched: Vec<Ps>,
    /// The task for which pages are wished.
    wished_for: u32,
    /// By task.
    pub(super) prefetches: Vec<Prefetched>,
    /// Loaded in the background now.
    for_nobody: Vec<bool>,
    /// Loads that need no device.
    zeros: VecDeque<Event>,
    /// Loads under way that nobody waits for.
    background: u32,
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
            prefetched: vec![None; pages],
            untouched: 0,
            lost: vec![false; pages],
            left: vec![0; pages],
            leavings: 0,
            touched: vec![Ps::ZERO; pages],
            wished_for: 0,
            prefetches: vec![Prefetched::default(); tasks],
            for_nobody: vec![false; pages],
            zeros: VecDeque::new(),
            background: 0,
        };
        Paging { engine, world }
    }

    /// A touch that the page table did not let through.
    pub(super) fn fault(&mut self, task: usize, page: PageId, writing: bool) -> Outcome {
        let world = &mut self.world;
        world.waits_for[task] = Some(page);
        world.note_use(page);
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
            if world.majors.len() == majors {
                return Outcome::InFlight;
            }
        } else if world.majors.len() == majors {
            world.counts.write_waits += 1;
            world.bus.hurry(Event::Written { page });
        }
        Outcome::Waits
    }

    /// A wish for a page of this task, which does not stand still for it. False: it was dropped. A page that the device has not is zeros,
    /// and none is made before it is wanted.
    pub(super) fn will_need(&mut self, task: usize, page: PageId) -> bool {
        if !self.world.stored[page.index()] {
            return true;
        }
        let before = self.engine.counts().prefetches_dropped;
        self.world.wished_for = task as u32;
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

    /// Whether a load of the page would be worth it: the device has it and RAM has not.
    pub(super) fn is_absent(&self, page: PageId) -> bool {
        let world = &self.world;
        world.stored[page.index()] && world.tickets[page.index()].is_none() && self.engine.frame_of(page).is_none()
    }

    /// Whether the page was prefetched, is in RAM, and nobody has been seen to touch it.
    pub(super) fn waits(&self, page: PageId) -> bool {
        self.world.prefetched[page.index()].is_some() && self.is_present(page)
    }

    /// Whether the page is in RAM.
    pub(super) fn is_present(&self, page: PageId) -> bool {
        self.engine.frame_of(page).is_some()
    }

    /// Another task runs from now on.
    pub(super) fn begin_slice(&mut self) {
        self.engine.begin_slice(&mut self.world);
    }

    /// Whether the page has been touched since then, as far as its bit has told.
    pub(super) fn was_used(&mut self, page: PageId, since: Ps) -> bool {
        self.look(page);
        self.world.touched[page.index()] >= since
    }

    /// Notes the page's bit, without clearing it.
    fn look(&mut self, page: PageId) {
        if self.engine.frame_of(page).is_some() {
            self.world.referenced(page, After::Keep);
        }
    }

    /// By task, with the touches that no fault has shown.
    pub(super) fn prefetches(&mut self) -> Vec<Prefetched> {
        for page in 0..self.world.prefetched.len() {
            self.look(PageId::from(page));
        }
        self.world.prefetches.clone()
    }
}

impl World {
    /// Loads that were started for nobody.
    pub(super) fn background_loads(&self) -> u64 {
        self.prefetches.iter().map(|of_task| of_task.loads).sum()
    }

    /// The page has been touched.
    fn note_use(&mut self, page: PageId) {
        self.touched[page.index()] = self.now;
        if let Some(task) = self.prefetched[page.index()].take() {
            self.prefetches[task as usize].used += 1;
            self.untouched -= 1;
        }
    }

    /// The page leaves RAM.
    fn note_eviction(&mut self, page: PageId) {
        match self.prefetched[page.index()].take() {
            Some(task) => {
                self.prefetches[task as usize].useless += 1;
                self.untouched -= 1;
                self.lost[page.index()] = true;
            }
            None => {
                self.leavings += 1;
                self.left[page.index()] = self.leavings;
            }
        }
    }

    /// A task must wait for the page: was it prefetched too early, or pushed out by prefetching? Prefetched pages that nobody has touched
    /// hold so many frames, in which the same number of those that left last would be.
    fn note_major(&mut self, task: usize, page: PageId) {
        self.majors.push((task, page));
        let i = page.index();
        if std::mem::take(&mut self.lost[i]) {
            self.prefetches[task].early += 1;
        } else if self.leavings - self.left[i] < self.untouched {
            self.prefetches[self.wished_for as usize].displaced += 1;
        }
    }

    fn load(&mut self, page: PageId, ticket: Ticket) {
        let end = Event::Loaded { ticket };
        if !std::mem::replace(&mut self.stored[page.index()], true) {
            return self.zeros.push_back(end);
        }
        self.tickets[page.index()] = Some(ticket);
        match self.waits_for.iter().position(|waited| *waited == Some(page)) {
            Some(task) => self.note_major(task, page),
            None => {
                self.prefetched[page.index()] = Some(self.wished_for);
                (self.lost[page.index()], self.untouched) = (false, self.untouched + 1);
                self.prefetches[self.wished_for as usize].loads += 1;
                self.background += 1;
            }
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
                self.note_eviction(page);
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
        let referenced = self.table.referenced(0, page, after);
        if referenced {
            self.note_use(page);
        }
        referenced
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table.dirty(0, page)
    }
}
