//! Tasks that take turns in the foreground, as applications on a phone do: one engine, a swap area whose slots are rewritten in place, and
//! a clock.
//!
//! Make a [`Foreground`], feed it the blocks of a multi-task trace, and take the [`ForegroundResult`]. A task that a row names after another
//! one is in the foreground from then on. A row's `time` says when it happens if no fault delays it. The trace knows nothing of tasks that are
//! ended: such a task does again what it did at its first beginning ([`launch`]) before it goes on with its rows.
//!
//! ```text
//!  a page of a file   ──►  the card (device beside the processor), through the block layer
//!  an anonymous page  ──►  the swap area: a copy by the processor, through the block layer or not; or the card as well
//!                          its first touch: zeros
//! ```

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Access, Backed, Caps, Config, Counts, Engine, Event, PageId, Ps, SlotsConfig, TaskId};
use coldframe_trace::journal::{Entry, Head, Journal};
use coldframe_trace::{Block, Kind, Reference};

use crate::clock::DeviceTimes;
use crate::front_end::Spaces;
use crate::lane::LaneError;
use crate::numbering::Numbering;

mod launch;
mod memory;

use launch::Launches;
use memory::Memory;

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
    /// Swapped pages are read where they lie.
    pub direct_read: bool,
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
    /// The block layer, for each page from or to a file.
    pub block_layer: Ps,
    /// The card.
    pub card: DeviceTimes,
    /// How long after a switch references belong to the switch.
    pub answer: Ps,
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
    /// When the last reference was answered.
    pub end: Ps,
}

/// A run.
pub struct Foreground {
    engine: Engine,
    machine: Memory,
    numbering: Numbering,
    spaces: Spaces,
    owned: usize,
    current: Option<u32>,
    switched: Ps,
    switches: Vec<Switch>,
    ended: Vec<bool>,
    launches: Launches,
    answer: Ps,
    handler: &'static Handler,
    last: Ps,
}

impl Foreground {
    /// For so many pages and address spaces.
    ///
    /// # Errors
    /// Parameters that do not fit the frames, or bounds of zero.
    pub fn new(config: &ForegroundConfig, pages: usize, spaces: Spaces, tasks: usize) -> Result<Foreground, LaneError> {
        let caps = Caps { reference_bit: true, dirty_bit: true, buffers: 1, direct_read: config.direct_read };
        let bounds = Config { frames: config.frames, pages, tasks, evict_batch: 1, caps };
        let policy = config.policy.build(config.frames, pages)?;
        let mut engine = Engine::new(bounds, policy, config.handler)?;
        engine.set_slots(config.slots);
        Ok(Foreground {
            engine,
            machine: Memory::new(config, pages),
            numbering: Numbering::new(PAGE_SHIFT),
            spaces,
            owned: 0,
            current: None,
            switched: Ps::ZERO,
            switches: Vec::new(),
            ended: vec![true; tasks],
            launches: Launches::new(pages, tasks),
            answer: config.prices.answer,
            handler: config.handler,
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
        let space = self.spaces.of(row.task);
        self.last = Ps::from_ns(row.time);
        if self.current != Some(space) {
            self.switch(space);
        }
        let page = PageId(self.numbering.number(space, row.address >> PAGE_SHIFT));
        if self.numbering.count() > self.owned {
            self.own(TaskId(space), page, backed(&row));
        }
        let writing = row.kind == Kind::Write;
        if self.answering() {
            self.launches.note(space, page, writing);
        }
        self.access(TaskId(space), page, writing, u64::from(row.count));
    }

    /// The task in the foreground has not answered yet.
    fn answering(&self) -> bool {
        self.last < self.switched + self.answer
    }

    fn access(&mut self, task: TaskId, page: PageId, writing: bool, count: u64) {
        if !self.machine.lets(page, writing) {
            let took = self.fault(task, page, writing);
            if self.answering() {
                self.switches.last_mut().expect("a task is in the foreground").delay += took;
            }
        }
        self.machine.touch(page, writing, count);
    }

    fn switch(&mut self, space: u32) {
        self.launches.close(self.current);
        self.current = Some(space);
        self.switched = self.last;
        let task = TaskId(space);
        let cold = std::mem::take(&mut self.ended[task.index()]);
        self.switches.push(Switch { task: space, cold, delay: Ps::ZERO });
        self.handle(Event::Foreground { task });
        if cold {
            self.launch(task);
        }
    }

    /// A task that was ended is begun anew: it does what it did when it was begun first. Nothing the first time.
    fn launch(&mut self, task: TaskId) {
        let touches = self.launches.take(task);
        touches.iter().for_each(|(page, writing)| self.access(task, *page, *writing, 1));
        self.launches.put_back(task, touches);
    }

    fn own(&mut self, task: TaskId, page: PageId, backed: Backed) {
        self.owned += 1;
        self.machine.file[page.index()] = backed == Backed::File;
        self.handle(Event::Owned { task, page, backed });
    }

    fn handle(&mut self, event: Event) {
        self.machine.note(|now| Entry::Event { now, event });
        self.engine.handle(event, &mut self.machine);
        for task in self.machine.killed.drain(..) {
            self.ended[task.index()] = true;
        }
    }

    /// The whole fault, until the task can repeat its access. Returns what it took.
    fn fault(&mut self, task: TaskId, page: PageId, writing: bool) -> Ps {
        self.machine.now = self.machine.now.max(self.last + self.machine.paging);
        while let Some(event) = self.machine.card.ended(self.machine.now) {
            self.handle(event);
        }
        let began = self.machine.now;
        self.machine.resumed = false;
        let access = if writing { Access::Write } else { Access::Read };
        self.handle(Event::Fault { task, page, access });
        while let Some(event) = self.machine.next_event() {
            self.handle(event);
        }
        let took = self.machine.now - began;
        self.machine.paging += took;
        took
    }

    /// Keeps a journal from now on; to be called before the first row.
    pub fn keep_journal(&mut self, policy: &PolicyChoice, slots: SlotsConfig) {
        let (policy, handler) = (policy.to_string(), self.handler.name.to_string());
        let head = Head { policy, handler, config: *self.engine.config(), slots: Some(slots) };
        self.machine.journal = Some(Journal::new(&head));
    }

    /// The journal kept so far; its bytes are taken out.
    pub fn take_journal(&mut self) -> Option<Journal> {
        self.machine.journal.take()
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What it has found out so far.
    pub fn result(&self) -> ForegroundResult {
        let machine = &self.machine;
        ForegroundResult {
            counts: *self.engine.counts(),
            switches: self.switches.clone(),
            card_reads: machine.card_reads,
            card_writes: machine.card_writes,
            reads_in_slots: machine.reads_in_slots,
            slot_log: machine.slot_log.clone(),
            paging: machine.paging,
            end: self.last + machine.paging,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::fault::handler::sequential;
    use coldframe_trace::journal::replay;

    const US: Ps = Ps(1_000_000);

    /// The run, and its journal, which a fresh engine must repeat.
    fn run(frames: usize, slots: usize, direct_read: bool, rows: &[(u32, u64, Kind)]) -> ForegroundResult {
        let prices = ForegroundPrices {
            fault: US,
            swap_in: US * 10,
            swap_out: US * 100,
            swap_on_card: false,
            block_layer: US * 1_000,
            card: DeviceTimes { load: US * 10_000, program: Some(US * 100_000) },
            answer: US * 500,
        };
        let policy = PolicyChoice::parse("fifo").unwrap();
        let slots = SlotsConfig { slots, files_min: 0 };
        let config = ForegroundConfig { policy, handler: &sequential::HANDLER, frames, slots, direct_read, prices };
        let mut run = Foreground::new(&config, 16, Spaces::default(), 3).unwrap();
        run.keep_journal(&config.policy, slots);
        let row =
            |(task, page, kind): &(u32, u64, Kind)| Reference { task: *task, ..Reference::new(page << 12, 4, *kind) };
        let block: Block = rows.iter().map(row).collect();
        run.feed(&block, &|row| if row.address >> 12 < 8 { Backed::Anonymous } else { Backed::File });
        run.engine().check();
        let replayed = replay(&run.take_journal().unwrap().drain()).unwrap();
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
