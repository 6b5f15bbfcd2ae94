//! The machine under tasks in the foreground: page table, clock and card.

use std::collections::VecDeque;

use coldframe_core::{After, Command, Event, Machine, PageId, Place, Ps, Stage, TaskId};
use coldframe_trace::journal::{Entry, Journal};

use super::{ForegroundConfig, ForegroundPrices};
use crate::clock::Device;

/// Page table, clock and card.
pub(super) struct Memory {
    prices: ForegroundPrices,
    /// A page's `MAPPED`, `WRITABLE`, `REFERENCED`, `DIRTY`, `IN_SLOT`.
    table: Vec<u8>,
    pub(super) file: Vec<bool>,
    pub(super) card: Device,
    /// Ends of what the processor did by itself.
    done: VecDeque<Event>,
    pub(super) now: Ps,
    pub(super) paging: Ps,
    pub(super) resumed: bool,
    pub(super) killed: Vec<TaskId>,
    pub(super) card_reads: u64,
    pub(super) card_writes: u64,
    pub(super) reads_in_slots: u64,
    /// Slots of the area in the order in which they were written.
    pub(super) slot_log: Vec<u32>,
    pub(super) journal: Option<Journal>,
}

const MAPPED: u8 = 1;
const WRITABLE: u8 = 2;
const REFERENCED: u8 = 4;
const DIRTY: u8 = 8;
const IN_SLOT: u8 = 16;

impl Memory {
    pub(super) fn new(config: &ForegroundConfig, pages: usize) -> Memory {
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
            slot_log: Vec::new(),
            journal: None,
        }
    }

    pub(super) fn note(&mut self, entry: impl FnOnce(u64) -> Entry) {
        if let Some(journal) = &mut self.journal {
            journal.write(&entry(self.now.0));
        }
    }

    pub(super) fn lets(&self, page: PageId, writing: bool) -> bool {
        let needs = if writing { MAPPED | WRITABLE } else { MAPPED };
        self.table[page.index()] & needs == needs
    }

    pub(super) fn touch(&mut self, page: PageId, writing: bool, count: u64) {
        let entry = &mut self.table[page.index()];
        *entry |= if writing { REFERENCED | DIRTY } else { REFERENCED };
        self.reads_in_slots += if *entry & IN_SLOT != 0 { count } else { 0 };
    }

    /// The next end: of what the processor did, and, as long as the task stands still, of what the card does.
    pub(super) fn next_event(&mut self) -> Option<Event> {
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
            self.slot_log.push(slot as u32);
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
        self.note(|_| Entry::Command(command));
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
        self.note(|_| Entry::Referenced { page, after, value: was });
        was
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.table[page.index()] & DIRTY != 0;
        self.note(|_| Entry::Dirty { page, value });
        value
    }
}
