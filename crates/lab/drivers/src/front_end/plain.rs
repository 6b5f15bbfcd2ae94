//! No caches: each access references every page it touches, in ascending order. Of a sample, the others are counted
//! and go no further.

use coldframe_store::Block;

use super::{FrontEnd, FrontEndCounts, PageRef, Sample, Spaces, Stream};
use coldframe_lane::numbering::Numbering;

pub struct Plain {
    stream: Stream,
    numbering: Numbering,
    spaces: Spaces,
    limit: u64,
    sample: Option<Sample>,
    counts: FrontEndCounts,
}

impl Plain {
    /// For pages of `1 << shift` bytes; stops after `limit` references.
    pub fn new(stream: Stream, shift: u32, spaces: Spaces, limit: Option<u64>) -> Plain {
        let limit = limit.unwrap_or(u64::MAX);
        let (numbering, counts) = (Numbering::new(shift), FrontEndCounts::default());
        Plain { stream, numbering, spaces, limit, sample: None, counts }
    }

    /// Only the references to the pages of a sample go further.
    pub fn sampled(self, sample: Option<Sample>) -> Plain {
        Plain { sample, ..self }
    }
}

impl Plain {
    /// `TASKS` and `COUNTS`: whether the block has these columns. `ALL`: it is no sample.
    fn rows<const TASKS: bool, const COUNTS: bool, const ALL: bool>(
        &mut self,
        block: &Block,
        from: usize,
        out: &mut Vec<PageRef>,
    ) -> bool {
        let (address, size, kind) = (&block.address()[from..], &block.size()[from..], &block.kind()[from..]);
        let rows = address.len();
        // Slices of one length, so that the loop is free of bounds checks.
        let (size, kind) = (&size[..rows], &kind[..rows]);
        let task = if TASKS { &block.task()[from..][..rows] } else { &[] };
        let count = if COUNTS { &block.count()[from..][..rows] } else { &[] };
        let shift = self.numbering.shift();
        out.reserve(rows);
        for i in 0..rows {
            if !self.stream.takes(kind[i]) {
                continue;
            }
            let space = self.spaces.of(if TASKS { task[i] } else { 0 });
            let runs = if COUNTS { u64::from(count[i]) } else { 1 };
            let (mut page, last) = (address[i] >> shift, (address[i] + u64::from(size[i] - 1)) >> shift);
            let writing = kind[i] == 2;
            self.counts.instructions += if kind[i] == 0 { runs } else { 0 };
            loop {
                if ALL || self.sample.is_none_or(|sample| sample.has(space, page)) {
                    let reference = PageRef::new(self.numbering.number(space, page), writing, false);
                    out.push(reference);
                    // In a run of references to one page, the second may still change something (a bit that was clear
                    // after the load); the third and later ones change nothing.
                    if COUNTS && runs > 1 {
                        out.push(reference);
                    }
                }
                self.counts.references += runs;
                if self.counts.references >= self.limit {
                    self.counts.references = self.limit;
                    return false;
                }
                if page == last {
                    break;
                }
                page += 1;
            }
        }
        true
    }
}

impl FrontEnd for Plain {
    fn filter(&mut self, block: &Block, from: usize, out: &mut Vec<PageRef>) -> bool {
        match (block.task().is_empty(), block.count().is_empty(), self.sample.is_none()) {
            (true, true, true) => self.rows::<false, false, true>(block, from, out),
            (true, false, true) => self.rows::<false, true, true>(block, from, out),
            (false, true, true) => self.rows::<true, false, true>(block, from, out),
            (false, false, true) => self.rows::<true, true, true>(block, from, out),
            (true, true, false) => self.rows::<false, false, false>(block, from, out),
            (true, false, false) => self.rows::<false, true, false>(block, from, out),
            (false, true, false) => self.rows::<true, false, false>(block, from, out),
            (false, false, false) => self.rows::<true, true, false>(block, from, out),
        }
    }

    fn counts(&self) -> &FrontEndCounts {
        &self.counts
    }

    fn numbering(&self) -> &Numbering {
        &self.numbering
    }
}
