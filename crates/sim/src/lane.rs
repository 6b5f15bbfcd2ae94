//! One lane: an engine, its clock and device, and what it has seen.

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::{Policy, PolicyChoice, PolicyError};
use coldframe_core::prefetch::Streams;
use coldframe_core::swap::{self, Refused, Swap};
use coldframe_core::{
    Access, After, BlockId, Caps, Command, Config, ConfigError, Counts, Engine, Event, Machine, PageId, Place, Ps,
    SlotId, Stage, TaskId,
};
use coldframe_device::StagePrices;
use coldframe_trace::journal::{Entry, Head, Journal};

use crate::clock::{Device, DeviceTimes};
use crate::latency::Latency;
use crate::numbering::Numbering;
use crate::page_table::PageTable;
use crate::read_ahead::behind;
use crate::xip::XipMeter;

/// A configuration of the engine.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Policy with its parameters.
    pub policy: PolicyChoice,
    /// Handler.
    pub handler: &'static Handler,
    /// Frames of RAM.
    pub frames: usize,
    /// Victims that leave together.
    pub evict_batch: usize,
    /// What the machine can do.
    pub caps: Caps,
    /// What stages cost the processor.
    pub prices: StagePrices,
    /// What the device takes for one page.
    pub device: DeviceTimes,
}

impl LaneConfig {
    /// The head of a journal of such a lane over so many pages.
    pub fn journal_head(&self, pages: usize) -> Head {
        let Self { frames, evict_batch, caps, .. } = *self;
        Head {
            policy: self.policy.to_string(),
            handler: self.handler.name.into(),
            config: Config { frames, pages, tasks: 1, evict_batch, caps },
            slots: None,
        }
    }
}

/// A lane that cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaneError {
    /// The policy's parameters do not fit.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The bounds do not fit.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What a lane has found out.
#[derive(Clone, Debug)]
pub struct LaneResult {
    /// The engine's counts.
    pub counts: Counts,
    /// Quiet references that faulted, and so are references of this lane.
    pub quiet_faults: u64,
    /// Time in fault handling, waits for the device included.
    pub paging: Ps,
    /// The same by stage. Where a stage runs beside a load, the time is the load's.
    pub stages: [Ps; 6],
    /// Processor time that was hidden behind loads.
    pub hidden: Ps,
    /// Cache blocks read in place, from a buffer.
    pub xip_reads: u64,
    /// What they took beyond reads from main memory.
    pub xip_surplus: Ps,
    /// Latency of true faults.
    pub true_latency: Latency,
    /// Latency of false faults.
    pub false_latency: Latency,
    /// Loads of pages that were never written, or not since they were released: there is nothing to load but zeros.
    pub zero_loads: u64,
    /// Dirty pages were written and the device's sheet gives no program time: `paging` is a lower bound.
    pub writes_unpriced: bool,
    /// What the swap area did, if there is one.
    pub swap: Option<SwapDone>,
}

/// What a lane's swap area did.
#[derive(Clone, Debug)]
pub struct SwapDone {
    /// In slots and blocks.
    pub counts: swap::Counts,
    /// Erase count of each block.
    pub erases: Vec<u32>,
}

/// What a collection takes the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectTimes {
    /// One page read and programmed within the device.
    pub copy: Ps,
    /// One block erased.
    pub erase: Ps,
}

/// What one page has cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageCost {
    /// Faults on it, of any kind.
    pub faults: u64,
    /// The time that they took.
    pub time: Ps,
}

/// A configuration at work.
pub struct Lane {
    engine: Engine,
    state: State,
}

struct State {
    number: u32,
    prices: StagePrices,
    device: Device,
    unpriced: bool,
    collect: CollectTimes,
    streams: Option<Streams>,
    now: Ps,
    paging: Ps,
    stages: [Ps; 6],
    hidden: Ps,
    /// When the loads in flight started and the last of them will end.
    loading: Option<(Ps, Ps)>,
    resumed: bool,
    kind: FaultKind,
    xip: XipMeter,
    quiet_faults: u64,
    /// Pages whose bytes the device has.
    stored: Vec<bool>,
    zero_loads: u64,
    true_latency: Latency,
    false_latency: Latency,
    /// By page; empty unless asked for.
    page_costs: Vec<PageCost>,
    journal: Option<Journal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    True,
    False,
    Write,
}

impl Lane {
    /// Makes lane `number` of a table, for so many pages and tasks.
    ///
    /// # Errors
    /// Parameters that do not fit the frames, or bounds of zero.
    pub fn new(config: &LaneConfig, number: u32, pages: usize, tasks: usize) -> Result<Lane, LaneError> {
        let policy = config.policy.build(config.frames, pages)?;
        Lane::with_policy(config, policy, number, pages, tasks)
    }

    /// As [`Lane::new`], with this policy instead of the configuration's.
    ///
    /// # Errors
    /// Bounds of zero.
    pub fn with_policy(
        config: &LaneConfig,
        policy: Box<dyn Policy>,
        number: u32,
        pages: usize,
        tasks: usize,
    ) -> Result<Lane, LaneError> {
        let LaneConfig { frames, evict_batch, caps, .. } = *config;
        let bounds = Config { frames, pages, tasks, evict_batch, caps };
        let engine = Engine::new(bounds, policy, config.handler)?;
        let state = State {
            number,
            prices: config.prices,
            device: Device::new(config.device),
            unpriced: config.device.program.is_none(),
            collect: CollectTimes::default(),
            streams: None,
            now: Ps::ZERO,
            paging: Ps::ZERO,
            stages: [Ps::ZERO; 6],
            hidden: Ps::ZERO,
            loading: None,
            resumed: false,
            kind: FaultKind::True,
            xip: XipMeter::new(config.caps.buffers),
            quiet_faults: 0,
            stored: vec![false; pages],
            zero_loads: 0,
            true_latency: Latency::new(),
            false_latency: Latency::new(),
            page_costs: Vec::new(),
            journal: None,
        };
        Ok(Lane { engine, state })
    }

    /// What a cache block read in place takes beyond one from main memory, from now on.
    pub fn price_xip(&mut self, surplus: Ps) {
        self.state.xip.price(surplus);
    }

    /// Notes what each page costs, from now on.
    pub fn note_pages(&mut self) {
        self.state.page_costs = vec![PageCost::default(); self.state.stored.len()];
    }

    /// What each page has cost, by dense number; empty unless [`note_pages`](Self::note_pages) came before.
    pub fn page_costs(&self) -> &[PageCost] {
        &self.state.page_costs
    }

    /// Gives its engine a swap area, before the first reference.
    ///
    /// # Panics
    /// If the area cannot name every page.
    pub fn set_swap(&mut self, swap: Swap, collect: CollectTimes) {
        self.engine.set_swap(swap);
        self.state.collect = collect;
    }

    /// Reads sequential streams ahead from now on, at most `window_max` pages at a time, as the live pager does.
    pub fn set_read_ahead(&mut self, window_max: u32) {
        self.state.streams = (window_max > 0).then(|| Streams::new(window_max));
    }

    /// Keeps a journal from now on.
    pub fn keep_journal(&mut self, journal: Journal) {
        self.state.journal = Some(journal);
    }

    /// The journal kept so far; its bytes are taken out.
    pub fn take_journal(&mut self) -> Option<Journal> {
        self.state.journal.take()
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A reference that did not hit: the whole fault, until the task has repeated its access. `idle` is the time that has passed
    /// outside of fault handling; `numbers` are those of the trace, `None` if pages are numbered in the order of their addresses.
    pub fn fault(
        &mut self,
        table: &mut PageTable,
        page: PageId,
        writing: bool,
        quiet: bool,
        idle: Ps,
        numbers: Option<&Numbering>,
    ) {
        let state = &mut self.state;
        state.quiet_faults += u64::from(quiet);
        state.now = idle + state.xip.time(table) + state.paging;
        while let Some(event) = state.device.ended(state.now) {
            handle(&mut self.engine, table, state, event);
        }
        let began = state.now;
        state.resumed = false;
        state.kind = FaultKind::Write;
        let access = if writing { Access::Write } else { Access::Read };
        let ahead = self.behind(page, numbers);
        handle(&mut self.engine, table, &mut self.state, Event::Fault { task: TaskId(0), page, access });
        let together = self.read_ahead(table, &ahead);
        let state = &mut self.state;
        while !state.resumed {
            let (end, event) = state.device.next_end().expect("a task that stands still waits for the device");
            state.wait_until(end);
            handle(&mut self.engine, table, state, event);
        }
        // What is read ahead is one read with the page, as on Linux: the task goes on when all of it is there.
        if together {
            self.settle(table);
        }
        let state = &mut self.state;
        if writing {
            table.set_dirty(state.number, page);
        }
        let latency = state.now - began;
        state.paging += latency;
        if let Some(cost) = state.page_costs.get_mut(page.index()) {
            cost.faults += 1;
            cost.time += latency;
        }
        match state.kind {
            FaultKind::True => state.true_latency.record(latency),
            FaultKind::False => state.false_latency.record(latency),
            FaultKind::Write => {}
        }
    }

    /// The pages worth reading ahead with a true fault: they are absent before it (a victim of the fault itself is on its way out), and the
    /// device has them (what was never written out is zeros).
    fn behind(&mut self, page: PageId, numbers: Option<&Numbering>) -> Vec<PageId> {
        let (engine, stored) = (&self.engine, &self.state.stored);
        match &mut self.state.streams {
            Some(streams) if engine.frame_of(page).is_none() => {
                let mut ahead = behind(streams, page, numbers);
                ahead.retain(|p| stored.get(p.index()) == Some(&true) && engine.frame_of(*p).is_none());
                ahead
            }
            _ => Vec::new(),
        }
    }

    /// Wishes for pages; whether any load was started.
    fn read_ahead(&mut self, table: &mut PageTable, ahead: &[PageId]) -> bool {
        let before = self.engine.counts().prefetches;
        for page in ahead {
            handle(&mut self.engine, table, &mut self.state, Event::WillNeed { page: *page });
        }
        self.engine.counts().prefetches > before
    }

    /// What a program says of its pages beside touching them: that one is released, wished for, pinned or unpinned. It takes no time.
    pub fn tell(&mut self, table: &mut PageTable, event: Event) {
        let state = &mut self.state;
        while let Some(end) = state.device.ended(state.now) {
            handle(&mut self.engine, table, state, end);
        }
        if !self.engine.accepts(&event) {
            return;
        }
        handle(&mut self.engine, table, state, event);
        if let Event::Released { page } = event {
            state.stored[page.index()] = false;
        }
    }

    /// Waits until the device has nothing more to do, as a program does that has wished for pages.
    pub fn settle(&mut self, table: &mut PageTable) {
        while let Some((end, event)) = self.state.device.next_end() {
            self.state.wait_until(end);
            handle(&mut self.engine, table, &mut self.state, event);
        }
    }

    /// What it has found out so far; `table` is the one it works on.
    pub fn result(&self, table: &PageTable) -> LaneResult {
        let state = &self.state;
        LaneResult {
            counts: *self.engine.counts(),
            quiet_faults: state.quiet_faults,
            zero_loads: state.zero_loads,
            paging: state.paging,
            stages: state.stages,
            hidden: state.hidden,
            xip_reads: state.xip.reads(table),
            xip_surplus: state.xip.time(table),
            true_latency: state.true_latency.clone(),
            false_latency: state.false_latency.clone(),
            swap: self.engine.swap().map(|s| SwapDone { counts: *s.counts(), erases: s.erases().collect() }),
            writes_unpriced: state.unpriced && self.engine.counts().dirty_evictions > 0,
        }
    }
}

fn handle(engine: &mut Engine, table: &mut PageTable, state: &mut State, event: Event) {
    if let Some(journal) = &mut state.journal {
        journal.write(&Entry::Event { now: state.now.0, event });
    }
    if let Event::Loaded { .. } = event {
        state.loading = state.loading.filter(|(_, end)| *end > state.now);
    }
    engine.handle(event, &mut SimMachine { table, state });
}

impl State {
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
}

struct SimMachine<'a> {
    table: &'a mut PageTable,
    state: &'a mut State,
}

impl Machine for SimMachine<'_> {
    fn issue(&mut self, command: Command) {
        let (table, state) = (&mut *self.table, &mut *self.state);
        if let Some(journal) = &mut state.journal {
            journal.write(&Entry::Command(command));
        }
        match command {
            Command::Stage { stage, work } => {
                if work.false_fault {
                    state.kind = FaultKind::False;
                }
                state.spend(stage, state.prices.of(stage, &work));
            }
            Command::Load { ticket, page, .. } => {
                state.kind = FaultKind::True;
                state.zero_loads += u64::from(!state.stored[page.index()]);
                let end = state.device.load(state.now, Event::Loaded { ticket });
                let start = state.loading.map_or(state.now, |(start, _)| start);
                state.loading = Some((start, end));
            }
            // Priced with the stage.
            Command::Move { .. } => {}
            Command::Protect { page } => table.protect(state.number, page),
            Command::Write { page, .. } => {
                // The bytes cross the bus by the processor's hand, then the device programs them by itself.
                state.spend(Stage::GetFreeframe, state.prices.trans_host_mem);
                state.device.program(state.now, Event::Written { page });
                state.stored[page.index()] = true;
            }
            Command::Unmap { page } | Command::Evict { page, .. } => {
                state.xip.leaves(page, table);
                table.unmap(state.number, page);
            }
            Command::Map { page, place, writable, referenced } => {
                match place {
                    Place::Buffer(_) => state.xip.enters(page, table),
                    Place::Frame(_) | Place::Slot(_) => state.xip.leaves(page, table),
                }
                table.map(state.number, page, writable, referenced);
            }
            Command::Resume { .. } => state.resumed = true,
            Command::Kill { task } => unreachable!("task {} is ended, but a lane has one task", task.0),
            Command::Halt { page, .. } => {
                unreachable!("the simulated device never fails, but page {} was lost", page.0)
            }
        }
    }

    fn copy_slot(&mut self, _: PageId, _: SlotId, _: SlotId) -> Result<(), Refused> {
        self.state.device.occupy(self.state.now, self.state.collect.copy);
        Ok(())
    }

    fn erase_block(&mut self, _: BlockId) -> Result<(), Refused> {
        self.state.device.occupy(self.state.now, self.state.collect.erase);
        Ok(())
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let value = self.table.referenced(self.state.number, page, after);
        if let Some(journal) = &mut self.state.journal {
            journal.write(&Entry::Referenced { page, after, value });
        }
        value
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.table.dirty(self.state.number, page);
        if let Some(journal) = &mut self.state.journal {
            journal.write(&Entry::Dirty { page, value });
        }
        value
    }
}
