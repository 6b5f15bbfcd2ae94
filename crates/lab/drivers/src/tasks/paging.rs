//! The machine below several tasks: one page table for all, and the tasks that wait for each page.

use coldframe_core::{Access, After, Engine, Event, Machine, PageId, TaskId};

use super::{PrefetchCounts, Prefetched};
use coldframe_lane::bus::Class;
use coldframe_lane::machine::{View, World};
use coldframe_lane::page_table::PageTable;
use coldframe_lane::watch::Watch;

/// The outcome of a task's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FaultOutcome {
    /// The task resumes; the fault was minor.
    Minor,
    Waits,
    /// It waits for a page that was on its way already: a minor fault.
    InFlight,
    /// The task does not resume: the page is lost.
    Halted,
}

pub(super) struct Paging {
    pub(super) engine: Engine,
    pub(super) world: World,
    pub(super) table: PageTable,
    pub(super) counts: PrefetchCounts,
    /// Pages of the aligned group that is read with one.
    together: u32,
}

impl Paging {
    /// The world watches what becomes of pages that are prefetched.
    pub(super) fn new(engine: Engine, mut world: World, together: u32) -> Paging {
        world.meters.watch = Some(Box::new(Watch::new(engine.config())));
        let table = PageTable::new(engine.config().pages, 1);
        Paging { engine, world, table, counts: PrefetchCounts::default(), together }
    }

    pub(super) fn watch(&mut self) -> &mut Watch {
        self.world.meters.watch.as_mut().expect("made with one")
    }

    fn watched(&self) -> &Watch {
        self.world.meters.watch.as_ref().expect("made with one")
    }

    /// A touch that the page table did not let through.
    pub(super) fn fault(&mut self, task: usize, page: PageId, writing: bool) -> FaultOutcome {
        self.watch().faults(task, page);
        let access = if writing { Access::Write } else { Access::Read };
        let majors = self.watched().majors.len();
        self.handle(Event::Fault { task: TaskId::from(task), page, access }, Class::Demand);
        if self.world.resumed.back() == Some(&task) {
            self.world.resumed.pop_back();
            if writing {
                self.table.set_dirty(0, page);
            }
            return FaultOutcome::Minor;
        }
        if self.world.halted.contains(&TaskId::from(task)) {
            return FaultOutcome::Halted;
        }
        let started = self.watched().majors.len() > majors;
        if let Some(ticket) = self.watched().ticket(page) {
            self.world.bus.hurry(Event::Loaded { ticket });
            if !started {
                return FaultOutcome::InFlight;
            }
        } else if !started {
            self.world.bus.hurry(Event::Written { page });
        }
        if started {
            self.read_together(task, page);
        }
        FaultOutcome::Waits
    }

    /// Reads the other pages of the page's aligned group, in the background. Pages keep their places on the device, so
    /// a group of page numbers is one of slots.
    pub(super) fn read_together(&mut self, task: usize, page: PageId) {
        let start = page.0 / self.together * self.together;
        let end = (start + self.together).min(self.engine.config().pages as u32);
        for other in (start..end).map(PageId).filter(|other| *other != page) {
            if self.is_absent(other) {
                self.will_need(task, other);
            }
        }
    }

    /// A prefetch hint for a page of this task; the task does not wait for it. False: the hint was dropped. A page that
    /// is not on the device is zeros, and no such page is made before it is needed.
    pub(super) fn will_need(&mut self, task: usize, page: PageId) -> bool {
        if !self.world.stored[page.index()] {
            return true;
        }
        let before = self.engine.counts().prefetches_dropped;
        self.watch().wished_for = task as u32;
        self.handle(Event::WillNeed { page }, Class::Background);
        self.engine.counts().prefetches_dropped == before
    }

    /// How many pages may be prefetched now.
    pub(super) fn allowance(&self) -> usize {
        self.watched().allowance()
    }

    /// Ends of transfers that have come.
    pub(super) fn deliver(&mut self) {
        self.world.deliver(&mut self.engine, &mut self.table);
    }

    pub(super) fn handle(&mut self, event: Event, class: Class) {
        self.world.class = class;
        self.world.handle(&mut self.engine, &mut self.table, event);
    }

    /// Loads in flight that no task waits for.
    pub(super) fn in_background(&self) -> u32 {
        self.watched().background
    }

    /// Whether a load of the page would be useful: the page is on the device, not in RAM, and cannot be read in its
    /// slot.
    pub(super) fn is_absent(&self, page: PageId) -> bool {
        let in_slot = self.world.meters.is_in_slot(page);
        self.world.stored[page.index()]
            && !in_slot
            && self.watched().ticket(page).is_none()
            && self.engine.frame_of(page).is_none()
    }

    /// Whether the page was prefetched, is in RAM, and no touch has been seen.
    pub(super) fn waits(&self, page: PageId) -> bool {
        self.watched().is_untouched(page) && self.is_present(page)
    }

    pub(super) fn is_present(&self, page: PageId) -> bool {
        self.engine.frame_of(page).is_some()
    }

    /// Another task runs from now on.
    pub(super) fn begin_slice(&mut self) {
        self.handle(Event::Slice, Class::Demand);
    }

    /// Notes the page's bit, without clearing it.
    fn look(&mut self, page: PageId) {
        if self.engine.frame_of(page).is_some() {
            View { table: &mut self.table, world: &mut self.world }.referenced(page, After::Keep);
        }
    }

    /// By task, with the touches that no fault has shown.
    pub(super) fn prefetches(&mut self) -> Vec<Prefetched> {
        for page in 0..self.engine.config().pages {
            self.look(PageId::from(page));
        }
        self.watched().prefetches.clone()
    }
}
