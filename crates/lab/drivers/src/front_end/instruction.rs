//! An instruction cache and a TLB in front of the page table: only cache misses reach it.
//!
//! Every line that an instruction touches is one look-up. A miss looks up the TLB and then references its page, as the
//! reading says. A: every cache miss references its page. C: only a miss that also misses the TLB, or whose page is
//! absent. D: every look-up, hit or miss. The cache is not invalidated when a page is evicted (virtually indexed,
//! read-only code).

use coldframe_store::Block;

use super::cache::Cache;
use super::{FrontEnd, FrontEndCounts, PageRef, Spaces, Stream};
use coldframe_lane::numbering::Numbering;

/// The references that the memory management unit sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Every instruction cache miss.
    A,
    /// Every instruction cache miss that misses the TLB too.
    C,
    /// Every line look-up.
    D,
}

impl Reading {
    /// As the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Reading::A => "A",
            Reading::C => "C",
            Reading::D => "D",
        }
    }
}

/// Sizes of cache and TLB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// log2 of the line size in bytes.
    pub line_shift: u32,
    /// Sets of the cache, a power of two.
    pub sets: usize,
    pub ways: usize,
    /// Sets of the TLB, a power of two.
    pub tlb_sets: usize,
    pub tlb_ways: usize,
}

pub struct Instruction {
    shape: Shape,
    reading: Reading,
    cache: Cache,
    tlb: Cache,
    numbering: Numbering,
    spaces: Spaces,
    paged: Option<Vec<(u64, u64)>>,
    limit: u64,
    last: (u32, u64),
    counts: FrontEndCounts,
}

impl Instruction {
    /// A front end for pages of `1 << shift` bytes. `paged` are the address ranges (start, end) that are demand paged;
    /// `None`: all. Stops after `limit` accesses below the cache, that is, misses.
    pub fn new(
        shape: Shape,
        reading: Reading,
        shift: u32,
        spaces: Spaces,
        paged: Option<Vec<(u64, u64)>>,
        limit: Option<u64>,
    ) -> Instruction {
        Instruction {
            shape,
            reading,
            cache: Cache::new(shape.sets, shape.ways),
            tlb: Cache::new(shape.tlb_sets, shape.tlb_ways),
            numbering: Numbering::new(shift),
            spaces,
            paged,
            limit: limit.unwrap_or(u64::MAX),
            last: (0, u64::MAX),
            counts: FrontEndCounts::default(),
        }
    }

    fn is_paged(&self, address: u64) -> bool {
        match &self.paged {
            None => true,
            Some(ranges) => ranges.iter().any(|(start, end)| (*start..*end).contains(&address)),
        }
    }

    fn reference(&mut self, space: u32, line: u64, quiet: bool, out: &mut Vec<PageRef>) {
        let address = line << self.shape.line_shift;
        if !self.is_paged(address) {
            return;
        }
        let page = self.numbering.number(space, address >> self.numbering.shift());
        out.push(PageRef::new(page, false, quiet));
        self.counts.references += 1;
        self.counts.quiet += u64::from(quiet);
    }

    #[cold]
    fn miss(&mut self, space: u32, line: u64, out: &mut Vec<PageRef>) {
        self.counts.icache_misses += 1;
        let page = line << self.shape.line_shift >> self.numbering.shift();
        let translated = self.tlb.look_up(space, page);
        self.counts.tlb_misses += u64::from(!translated);
        self.reference(space, line, self.reading == Reading::C && translated, out);
    }
}

impl FrontEnd for Instruction {
    fn filter(&mut self, block: &Block, from: usize, out: &mut Vec<PageRef>) -> bool {
        let (address, size, kind) = (&block.address()[from..], &block.size()[from..], &block.kind()[from..]);
        let rows = address.len();
        let (size, kind, task) = (&size[..rows], &kind[..rows], block.task().get(from..).unwrap_or_default());
        let shift = self.shape.line_shift;
        for i in 0..rows {
            if !Stream::Instructions.takes(kind[i]) {
                continue;
            }
            self.counts.instructions += 1;
            let space = self.spaces.of(task.get(i).copied().unwrap_or(0));
            let (mut line, last) = (address[i] >> shift, (address[i] + u64::from(size[i] - 1)) >> shift);
            loop {
                self.counts.icache_lookups += 1;
                // The line looked up last is surely there: nothing has been filled since.
                let hit = self.last == (space, line) || self.cache.look_up(space, line);
                self.last = (space, line);
                if !hit {
                    self.miss(space, line, out);
                    if self.counts.icache_misses >= self.limit {
                        return false;
                    }
                } else if self.reading == Reading::D {
                    self.reference(space, line, false, out);
                }
                if line == last {
                    break;
                }
                line += 1;
            }
        }
        true
    }

    fn counts(&self) -> &FrontEndCounts {
        &self.counts
    }

    fn numbering(&self) -> &Numbering {
        &self.numbering
    }
}
