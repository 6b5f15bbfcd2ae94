//! Tasks that take turns in the foreground, as applications on a phone do: one engine, a swap area whose slots are rewritten in place, and
//! a clock.
//!
//! Make a [`Foreground`], feed it the blocks of a multi-task trace, and take the [`ForegroundResult`]. A task that a row names after another
//! one is in the foreground from then on. A row's `time` says when it happens if no fault delays it.
//!
//! ```text
//!  a page of a file   ──►  the card (device beside the processor), through the block layer
//!  an anonymous page  ──►  the swap area: a copy by the processor, through the block layer or not; or the card as well
//!                          its first touch: zeros
//! ```

use std::collections::VecDeque;

use coldframe_core::fault::handler::sequential;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{
    Access, After, Backed, Caps, Command, Config, Counts, Engine, Event, Machine, PageId, Place, Ps, SlotsConfig,
    Stage, TaskId,
};
use coldframe_trace::{Block, Kind, Reference};

use crate::clock::{Device, DeviceTimes};
use crate::front_end::Spaces;
use crate::lane::LaneError;
use crate::numbering::Numbering;

/// log2 of the page size: a slot is a page of 4 KiB.
const PAGE_SHIFT: u32 = 12;

/// A configuration.
#[derive(Clone, Debug)]
pub struct ForegroundConfig {
    /// Policy with its parameters.
    pub policy: PolicyChoice,
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
    /// Writes to each slot of the area.
    pub slot_writes: Vec<u32>,
    /// Time in fault handling.
    pub paging: Ps,
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
    answer: Ps,
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
        let mut engine = Engine::new(bounds, policy, &sequential::HANDLER)?;
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
            answer: config.prices.answer,
        })
    }

    /// Takes the rows of a block; `backed` says what an address belongs to.
    ///
    /// # Panics
    /// If the trace has more pages or tasks than were announced.
    pub fn feed(&mut self, block: &Block, backed: &dyn Fn(u64) -> Backed) {
        block.iter().for_each(|row| self.reference(row, backed));
    }

    fn reference(&mut self, row: Reference, backed: &dyn Fn(u64) -> Backed) {
        let space = self.spaces.of(row.task);
        let time = Ps::from_ns(row.time);
        if self.current != Some(space) {
            self.switch(space, time);
        }
        let page = PageId(self.numbering.number(space, row.address >> PAGE_SHIFT));
        if self.numbering.count() > self.owned {
            self.own(TaskId(space), page, backed(row.address));
        }
        let writing = row.kind == Kind::Write;
        if !self.machine.lets(page, writing) {
            let took = self.fault(TaskId(space), page, writing, time);
            if time < self.switched + self.answer {
                self.switches.last_mut().expect("a task is in the foreground").delay += took;
            }
        }
        self.machine.touch(page, writing, u64::from(row.count));
    }

    fn switch(&mut self, space: u32, time: Ps) {
        self.current = Some(space);
        self.switched = time;
        let cold = std::mem::take(&mut self.ended[space as usize]);
        self.switches.push(Switch { task: space, cold, delay: Ps::ZERO });
        self.handle(Event::Foreground { task: TaskId(space) });
    }

    fn own(&mut self, task: TaskId, page: PageId, backed: Backed) {
        self.owned += 1;
        self.machine.file[page.index()] = backed == Backed::File;
        self.handle(Event::Owned { task, page, backed });
    }

    fn handle(&mut self, event: Event) {
        self.engine.handle(event, &mut self.machine);
        for task in self.machine.killed.drain(..) {
            self.ended[task.index()] = true;
        }
    }

    /// The whole fault, until the task can repeat its access. Returns what it took.
    fn fault(&mut self, task: TaskId, page: PageId, writing: bool, time: Ps) -> Ps {
        self.machine.now = self.machine.now.max(time + self.machine.paging);
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
            slot_writes: machine.slot_writes.clone(),
            paging: machine.paging,
        }
    }
}

/// Page table, clock and card.
struct Memory {
    prices: ForegroundPrices,
    /// A page's `MAPPED`, `WRITABLE`, `REFERENCED`, `DIRTY`, `IN_SLOT`.
    table: Vec<u8>,
    file: Vec<bool>,
    card: Device,
    /// Ends of what the processor did by itself.
    done: VecDeque<Event>,
    now: Ps,
    paging: Ps,
    resumed: bool,
    killed: Vec<TaskId>,
    card_reads: u64,
    card_writes: u64,
    reads_in_slots: u64,
    slot_writes: Vec<u32>,
}

const MAPPED: u8 = 1;
const WRITABLE: u8 = 2;
const REFERENCED: u8 = 4;
const DIRTY: u8 = 8;
const IN_SLOT: u8 = 16;

impl Memory {
    fn new(config: &ForegroundConfig, pages: usize) -> Memory {
        Memory {
            prices: config.prices,
            table: vec![0; pages],
            file: vec![false; pages],
            card: Device::new(config.prices.card),
            done: VecDeque::new(),
            now: Ps::ZERO,
            paging: Ps::ZERO,
            resumed: false,
            killed: Vec::new(),
            card_reads: 0,
            card_writes: 0,
            reads_in_slots: 0,
            slot_writes: vec![0; config.slots.slots],
        }
    }

    fn lets(&self, page: PageId, writing: bool) -> bool {
        let needs = if writing { MAPPED | WRITABLE } else { MAPPED };
        self.table[page.index()] & needs == needs
    }

    fn touch(&mut self, page: PageId, writing: bool, count: u64) {
        let entry = &mut self.table[page.index()];
        *entry |= if writing { REFERENCED | DIRTY } else { REFERENCED };
        self.reads_in_slots += if *entry & IN_SLOT != 0 { count } else { 0 };
    }

    /// The next end: of what the processor did, and, as long as the task stands still, of what the card does.
    fn next_event(&mut self) -> Option<Event> {
        if let Some(event) = self.done.pop_front() {
            return Some(event);
        }
        if self.resumed {
            return None;
        }
        let (end, event) = self.card.next_end().expect("a task that stands still waits for the card");
        self.now = self.now.max(end);
        Some(event)
    }

    fn load(&mut self, page: PageId, from: usize, end: Event) {
        let in_area = from >= self.table.len();
        if in_area {
            self.now += self.prices.swap_in;
        } else if self.file[page.index()] {
            self.now += self.prices.block_layer;
        }
        if self.file[page.index()] || (in_area && self.prices.swap_on_card) {
            self.card_reads += 1;
            self.card.load(self.now, end);
        } else {
            self.done.push_back(end);
        }
    }

    fn write(&mut self, page: PageId, to: usize) {
        let end = Event::Written { page };
        let slot = to.checked_sub(self.table.len());
        self.now += if slot.is_some() { self.prices.swap_out } else { self.prices.block_layer };
        if let Some(slot) = slot {
            self.slot_writes[slot] += 1;
        }
        if slot.is_none() || self.prices.swap_on_card {
            self.card_writes += 1;
            self.card.program(self.now, end);
        } else {
            self.done.push_back(end);
        }
    }
}

impl Machine for Memory {
    fn issue(&mut self, command: Command) {
        match command {
            Command::Stage { stage: Stage::PreProcess, .. } => self.now += self.prices.fault,
            Command::Stage { .. } | Command::Move { .. } => {}
            Command::Load { ticket, page, from, .. } => self.load(page, from.index(), Event::Loaded { ticket }),
            Command::Protect { page } => self.table[page.index()] &= !WRITABLE,
            Command::Write { page, to, .. } => self.write(page, to.index()),
            Command::Evict { page, .. } | Command::Unmap { page } => self.table[page.index()] = 0,
            Command::Map { page, place, writable, referenced } => {
                let bit = |on: bool, bit: u8| if on { bit } else { 0 };
                let in_slot = bit(matches!(place, Place::Slot(_)), IN_SLOT);
                self.table[page.index()] = MAPPED | bit(writable, WRITABLE) | bit(referenced, REFERENCED) | in_slot;
            }
            Command::Resume { .. } => self.resumed = true,
            Command::Kill { task } => self.killed.push(task),
            Command::Halt { page, .. } => unreachable!("nothing fails here, but page {} was lost", page.0),
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let entry = &mut self.table[page.index()];
        let was = *entry & REFERENCED != 0;
        if after == After::Clear {
            *entry &= !REFERENCED;
        }
        was
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.table[page.index()] & DIRTY != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ps = Ps(1_000_000);

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
        let config = ForegroundConfig { policy, frames, slots, direct_read, prices };
        let mut run = Foreground::new(&config, 16, Spaces::default(), 3).unwrap();
        let row =
            |(task, page, kind): &(u32, u64, Kind)| Reference { task: *task, ..Reference::new(page << 12, 4, *kind) };
        let block: Block = rows.iter().map(row).collect();
        run.feed(&block, &|address| if address >> 12 < 8 { Backed::Anonymous } else { Backed::File });
        run.engine().check();
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
        assert_eq!((with.slot_writes, without.slot_writes), (vec![1, 0, 0, 0], vec![1, 1, 0, 0]));
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
