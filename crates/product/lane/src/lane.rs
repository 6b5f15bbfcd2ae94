//! A lane: one engine with its clock, its device and its counts.

use std::collections::VecDeque;

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::{Made, PolicyChoice, PolicyError};
use coldframe_core::prefetch::Streams;
use coldframe_core::swap::{self, Swap, SwapAreas};
use coldframe_core::{Access, Below, Caps, Config, ConfigError, Counts, Engine, Event, PageId, Ps, TaskId};
use coldframe_journal::{Head, Journal};
use coldframe_sheet::StagePrices;

use crate::faulty::Failures;
use crate::latency::Latency;
use crate::machine::{CollectTimes, DeviceTimes, FaultKind, MachineConfig, World, Zeros};
use crate::numbering::Numbering;
use crate::page_table::PageTable;
use crate::read_ahead::behind;
use crate::sources::{SourceCounts, Sources};

/// The configuration of a lane.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Policy with its parameters.
    pub policy: PolicyChoice,
    /// Page fault handler.
    pub handler: &'static Handler,
    /// Frames of RAM.
    pub frames: usize,
    /// Victims that are evicted together.
    pub evict_batch: usize,
    /// Abilities of the machine.
    pub caps: Caps,
    /// Processor time of the stages.
    pub prices: StagePrices,
    /// Times of the device for one page.
    pub device: DeviceTimes,
    /// Transfers that fail.
    pub failures: Option<Failures>,
    /// Swap areas on flash below the frames; `None`: home slots.
    pub area: Option<(SwapAreas, CollectTimes)>,
}

impl LaneConfig {
    /// A lane over home slots, on a processor with reference and dirty bits and two buffers.
    pub fn new(
        policy: PolicyChoice,
        handler: &'static Handler,
        frames: usize,
        prices: StagePrices,
        device: DeviceTimes,
    ) -> LaneConfig {
        let caps = Caps { reference_bit: true, dirty_bit: true, buffers: 2, direct_read: false, places: false };
        LaneConfig { policy, handler, frames, evict_batch: 1, caps, prices, device, failures: None, area: None }
    }

    /// The head of the journal of such a lane, for this many pages.
    pub fn journal_head(&self, pages: usize) -> Head {
        let Self { frames, evict_batch, caps, .. } = *self;
        let config = Config { frames, pages, tasks: 1, evict_batch, caps };
        let below = Below { slots: None, swap: self.area.as_ref().map(|(areas, _)| areas.clone()) };
        Head { below, ..Head::new(self.policy.to_string(), self.handler, config) }
    }
}

/// Why a lane cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaneError {
    /// The policy's parameters do not fit.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The bounds do not fit.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The result of a lane.
#[derive(Clone, Debug)]
pub struct LaneResult {
    /// The engine's counts.
    pub counts: Counts,
    /// Quiet references that faulted. They count as references of this lane.
    pub quiet_faults: u64,
    /// Time in fault handling, including waits for the device.
    pub paging: Ps,
    /// The same by stage. Where a stage runs during a load, its time counts as the load's.
    pub stages: [Ps; 6],
    /// Processor time hidden behind loads.
    pub hidden: Ps,
    /// Cache blocks read in place, from a buffer.
    pub xip_reads: u64,
    /// Their extra time, over reads from main memory.
    pub xip_surplus: Ps,
    /// Latency of true faults.
    pub true_latency: Latency,
    /// Latency of false faults.
    pub false_latency: Latency,
    /// Loads of pages that were never written, or were not written since they were released: only zeros would be
    /// loaded.
    pub zero_loads: u64,
    /// Whether dirty pages were written though the device's sheet gives no program time. `paging` is then a lower
    /// bound.
    pub writes_unpriced: bool,
    /// The counts of the swap area; `None`: there is none.
    pub swap: Option<SwapDone>,
    /// When the program was stopped, because the device failed and a page was lost; `None`: the program came to its
    /// end.
    pub halted: Option<Ps>,
}

/// The result of a lane's swap area.
#[derive(Clone, Debug)]
pub struct SwapDone {
    /// Counts of slots and blocks.
    pub counts: swap::SwapCounts,
    /// Erase count of each block.
    pub erases: Vec<u32>,
}

impl SwapDone {
    /// The result of this area so far.
    pub fn of(swap: &Swap) -> SwapDone {
        SwapDone { counts: *swap.counts(), erases: swap.erases().collect() }
    }
}

/// The cost of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageCost {
    /// Faults on the page, of all kinds.
    pub faults: u64,
    /// Time of these faults.
    pub time: Ps,
}

/// A configuration in use.
pub struct Lane {
    engine: Engine,
    world: World,
    number: u32,
    unpriced: bool,
    head: Head,
    streams: Option<Streams>,
    blocks: bool,
    paging: Ps,
    quiet_faults: u64,
    /// Since when the program is stopped, because one of its pages is lost.
    halted: Option<Ps>,
    true_latency: Latency,
    false_latency: Latency,
    /// Cost by page; empty unless asked for.
    page_costs: Vec<PageCost>,
}

impl Lane {
    /// Makes lane `number` of a page table, for this many pages and tasks.
    ///
    /// # Errors
    /// Parameters that do not fit the frames, or bounds of zero.
    pub fn new(config: &LaneConfig, number: u32, pages: usize, tasks: usize) -> Result<Lane, LaneError> {
        let policy = config.policy.build(config.frames, pages)?;
        Lane::with_policy(config, policy, number, pages, tasks)
    }

    /// As [`Lane::new`], with this policy in place of the configuration's.
    ///
    /// # Errors
    /// Bounds of zero.
    pub fn with_policy(
        config: &LaneConfig,
        policy: Made,
        number: u32,
        pages: usize,
        tasks: usize,
    ) -> Result<Lane, LaneError> {
        let mut head = config.journal_head(pages);
        head.config.tasks = tasks;
        let Caps { buffers, .. } = config.caps;
        let engine = Engine::builder(head.config, policy, config.handler).below(head.below.clone()).build()?;
        let mut machine = MachineConfig::device(config.prices, config.device, Zeros::Loaded);
        machine.failures = config.failures;
        let instant = machine.takes_no_time().then(VecDeque::new);
        let mut world = World::new(machine, number, pages, buffers);
        world.instant = instant;
        if config.caps.direct_read {
            world.read_in_slots();
        }
        if let Some((_, collect)) = &config.area {
            world.set_collect(*collect);
        }
        Ok(Lane {
            engine,
            world,
            number,
            unpriced: config.device.program.is_none(),
            head,
            streams: None,
            blocks: false,
            paging: Ps::ZERO,
            quiet_faults: 0,
            halted: None,
            true_latency: Latency::new(),
            false_latency: Latency::new(),
            page_costs: Vec::new(),
        })
    }

    /// Sets the extra time of a cache block read in place, over one from main memory, from now on.
    pub fn price_xip(&mut self, surplus: Ps) {
        self.world.meters.xip.price(surplus);
    }

    /// Notes the cost of each page, from now on.
    pub fn note_pages(&mut self) {
        self.page_costs = vec![PageCost::default(); self.world.stored.len()];
    }

    /// The cost of each page, by dense number; empty without an earlier call of [`note_pages`](Self::note_pages).
    pub fn page_costs(&self) -> &[PageCost] {
        &self.page_costs
    }

    /// Counts the sources of loads from now on; the device keeps the last `kept` pages written in memory. A fault then
    /// takes until the device has done all that the fault causes.
    pub fn note_sources(&mut self, buffered: u32) {
        self.world.meters.sources = Some(Box::new(Sources::new(self.world.stored.len(), buffered)));
    }

    /// The sources of loads; all zero without an earlier call of [`note_sources`](Self::note_sources).
    pub fn sources(&self) -> SourceCounts {
        self.world.meters.sources.as_ref().map(|sources| sources.counts).unwrap_or_default()
    }

    /// Reads ahead of sequential streams from now on, at most `window_max` pages at a time, as the live pager does.
    pub fn set_read_ahead(&mut self, window_max: u32) {
        self.streams = (window_max > 0).then(|| Streams::new(window_max));
    }

    /// From now on a page that is touched for the first time brings untouched pages beside it, as in the live pager.
    /// The pages must be numbered in the order of their addresses.
    pub fn set_blocks(&mut self) {
        self.blocks = true;
    }

    /// Keeps a journal from now on. Call it before the first reference.
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

    /// Handles a reference that did not hit: the whole fault, until the task has repeated its access. `idle` is the
    /// time so far outside of fault handling. `numbers` are the page numbers of the trace; `None` if pages are numbered
    /// in the order of their addresses.
    pub fn fault(
        &mut self,
        table: &mut PageTable,
        page: PageId,
        writing: bool,
        quiet: bool,
        idle: Ps,
        numbers: Option<&Numbering>,
    ) {
        if self.halted.is_some() {
            return;
        }
        self.quiet_faults += u64::from(quiet);
        let Lane { engine, world, .. } = self;
        world.clock.now = idle + world.meters.xip.time(table) + self.paging;
        world.deliver(engine, table);
        let began = world.clock.now;
        world.kind = FaultKind::Write;
        let access = if writing { Access::Write } else { Access::Read };
        let ahead = self.behind(page, numbers);
        let neighbours = self.neighbours(page, numbers);
        let Counts { evictions, dirty_evictions, .. } = *self.engine.counts();
        if let Some(sources) = &mut self.world.meters.sources {
            sources.begins(ahead.is_some());
        }
        self.world.resumed.clear();
        self.world.handle(&mut self.engine, table, Event::Fault { task: TaskId(0), page, access });
        let together = self.read_ahead(table, &ahead.unwrap_or_default());
        for page in neighbours {
            self.world.handle(&mut self.engine, table, Event::FirstTouchNeighbour { page });
        }
        let Lane { engine, world, .. } = self;
        while world.resumed.is_empty() && world.halted.is_empty() {
            assert!(world.wait(engine, table), "a task that stands still waits for the device");
        }
        if !world.halted.is_empty() {
            self.halted = Some(world.clock.now);
            return;
        }
        // Pages that are read ahead are one read with the page, as on Linux: the task continues when all of them are
        // there.
        if together || self.world.meters.sources.is_some() {
            while self.world.wait(&mut self.engine, table) {}
        }
        if let Some(sources) = &mut self.world.meters.sources {
            let after = self.engine.counts();
            let dirty = after.dirty_evictions - dirty_evictions;
            sources.ends(after.evictions - evictions - dirty, dirty);
        }
        if writing {
            table.set_dirty(self.number, page);
        }
        let latency = self.world.clock.now - began;
        self.paging += latency;
        if let Some(cost) = self.page_costs.get_mut(page.index()) {
            cost.faults += 1;
            cost.time += latency;
        }
        match self.world.kind {
            FaultKind::True => self.true_latency.record(latency),
            FaultKind::False => self.false_latency.record(latency),
            FaultKind::Write => {}
        }
    }

    /// The pages worth reading ahead with a true fault; `None` if the fault extends no stream. Only pages that were
    /// already absent before the fault and have contents on the device are returned.
    fn behind(&mut self, page: PageId, numbers: Option<&Numbering>) -> Option<Vec<PageId>> {
        let (engine, stored) = (&self.engine, &self.world.stored);
        match &mut self.streams {
            Some(streams) if engine.frame_of(page).is_none() => {
                let mut ahead = behind(streams, page, numbers)?;
                let has_contents = |page: PageId| stored.get(page.index()) == Some(&true);
                ahead.retain(|page| engine.frame_of(*page).is_none() && has_contents(*page));
                Some(ahead)
            }
            _ => None,
        }
    }

    /// If the page is touched for the first time, the untouched pages of its block, which may come in with it.
    fn neighbours(&self, page: PageId, numbers: Option<&Numbering>) -> Vec<PageId> {
        let block = if self.blocks { self.engine.block_around(page) } else { 0..0 };
        let address = |page: u32| numbers.map_or(i64::from(page), |numbers| numbers.place(page).1 as i64);
        let near = |other: &u32| address(*other) - address(page.0) == i64::from(*other) - i64::from(page.0);
        let others = (block.start..block.end.min(self.world.stored.len() as u32)).filter(near).map(PageId);
        others
            .filter(|other| *other != page && self.engine.accepts(&Event::FirstTouchNeighbour { page: *other }))
            .collect()
    }

    /// Gives prefetch hints for pages. Returns whether a load was started.
    fn read_ahead(&mut self, table: &mut PageTable, ahead: &[PageId]) -> bool {
        let before = self.engine.counts().prefetches;
        for page in ahead {
            self.world.handle(&mut self.engine, table, Event::WillNeed { page: *page });
        }
        self.engine.counts().prefetches > before
    }

    /// Takes what a program reports about a page, apart from touching it: the page is released, hinted for prefetch,
    /// pinned or unpinned. This takes no time.
    pub fn tell(&mut self, table: &mut PageTable, event: Event) {
        let Lane { engine, world, .. } = self;
        world.deliver(engine, table);
        if !engine.accepts(&event) {
            return;
        }
        world.handle(engine, table, event);
        if let Event::Released { page } = event {
            world.stored[page.index()] = false;
        }
    }

    /// The result so far. `table` is the lane's page table.
    pub fn result(&self, table: &PageTable) -> LaneResult {
        let world = &self.world;
        LaneResult {
            counts: *self.engine.counts(),
            quiet_faults: self.quiet_faults,
            zero_loads: world.zero_loads,
            paging: self.paging,
            stages: world.clock.stages,
            hidden: world.clock.hidden,
            xip_reads: world.meters.xip.reads(table),
            xip_surplus: world.meters.xip.time(table),
            true_latency: self.true_latency.clone(),
            false_latency: self.false_latency.clone(),
            swap: self.engine.swap().map(SwapDone::of),
            writes_unpriced: self.unpriced && self.engine.counts().dirty_evictions > 0,
            halted: self.halted,
        }
    }
}
