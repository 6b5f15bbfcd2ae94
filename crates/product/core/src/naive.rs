//! For tests: the naive twins' trait, and a machine that does everything at once.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use crate::command::Command;
use crate::event::{Event, Transfer};
use crate::ids::{BlockId, PageId, TaskId};
use crate::machine::{After, Caps, Machine};
use crate::place::Place;

/// What one reference did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// The page was mapped.
    Hit,
    /// It was in RAM but not mapped.
    FalseFault,
    /// It had to be loaded.
    TrueFault {
        /// The page that left.
        victim: Option<u64>,
        /// Frames examined.
        walk: u64,
        /// The victim was taken with any reference bit.
        forced: bool,
    },
}

/// A policy written from its definition, with its own memory of pages, slow and obviously right.
pub trait Naive {
    /// One reference.
    fn reference(&mut self, page: u64) -> Touch;
}

#[derive(Clone, Copy, Default, Debug)]
struct Entry {
    mapped: bool,
    writable: bool,
    referenced: bool,
    dirty: bool,
}

/// A machine whose loads and writes end at once. It keeps page contents: a read must find the last value written to
/// the page.
///
/// It checks the rules that a machine may rely on, and panics when the engine breaks one: a dirty page is never
/// unmapped before it is protected, no page is mapped twice, and a frame holds what was moved into it.
#[derive(Debug)]
pub struct Immediate {
    caps: Caps,
    table: Vec<Entry>,
    protected: Vec<bool>,
    frames: BTreeMap<u32, u64>,
    buffers: BTreeMap<u32, u64>,
    slots: BTreeMap<u32, u64>,
    writing: BTreeMap<u32, u64>,
    events: VecDeque<Event>,
    place: Vec<Option<Place>>,
    /// Tasks that were resumed, oldest first.
    pub resumed: Vec<TaskId>,
    /// Tasks stopped permanently.
    pub halted: Vec<TaskId>,
    /// Tasks ended for want of memory, oldest first.
    pub killed: Vec<TaskId>,
    /// Everything that was issued.
    pub log: Vec<Command>,
    /// Blocks of the swap area that were erased, oldest first.
    pub erased: Vec<BlockId>,
    /// Makes the next transfers fail.
    pub failures: u32,
    /// Makes the next copies within the swap area fail.
    pub copy_failures: u32,
    /// Makes the next erases fail.
    pub erase_failures: u32,
    /// Bytes of pages whose copy failed.
    written_bytes: BTreeMap<u32, u64>,
    /// Slots that cannot be read.
    torn: BTreeSet<u32>,
    /// Pages that a test has released lately. Only the test uses this.
    pub released: BTreeSet<PageId>,
}

impl Immediate {
    /// A machine with this many pages.
    pub fn new(caps: Caps, pages: usize) -> Immediate {
        Immediate {
            caps,
            table: vec![Entry::default(); pages],
            protected: vec![false; pages],
            frames: BTreeMap::new(),
            buffers: BTreeMap::new(),
            slots: BTreeMap::new(),
            writing: BTreeMap::new(),
            events: VecDeque::new(),
            place: vec![None; pages],
            resumed: Vec::new(),
            halted: Vec::new(),
            killed: Vec::new(),
            log: Vec::new(),
            erased: Vec::new(),
            failures: 0,
            copy_failures: 0,
            erase_failures: 0,
            written_bytes: BTreeMap::new(),
            torn: BTreeSet::new(),
            released: BTreeSet::new(),
        }
    }

    /// The next end of a transfer, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Reads the page as the processor would; `None` is a fault.
    pub fn read(&mut self, page: PageId) -> Option<u64> {
        let entry = &mut self.table[page.index()];
        if !entry.mapped {
            return None;
        }
        entry.referenced = true;
        match self.place[page.index()] {
            Some(Place::Frame(frame)) => Some(self.frames[&frame.0]),
            Some(Place::Buffer(buffer)) => Some(self.buffers[&buffer.0]),
            // A page that was dropped clean has zeros in its home slot.
            Some(Place::Slot(slot)) if slot == page.home() => Some(self.slots.get(&slot.0).copied().unwrap_or(0)),
            Some(Place::Slot(slot)) => Some(self.slots[&slot.0]),
            other => panic!("mapped at {other:?}"),
        }
    }

    /// Writes to the page as the processor would; false is a fault.
    pub fn write(&mut self, page: PageId, value: u64) -> bool {
        let entry = &mut self.table[page.index()];
        if !entry.mapped || !entry.writable {
            return false;
        }
        (entry.referenced, entry.dirty) = (true, true);
        let Some(Place::Frame(frame)) = self.place[page.index()] else { panic!("mapped without a place") };
        self.frames.insert(frame.0, value);
        true
    }

    /// Whether the page is mapped; leaves the bits alone.
    pub fn mapped(&self, page: PageId) -> bool {
        self.table[page.index()].mapped
    }

    /// The page's bytes are no longer needed. The page begins empty, as the pages of an ended task do.
    pub fn forget(&mut self, page: PageId) {
        self.slots.remove(&page.home().0);
    }

    fn end(&mut self, good: Event, bad: Event) {
        let fails = self.failures > 0;
        self.failures -= u32::from(fails);
        self.events.push_back(if fails { bad } else { good });
    }
}

impl Machine for Immediate {
    fn issue(&mut self, command: Command) {
        self.log.push(command);
        match command {
            Command::Stage { .. } => {}
            Command::Load { ticket, from, into, .. } => {
                let value = self.slots.get(&from.0).copied().unwrap_or(0);
                assert!(!self.place.contains(&Some(Place::Buffer(into))), "loaded over a page that is read there");
                self.buffers.insert(into.0, value);
                let transfer = Transfer::Load(ticket);
                if self.torn.contains(&from.0) {
                    return self.events.push_back(Event::Failed { transfer });
                }
                self.end(Event::Loaded { ticket }, Event::Failed { transfer });
            }
            Command::Move { from, to, .. } => {
                let value = self.buffers.remove(&from.0).expect("the buffer holds a page");
                self.frames.insert(to.0, value);
            }
            Command::Protect { page } => {
                self.table[page.index()].writable = false;
                self.protected[page.index()] = true;
            }
            Command::Write { page, from, to } => {
                assert!(!self.table[page.index()].writable, "written while a write can still land");
                let value = from.map_or_else(|| self.writing[&page.0], |frame| self.frames[&frame.0]);
                self.writing.insert(page.0, value);
                let transfer = Transfer::Write(page);
                let fails = self.failures > 0;
                self.end(Event::Written { page }, Event::Failed { transfer });
                assert!(!self.place.contains(&Some(Place::Slot(to))), "written over a page that is read there");
                if !fails {
                    self.torn.remove(&to.0);
                    self.slots.insert(to.0, value);
                }
            }
            Command::Evict { page, from } => {
                assert!(self.frames.remove(&from.0).is_some(), "nothing is there to evict");
                self.table[page.index()] = Entry::default();
                self.place[page.index()] = None;
            }
            Command::Unmap { page } => {
                let entry = &mut self.table[page.index()];
                assert!(entry.mapped, "unmapped twice");
                *entry = Entry::default();
                self.place[page.index()] = None;
            }
            Command::Map { page, place, writable, referenced } => {
                let entry = &mut self.table[page.index()];
                let moves = matches!(self.place[page.index()], Some(Place::Buffer(_)));
                assert!(!entry.mapped || moves || (writable && !entry.writable), "mapped twice");
                let in_place = matches!(place, Place::Buffer(_) | Place::Slot(_));
                assert!(!(writable && in_place), "a page in a buffer or slot cannot be written");
                *entry = Entry { mapped: true, writable, referenced, dirty: false };
                self.place[page.index()] = Some(place);
                self.protected[page.index()] = false;
            }
            Command::Zero { page, frame } => {
                assert!(!self.table[page.index()].mapped, "mapped twice");
                self.table[page.index()] = Entry { mapped: true, writable: true, referenced: false, dirty: false };
                self.place[page.index()] = Some(Place::Frame(frame));
                self.frames.insert(frame.0, 0);
                self.protected[page.index()] = false;
            }
            Command::Resume { task } => self.resumed.push(task),
            Command::CopySlot { page, from, to } => {
                let value = match from {
                    Some(from) if self.torn.contains(&from.0) => self.written_bytes[&page.0],
                    Some(from) => *self.slots.get(&from.0).expect("a slot that holds a page"),
                    None => self.written_bytes[&page.0],
                };
                self.written_bytes.insert(page.0, value);
                if self.copy_failures > 0 {
                    self.copy_failures -= 1;
                    self.torn.insert(to.0);
                    let transfer = Transfer::Copy { page, to };
                    return self.events.push_back(Event::Failed { transfer });
                }
                self.torn.remove(&to.0);
                self.slots.insert(to.0, value);
            }
            Command::EraseBlock { block } => {
                self.erased.push(block);
                if self.erase_failures > 0 {
                    self.erase_failures -= 1;
                    let transfer = Transfer::Erase(block);
                    self.events.push_back(Event::Failed { transfer });
                }
            }
            Command::Kill { task } => self.killed.push(task),
            Command::Halt { task, .. } => self.halted.push(task),
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let entry = &mut self.table[page.index()];
        assert!(entry.mapped && self.caps.reference_bit);
        let bit = entry.referenced;
        entry.referenced = bit && after == After::Keep;
        bit
    }

    fn dirty(&mut self, page: PageId) -> bool {
        assert!(self.protected[page.index()] && self.caps.dirty_bit, "the dirty bit may still change");
        self.table[page.index()].dirty
    }

    fn filled(&mut self, page: PageId) -> bool {
        self.table[page.index()].dirty
    }
}
