//! The work for a fault, noted under the engine's lock and done after it is freed; and the time that its stages take.

use coldframe_core::{Stage, Ticket};

use super::{LOADS, MOVES, VICTIMS};
use crate::memory::space::BLOCK;
use crate::sys;

/// Pages of one task that cannot leave, at most.
const UNEVICTED_MAX: usize = 4 * (MOVES + VICTIMS);

/// The source of a load's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadSource {
    Unknown,
    /// The page has no content: zeros.
    Zeros,
    /// The log's buffer; they have been copied.
    Memory,
    /// The device; the request will go together with others.
    Noted,
    /// The device; the request has been sent.
    Requested,
    /// The device, which will be read at once.
    Device,
}

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub ticket: Ticket,
    pub page: usize,
    pub into: usize,
    pub source: LoadSource,
    pub slot: Option<u64>,
    /// Whether the load has succeeded; `None` until this is known.
    pub good: Option<bool>,
}

impl Load {
    pub fn new(ticket: Ticket, page: usize, into: usize) -> Load {
        Load { ticket, page, into, source: LoadSource::Unknown, slot: None, good: None }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CopyIn {
    pub page: usize,
    pub from: usize,
    pub write: bool,
    /// It came from the device or the log; otherwise it is zeros.
    pub content: bool,
}

/// A page that goes to the aside mapping or comes back from it.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// It continues the invalid list; `clean`: writes to it fault.
    SetAside { page: usize, clean: bool },
    /// A false fault; `write`: a write comes next.
    Restore { page: usize, write: bool },
}

impl Move {
    pub fn sets_aside(&self) -> bool {
        matches!(self, Move::SetAside { .. })
    }

    pub fn page(&self) -> usize {
        let (Move::SetAside { page, .. } | Move::Restore { page, .. }) = *self;
        page
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Victim {
    pub page: usize,
    /// Its address: in its region, or in the aside mapping.
    pub address: usize,
    pub is_aside: bool,
    pub write: bool,
    /// The program has released it: it leaves, even if the kernel holds its frame.
    pub released: bool,
    /// It cannot leave: the kernel holds its frame.
    pub refused: bool,
    /// Its place in the staging memory, once it is there.
    pub staged: usize,
}

/// The work for a fault after the engine's lock is freed.
#[derive(Debug)]
pub struct Todo {
    pub task: usize,
    /// The page of the fault, and whether it is written to.
    pub fault: Option<(usize, bool)>,
    pub loads: Vec<Load>,
    pub copies: Vec<CopyIn>,
    /// Untouched pages that come in as zeros, in order.
    pub zeros: Vec<usize>,
    pub moves: Vec<Move>,
    pub victims: Vec<Victim>,
    /// Pages that could not leave; the engine believes that they are gone.
    pub unevicted: Vec<usize>,
    /// Of those that are back: the policy does not see them until all are.
    pub hidden: Vec<usize>,
    /// Number of victims, from the first on, that have left memory; their bytes are staged.
    pub zapped: usize,
    pub spare: Vec<usize>,
    /// When the request went to the device; 0: there was none.
    pub requested_at: u64,
    pub laps: Laps,
}

/// The time of each stage of a fault, in nanoseconds. It is measured for one fault of [`MEASURED`] only: to ask the
/// clock after each stage of each fault took 2 us of 30.
#[derive(Clone, Copy, Debug, Default)]
pub struct Laps {
    mark: u64,
    /// The number of faults that this one stands for; 0: it is not measured.
    weight: u64,
    spent: [u64; STAGES],
}

/// The stages of one fault in this many are measured.
pub const MEASURED: u64 = 8;

/// Stages; `UpdateMMU` stays 0, since one system call moves a page and maps it.
const STAGES: usize = 6;

impl Laps {
    /// For the fault of this number, which starts at `at`.
    pub fn begin(number: u64, at: u64) -> Laps {
        let weight = if number.is_multiple_of(MEASURED) { MEASURED } else { 0 };
        Laps { mark: at, weight, spent: [0; STAGES] }
    }

    /// Assigns the time since the last lap to `stage`, and returns it, for all the faults that this one stands for.
    pub fn lap(&mut self, stage: Stage) -> u64 {
        if self.weight == 0 {
            return 0;
        }
        let now = sys::now();
        let took = now.saturating_sub(self.mark) * self.weight;
        self.spent[stage as usize] += took;
        self.mark = now;
        took
    }

    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The sum of all laps of the stage, for all the faults that this one stands for.
    pub fn of(&self, stage: Stage) -> u64 {
        self.spent[stage as usize]
    }
}

impl Todo {
    pub fn new(task: usize) -> Todo {
        Todo {
            task,
            fault: None,
            loads: Vec::with_capacity(LOADS),
            copies: Vec::with_capacity(LOADS),
            zeros: Vec::with_capacity(BLOCK),
            moves: Vec::with_capacity(MOVES),
            victims: Vec::with_capacity(VICTIMS),
            unevicted: Vec::with_capacity(UNEVICTED_MAX),
            hidden: Vec::with_capacity(UNEVICTED_MAX),
            zapped: 0,
            spare: Vec::with_capacity(LOADS),
            requested_at: 0,
            laps: Laps::default(),
        }
    }

    pub fn note_unevicted(&mut self, page: usize) {
        if self.unevicted.len() == self.unevicted.capacity() {
            crate::sys::fatal::stop("the kernel holds too many pages of the program; give more RAM");
        }
        self.unevicted.push(page);
    }

    pub fn done(&self) -> bool {
        let lists = [self.copies.is_empty(), self.zeros.is_empty(), self.moves.is_empty(), self.victims.is_empty()];
        self.loads.is_empty() && lists.iter().all(|empty| *empty)
    }
}
