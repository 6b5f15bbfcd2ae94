//! The live pager's engine over a string of pages. The machine takes no time; it counts the events that a run would
//! pay for.
//!
//! The order of events is that of `sim`'s lane with prices of zero: a faulting thread waits for everything that its
//! fault causes.

use std::collections::VecDeque;
use std::iter::Sum;
use std::ops::AddAssign;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Streams;
use coldframe_core::{Access, After, Caps, Command, Config, Engine, Event, Machine, PageId, TaskId};
use coldframe_sim::page_table::PageTable;
use serde::{Deserialize, Serialize};

use super::Pager;
use crate::error::ReportError;

/// Written pages that a buffer of the log still has: one of its 8 buffers of 32 pages (`live/src/log/area.rs`,
/// `log.rs`) is being filled.
const BUFFERED: f64 = 7.0 * 32.0;

/// The events that a run pays for.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Faults on pages that had to be brought into RAM.
    pub true_faults: f64,
    /// Of those, on pages without bytes: filled with zeros.
    pub zero_fills: f64,
    /// Of those, single pages from the device.
    pub device_alone: f64,
    /// Pages of sequential streams: that of the fault and those read ahead with it.
    pub device_ahead: f64,
    /// Pages that were needed again before they were written to the device.
    pub memory_loads: f64,
    /// Touches of pages in RAM that were not mapped.
    pub false_faults: f64,
    /// Clean pages evicted while no device time hides it.
    pub clean_exposed: f64,
    /// Clean pages evicted while another page comes from the device.
    pub clean_hidden: f64,
    /// Dirty pages evicted while no device time hides it.
    pub dirty_exposed: f64,
    /// Dirty pages evicted while another page comes from the device.
    pub dirty_hidden: f64,
}

impl Counts {
    /// Pages from the device.
    pub fn device_reads(&self) -> f64 {
        self.device_alone + self.device_ahead
    }

    /// Dirty pages evicted.
    pub fn dirty(&self) -> f64 {
        self.dirty_exposed + self.dirty_hidden
    }

    /// Pages evicted.
    pub fn evictions(&self) -> f64 {
        self.clean_exposed + self.clean_hidden + self.dirty()
    }

    /// Combines each count with that of `other`.
    pub fn with(&self, other: &Counts, of: impl Fn(f64, f64) -> f64) -> Counts {
        Counts {
            true_faults: of(self.true_faults, other.true_faults),
            zero_fills: of(self.zero_fills, other.zero_fills),
            device_alone: of(self.device_alone, other.device_alone),
            device_ahead: of(self.device_ahead, other.device_ahead),
            memory_loads: of(self.memory_loads, other.memory_loads),
            false_faults: of(self.false_faults, other.false_faults),
            clean_exposed: of(self.clean_exposed, other.clean_exposed),
            clean_hidden: of(self.clean_hidden, other.clean_hidden),
            dirty_exposed: of(self.dirty_exposed, other.dirty_exposed),
            dirty_hidden: of(self.dirty_hidden, other.dirty_hidden),
        }
    }

    /// Multiplies all counts.
    pub fn times(&self, factor: f64) -> Counts {
        self.with(self, |count, _| count * factor)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = self.with(&other, |a, b| a + b);
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(all: I) -> Counts {
        all.fold(Counts::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// One size of RAM.
pub struct Lane {
    engine: Engine,
    streams: Streams,
    world: World,
}

/// The state that the engine's commands change, without the page table.
struct World {
    number: u32,
    /// For each page, how many pages had been written at its last write; 0: never.
    written: Vec<u32>,
    writes: u32,
    /// Number of written pages that the log's buffers still have.
    buffered: u32,
    ends: VecDeque<Event>,
    resumed: bool,
    /// The fault continues a stream.
    stream: bool,
    /// A page came from the device in this fault.
    device: bool,
    counts: Counts,
}

struct View<'a> {
    table: &'a mut PageTable,
    world: &'a mut World,
}

impl Lane {
    /// Lane `number` of a page table over `pages` pages, a share `sample` of all pages. It has the engine that the
    /// pager would have with `frames` frames for them.
    ///
    /// # Errors
    /// A policy that does not fit.
    pub fn new(pager: &Pager, frames: usize, number: u32, pages: usize, sample: f64) -> Result<Lane, ReportError> {
        let policy = PolicyChoice::parse(&pager.policy)?.build(frames, pages)?;
        let buffers = pager.buffers.min(frames / 4).max(1) as u32;
        // As in `live/src/start.rs`: reference bits are emulated, and the pager places each page.
        let caps = Caps { reference_bit: false, dirty_bit: true, buffers, direct_read: false, places: true };
        let evict_batch = pager.evict_batch.min(frames / 8).max(1);
        let config = Config { frames, pages, tasks: 1, evict_batch, caps };
        let handler = handler::find("parallel").expect("the live pager's handler is there");
        let engine = Engine::builder(config, policy, handler).build();
        let engine = engine.map_err(|e| ReportError::setting("ram", e.to_string()))?;
        let world = World {
            number,
            written: vec![0; pages],
            writes: 0,
            buffered: (BUFFERED * sample).round() as u32,
            ends: VecDeque::new(),
            resumed: false,
            stream: false,
            device: false,
            counts: Counts::default(),
        };
        Ok(Lane { engine, streams: Streams::new(pager.read_ahead), world })
    }

    /// A touch that the page table did not allow. `near` converts between pages and true page numbers.
    pub fn fault(&mut self, table: &mut PageTable, page: PageId, writing: bool, near: &impl Near) {
        let before = *self.engine.counts();
        let absent = self.engine.frame_of(page).is_none();
        let (ahead, goes_on) = if absent { self.ahead(page, near) } else { (Vec::new(), false) };
        (self.world.resumed, self.world.stream, self.world.device) = (false, goes_on, false);
        let access = if writing { Access::Write } else { Access::Read };
        self.handle(table, Event::Fault { task: TaskId(0), page, access });
        for wish in ahead {
            self.handle(table, Event::WillNeed { page: wish });
        }
        self.settle(table);
        debug_assert!(self.world.resumed, "a machine without failures brings every page");
        if writing {
            table.set_dirty(self.world.number, page);
        }
        let after = self.engine.counts();
        let counts = &mut self.world.counts;
        let dirty = after.dirty_evictions - before.dirty_evictions;
        let clean = (after.evictions - before.evictions - dirty) as f64;
        let (clean_out, dirty_out) = match self.world.device {
            true => (&mut counts.clean_hidden, &mut counts.dirty_hidden),
            false => (&mut counts.clean_exposed, &mut counts.dirty_exposed),
        };
        *clean_out += clean;
        *dirty_out += dirty as f64;
    }

    /// The pages that the live pager would read ahead: absent pages that the device has (`live/src/pager.rs`,
    /// `behind`).
    fn ahead(&mut self, page: PageId, near: &impl Near) -> (Vec<PageId>, bool) {
        let place = near.place(page);
        // A stream only needs to recognise neighbours, for which the low bits are enough.
        let low = place as u32;
        let ahead = self.streams.fault(PageId(low));
        let goes_on = !ahead.is_empty();
        let worth = |page: &PageId| self.world.written[page.index()] > 0 && self.engine.frame_of(*page).is_none();
        let pages = ahead.filter_map(|next| near.find(place + u64::from(next.wrapping_sub(low))));
        (pages.filter(worth).collect(), goes_on)
    }

    /// The page's bytes are no longer needed.
    pub fn release(&mut self, table: &mut PageTable, page: PageId) {
        let event = Event::Released { page };
        if self.engine.accepts(&event) {
            let before = self.engine.counts().evictions;
            self.handle(table, event);
            debug_assert!(self.engine.counts().evictions - before <= 1);
            self.world.written[page.index()] = 0;
        }
    }

    fn handle(&mut self, table: &mut PageTable, event: Event) {
        self.engine.handle(event, &mut View { table, world: &mut self.world });
    }

    fn settle(&mut self, table: &mut PageTable) {
        while let Some(end) = self.world.ends.pop_front() {
            self.handle(table, end);
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let engine = self.engine.counts();
        let (true_faults, false_faults) = (engine.true_faults as f64, engine.false_faults as f64);
        Counts { true_faults, false_faults, ..self.world.counts }
    }
}

/// Finds neighbouring pages.
pub trait Near {
    /// The page's true number.
    fn place(&self, page: PageId) -> u64;
    /// The page of a true number.
    fn find(&self, place: u64) -> Option<PageId>;
}

impl World {
    fn load(&mut self, page: PageId) {
        let written = self.written[page.index()];
        let counts = &mut self.counts;
        match written {
            0 => counts.zero_fills += 1.0,
            at if self.writes - at < self.buffered => counts.memory_loads += 1.0,
            _ => {
                *(if self.stream { &mut counts.device_ahead } else { &mut counts.device_alone }) += 1.0;
                self.device = true;
            }
        }
    }
}

impl Machine for View<'_> {
    fn issue(&mut self, command: Command) {
        let (table, world) = (&mut *self.table, &mut *self.world);
        match command {
            Command::Load { ticket, page, .. } => {
                world.load(page);
                world.ends.push_back(Event::Loaded { ticket });
            }
            Command::Write { page, .. } => {
                world.writes += 1;
                world.written[page.index()] = world.writes;
                world.ends.push_back(Event::Written { page });
            }
            Command::Protect { page } => table.protect(world.number, page),
            Command::Unmap { page } | Command::Evict { page, .. } => table.unmap(world.number, page),
            Command::Map { page, writable, referenced, .. } => table.map(world.number, page, writable, referenced),
            Command::Resume { .. } => world.resumed = true,
            // Nothing to keep; or commands that only failures, slots, swap areas and tiers cause.
            Command::Stage { .. }
            | Command::Move { .. }
            | Command::CopySlot { .. }
            | Command::EraseBlock { .. }
            | Command::Pool(_)
            | Command::Kill { .. }
            | Command::Halt { .. } => {}
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        self.table.referenced(self.world.number, page, after)
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table.dirty(self.world.number, page)
    }
}
