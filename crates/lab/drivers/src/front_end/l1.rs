//! Instruction and data cache in front of main memory: only misses and write-backs reach it.
//!
//! Each access below the caches is a read (a line is filled) or a write (a dirty line is written back) of one cache
//! block. Accesses to paged addresses are page references; the others go to main memory and are only counted. The
//! caches are virtually indexed, write back, allocate on writes, and are not flushed when a page is evicted: a line
//! that is written back to an evicted page causes a fault on it. (If only read-only sections are paged, as in DDB, no
//! line is written back to a paged page.)

use coldframe_store::Block;

use super::write_back::{CacheOutcome, Line, WriteBackCache};
use super::{FrontEnd, FrontEndCounts, PageRef, Spaces, Stream};
use coldframe_lane::numbering::Numbering;

/// Sizes of each of the two caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct L1Shape {
    /// log2 of the line size in bytes.
    pub line_shift: u32,
    /// Sets, a power of two.
    pub sets: usize,
    pub ways: usize,
}

pub struct L1 {
    shape: L1Shape,
    stream: Stream,
    instructions: WriteBackCache,
    data: WriteBackCache,
    numbering: Numbering,
    spaces: Spaces,
    paged: Option<Vec<(u64, u64)>>,
    limit: u64,
    counts: FrontEndCounts,
}

impl L1 {
    /// A front end for pages of `1 << shift` bytes. `paged` are the address ranges (start, end) that are demand paged;
    /// `None`: all. Stops after `limit` accesses below the caches, reads and writes.
    pub fn new(
        shape: L1Shape,
        stream: Stream,
        shift: u32,
        spaces: Spaces,
        paged: Option<Vec<(u64, u64)>>,
        limit: Option<u64>,
    ) -> L1 {
        L1 {
            shape,
            stream,
            instructions: WriteBackCache::new(shape.sets, shape.ways),
            data: WriteBackCache::new(shape.sets, shape.ways),
            numbering: Numbering::new(shift),
            spaces,
            paged,
            limit: limit.unwrap_or(u64::MAX),
            counts: FrontEndCounts::default(),
        }
    }

    fn is_paged(&self, address: u64) -> bool {
        match &self.paged {
            None => true,
            Some(ranges) => ranges.iter().any(|(start, end)| (*start..*end).contains(&address)),
        }
    }

    /// One access of memory below the caches.
    fn memory(&mut self, (space, line): Line, writing: bool, out: &mut Vec<PageRef>) {
        let count = if writing { &mut self.counts.memory_writes } else { &mut self.counts.memory_reads };
        *count += 1;
        let address = line << self.shape.line_shift;
        if self.is_paged(address) {
            let page = self.numbering.number(space, address >> self.numbering.shift());
            out.push(PageRef::new(page, writing, false));
            self.counts.references += 1;
            self.counts.paged_reads += u64::from(!writing);
        }
    }

    fn is_full(&self) -> bool {
        self.counts.memory_reads + self.counts.memory_writes >= self.limit
    }

    /// A miss reads its line; then the replaced line is written back from the write buffer. False: the limit is
    /// reached.
    #[cold]
    fn miss(&mut self, line: Line, written_back: Option<Line>, out: &mut Vec<PageRef>) -> bool {
        self.memory(line, false, out);
        if let Some(dirty) = written_back.filter(|_| !self.is_full()) {
            self.memory(dirty, true, out);
        }
        !self.is_full()
    }

    fn access(&mut self, line: Line, kind: u32, out: &mut Vec<PageRef>) -> bool {
        let counts = &mut self.counts;
        let (cache, lookups, misses) = match kind {
            0 => (&mut self.instructions, &mut counts.icache_lookups, &mut counts.icache_misses),
            _ => (&mut self.data, &mut counts.dcache_lookups, &mut counts.dcache_misses),
        };
        *lookups += 1;
        match cache.access(line, kind == 2) {
            CacheOutcome::Hit => true,
            CacheOutcome::Miss { written_back } => {
                *misses += 1;
                self.miss(line, written_back, out)
            }
        }
    }
}

impl FrontEnd for L1 {
    fn filter(&mut self, block: &Block, from: usize, out: &mut Vec<PageRef>) -> bool {
        let (address, size, kind) = (&block.address()[from..], &block.size()[from..], &block.kind()[from..]);
        let rows = address.len();
        let (size, kind, task) = (&size[..rows], &kind[..rows], block.task().get(from..).unwrap_or_default());
        let shift = self.shape.line_shift;
        for i in 0..rows {
            if !self.stream.takes(kind[i]) {
                continue;
            }
            self.counts.instructions += u64::from(kind[i] == 0);
            let space = self.spaces.of(task.get(i).copied().unwrap_or(0));
            for line in address[i] >> shift..=(address[i] + u64::from(size[i] - 1)) >> shift {
                if !self.access((space, line), kind[i], out) {
                    return false;
                }
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
