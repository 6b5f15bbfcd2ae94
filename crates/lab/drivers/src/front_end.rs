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

/// A sample of the pages, chosen by a hash of each, or one of its [`PARTS`](Sample::PARTS): SHARDS with a fixed rate
/// (Waldspurger et al., FAST 2015, section 3). Misses in a memory that is smaller by the same share estimate those of
/// all pages. Not for what depends on neighbours, such as read-ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Pages of 2^24 that are in the sample.
    threshold: u64,
    part: Option<u64>,
}

impl Sample {
    /// The parts that each sample is made of; between their misses is the error.
    pub const PARTS: u64 = 8;
    const ALL: u64 = 1 << 24;

    /// With this share of the pages, at most all.
    pub fn new(share: f64) -> Sample {
        Sample { threshold: ((share * Self::ALL as f64).round() as u64).clamp(1, Self::ALL), part: None }
    }

    /// One of its parts.
    pub fn part(self, part: u64) -> Sample {
        Sample { part: Some(part), ..self }
    }

    /// The share of the pages that are in it.
    pub fn share(&self) -> f64 {
        let parts = self.part.map_or(1, |_| Self::PARTS);
        self.threshold as f64 / (Self::ALL * parts) as f64
    }

    /// Frames of the sample for so many of all pages; at least one.
    pub fn frames(&self, of: usize) -> usize {
        ((of as f64 * self.share()).round() as usize).max(1)
    }

    /// Whether a page is in it.
    #[inline]
    pub fn has(&self, space: u32, page: u64) -> bool {
        // The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        let mut hash = (page ^ u64::from(space).rotate_left(44)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        hash >> 40 < self.threshold && self.part.is_none_or(|part| hash % Self::PARTS == part)
    }
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
