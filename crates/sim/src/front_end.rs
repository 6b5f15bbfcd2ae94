//! Front ends: from the processor's accesses to the page references that a memory management unit sees.
//!
//! A front end does not depend on what is in RAM, so one serves all lanes. To add one: copy `front_end/plain.rs` and name it where
//! configurations are read.

use coldframe_trace::Block;

use crate::numbering::Numbering;

pub mod cache;
pub mod instruction;
pub mod l1;
pub mod plain;
pub mod write_back;

/// One page reference: the page's dense number, whether it writes, and whether it is quiet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRef(pub u32);

impl PageRef {
    /// Bit of `kind()`: it writes.
    pub const WRITE_KIND: usize = 2;
    /// Bit of `kind()`: it leaves no reference bit if the page is mapped (a TLB hit under reading C).
    pub const QUIET_KIND: usize = 1;
    /// The most pages that can be told apart.
    pub const PAGES_MAX: usize = 1 << 30;

    /// Packs one.
    #[inline(always)]
    pub const fn new(page: u32, writing: bool, quiet: bool) -> PageRef {
        PageRef(page | (writing as u32) << 31 | (quiet as u32) << 30)
    }

    /// The page's number.
    #[inline(always)]
    pub const fn page(self) -> usize {
        (self.0 & (Self::PAGES_MAX as u32 - 1)) as usize
    }

    /// `WRITE_KIND` and `QUIET_KIND` together.
    #[inline(always)]
    pub const fn kind(self) -> usize {
        (self.0 >> 30) as usize
    }

    /// Whether it writes.
    #[inline(always)]
    pub const fn writing(self) -> bool {
        self.0 >> 31 != 0
    }

    /// Whether it is quiet.
    #[inline(always)]
    pub const fn quiet(self) -> bool {
        self.0 >> 30 & 1 != 0
    }
}

/// Which references of a trace are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Instruction fetches.
    Instructions,
    /// Loads and stores.
    Data,
    /// All, in program order.
    Both,
}

impl Stream {
    /// Whether a trace row of this kind (0 fetch, 1 read, 2 write) belongs to it.
    #[inline(always)]
    pub const fn takes(self, kind: u32) -> bool {
        match self {
            Stream::Instructions => kind == 0,
            Stream::Data => kind != 0,
            Stream::Both => true,
        }
    }

    /// As the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Instructions => "I",
            Stream::Data => "D",
            Stream::Both => "ID",
        }
    }
}

/// What a front end has counted so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrontEndCounts {
    /// Instructions executed.
    pub instructions: u64,
    /// Page references given out, runs of a reduced trace counted in full.
    pub references: u64,
    /// Of these, quiet ones. They count as references of a lane only where they fault.
    pub quiet: u64,
    /// Lines looked up in the instruction cache.
    pub icache_lookups: u64,
    /// Lines that were not there.
    pub icache_misses: u64,
    /// Translations that were not in the TLB.
    pub tlb_misses: u64,
    /// Lines looked up in the data cache.
    pub dcache_lookups: u64,
    /// Lines that were not there.
    pub dcache_misses: u64,
    /// Cache blocks read from below the caches, paged or not.
    pub memory_reads: u64,
    /// Of these, those of paged pages.
    pub paged_reads: u64,
    /// Cache blocks written back.
    pub memory_writes: u64,
}

/// A front end.
pub trait FrontEnd: Send {
    /// Appends the page references of a block's rows from `from` on to `out`, until `limit` accesses below the front end have been
    /// counted in all. Returns false when the limit is reached.
    fn filter(&mut self, block: &Block, from: usize, out: &mut Vec<PageRef>) -> bool;

    /// What it has counted.
    fn counts(&self) -> &FrontEndCounts;

    /// The pages numbered so far.
    fn numbering(&self) -> &Numbering;

    /// Whether it needs every single reference, not runs of them.
    fn needs_exact(&self) -> bool;
}

/// Which address space a task lives in, by task number; tasks beyond the table live in the space of their own number.
#[derive(Clone, Debug, Default)]
pub struct Spaces(pub Vec<u32>);

impl Spaces {
    /// The space of a task.
    #[inline(always)]
    pub fn of(&self, task: u32) -> u32 {
        self.0.get(task as usize).copied().unwrap_or(task)
    }
}
