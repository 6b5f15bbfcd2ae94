//! Front ends: from the processor's accesses to the page references that a memory management unit sees.
//!
//! A front end does not depend on the pages in RAM, so one front end serves all lanes. To add one, copy
//! `front_end/plain.rs`, and name the new one where configurations are read.

use coldframe_lane::numbering::Numbering;
use coldframe_lane::PageRef;
use coldframe_store::Block;

pub mod cache;
pub mod instruction;
pub mod l1;
pub mod plain;
pub mod write_back;

/// The references of a trace that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Instructions,
    /// Loads and stores.
    Data,
    /// All, in program order.
    Both,
}

impl Stream {
    /// Whether it includes a trace row of this kind (0 fetch, 1 read, 2 write).
    #[inline(always)]
    pub const fn takes(self, kind: u32) -> bool {
        match self {
            Stream::Instructions => kind == 0,
            Stream::Data => kind != 0,
            Stream::Both => true,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Instructions => "I",
            Stream::Data => "D",
            Stream::Both => "ID",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrontEndCounts {
    pub instructions: u64,
    /// Page references. Runs of a reduced trace count in full.
    pub references: u64,
    /// Quiet ones of these. They count as references of a lane only where they fault.
    pub quiet: u64,
    /// Lines looked up in the instruction cache.
    pub icache_lookups: u64,
    /// Lines that were not in the instruction cache.
    pub icache_misses: u64,
    /// Translations that were not in the TLB.
    pub tlb_misses: u64,
    /// Lines looked up in the data cache.
    pub dcache_lookups: u64,
    /// Lines that were not in the data cache.
    pub dcache_misses: u64,
    /// Cache blocks read from below the caches, paged or not.
    pub memory_reads: u64,
    pub paged_reads: u64,
    pub memory_writes: u64,
}

pub trait FrontEnd: Send {
    /// Appends the page references of a block's rows from `from` on to `out`, until `limit` accesses below the front
    /// end have been counted in all. Returns false if the limit is reached.
    fn filter(&mut self, block: &Block, from: usize, out: &mut Vec<PageRef>) -> bool;

    fn counts(&self) -> &FrontEndCounts;

    fn numbering(&self) -> &Numbering;
}

/// The address space of each task, by task number. A task beyond the table has the address space of its own number.
#[derive(Clone, Debug, Default)]
pub struct Spaces(pub Vec<u32>);

impl Spaces {
    #[inline(always)]
    pub fn of(&self, task: u32) -> u32 {
        self.0.get(task as usize).copied().unwrap_or(task)
    }
}
