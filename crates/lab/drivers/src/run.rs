//! A run: one trace through one front end into any number of lanes and oracles.
//!
//! Make a [`Run`], add lanes and oracles, feed it blocks until the trace or the limit ends, and take the results. Lanes
//! sit in groups of at most 16, with one page table for each group. Groups and oracles are independent, and go through
//! a block on all cores at once.

use coldframe_core::policy::Made;
use coldframe_core::{PageId, Ps};
use coldframe_store::Block;
use rayon::prelude::*;

use crate::front_end::{FrontEnd, FrontEndCounts};
use crate::oracle::{Oracle, OracleCounts};
use coldframe_lane::lane::{Lane, LaneConfig, LaneError, LaneResult};
use coldframe_lane::numbering::Numbering;
use coldframe_lane::page_table::{Masks, PageTable, LANES};
use coldframe_lane::PageRef;

/// Times of the front end's work, for the virtual clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdlePrices {
    pub instruction: Ps,
    /// Each instruction cache miss: TLB and line refill.
    pub icache_miss: Ps,
    pub reference: Ps,
    /// Each cache block read from main memory.
    pub main_read: Ps,
    /// Each cache block written to main memory.
    pub main_write: Ps,
    /// The extra time of a cache block read in place, from a buffer, over one from main memory.
    pub xip_surplus: Ps,
}

/// Why a run cannot continue.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// A lane cannot be made.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The trace has more pages than its own header says.
    #[error("the trace touches more than the {bound} pages that its header announces; import or record it again")]
    TooManyPages { bound: usize },
}

pub struct Run {
    front_end: Box<dyn FrontEnd>,
    prices: IdlePrices,
    pages: usize,
    tasks: usize,
    groups: Vec<Group>,
    oracles: Vec<Box<dyn Oracle>>,
    buffer: Vec<PageRef>,
}

struct Group {
    table: PageTable,
    masks: Masks,
    lanes: Vec<Lane>,
}

impl Run {
    /// For at most `pages` pages.
    pub fn new(front_end: Box<dyn FrontEnd>, prices: IdlePrices, pages: usize) -> Run {
        assert!(pages <= PageRef::PAGES_MAX, "{pages} pages do not fit a page reference");
        Run {
            front_end,
            prices,
            pages: pages.max(1),
            tasks: 1,
            groups: Vec::new(),
            oracles: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Adds lanes. Their results come in the same order.
    pub fn add_lanes(&mut self, configs: &[LaneConfig]) -> Result<(), RunError> {
        for configs in configs.chunks(lanes_a_group(configs.len(), rayon::current_num_threads())) {
            let lane = |(i, config)| Lane::new(config, i as u32, self.pages, self.tasks);
            let lanes = configs.iter().enumerate().map(lane).collect::<Result<Vec<_>, _>>()?;
            self.add_group(lanes, configs.iter().any(|config| config.handler.needs_xip));
        }
        Ok(())
    }

    /// Adds one lane with a policy made for its frames and the trace's pages, in place of the configuration's own.
    pub fn add_lane(
        &mut self,
        config: &LaneConfig,
        make: &mut dyn FnMut(usize, usize) -> Made,
    ) -> Result<(), RunError> {
        let policy = make(config.frames, self.pages);
        let lane = Lane::with_policy(config, policy, 0, self.pages, self.tasks)?;
        self.add_group(vec![lane], config.handler.needs_xip);
        Ok(())
    }

    fn add_group(&mut self, mut lanes: Vec<Lane>, xip: bool) {
        let mut table = PageTable::new(self.pages, lanes.len());
        if xip {
            table.count_reads();
        }
        lanes.iter_mut().for_each(|lane| lane.price_xip(self.prices.xip_surplus));
        self.groups.push(Group { masks: table.masks(), table, lanes });
    }

    pub fn add_oracle(&mut self, oracle: Box<dyn Oracle>) {
        self.oracles.push(oracle);
    }

    /// The lanes, in the order in which they were added.
    pub fn lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.groups.iter_mut().flat_map(|group| &mut group.lanes)
    }

    /// Takes the rows of a block from `from` on. Returns false if the limit is reached; nothing more is then taken.
    pub fn feed(&mut self, block: &Block, from: usize) -> Result<bool, RunError> {
        let before = *self.front_end.counts();
        let mut references = std::mem::take(&mut self.buffer);
        references.clear();
        let more = self.front_end.filter(block, from, &mut references);
        if self.front_end.numbering().count() > self.pages {
            return Err(RunError::TooManyPages { bound: self.pages });
        }
        self.references(&references, self.idle_at(&before) + self.memory_at(&before));
        self.buffer = references;
        Ok(more)
    }

    /// Takes page references that come from an earlier front end. `idle` is the time outside of faults so far.
    pub fn references(&mut self, references: &[PageRef], idle: Ps) {
        let numbers = self.front_end.numbering();
        let idle = Idle { until: idle, each: self.prices.reference };
        match (self.groups.as_mut_slice(), self.oracles.as_mut_slice()) {
            // There is nothing to share out: no other thread is woken.
            ([group], []) => group.references(references, idle, numbers),
            (groups, oracles) => {
                rayon::join(
                    || groups.par_iter_mut().for_each(|group| group.references(references, idle, numbers)),
                    || oracles.par_iter_mut().for_each(|oracle| oracle.feed(references)),
                );
            }
        }
    }

    fn idle_at(&self, counts: &FrontEndCounts) -> Ps {
        self.prices.instruction * counts.instructions
            + self.prices.icache_miss * counts.icache_misses
            + self.prices.reference * counts.references
    }

    fn memory_at(&self, counts: &FrontEndCounts) -> Ps {
        self.prices.main_read * counts.memory_reads + self.prices.main_write * counts.memory_writes
    }

    /// Time of all accesses below the caches so far, as if all were to main memory.
    pub fn memory(&self) -> Ps {
        self.memory_at(self.front_end.counts())
    }

    /// Time outside of fault handling and of priced accesses to memory so far; `None` if it has no price.
    pub fn idle(&self) -> Option<Ps> {
        (self.prices != IdlePrices::default()).then(|| self.idle_at(self.front_end.counts()))
    }

    pub fn front_end(&self) -> &FrontEndCounts {
        self.front_end.counts()
    }

    pub fn pages_touched(&self) -> usize {
        self.front_end.numbering().count()
    }

    /// The address space and the true page number of each page touched so far, by dense number.
    pub fn places(&self) -> &[(u32, u64)] {
        self.front_end.numbering().places()
    }

    /// The results of the lanes, in the order in which they were added.
    pub fn lane_results(&self) -> Vec<LaneResult> {
        self.groups.iter().flat_map(|group| group.lanes.iter().map(|lane| lane.result(&group.table))).collect()
    }

    /// The results of the oracles, in the order in which they were added.
    pub fn oracle_results(&mut self) -> Vec<Vec<OracleCounts>> {
        let pages = self.front_end.numbering().pages();
        self.oracles.iter_mut().map(|oracle| oracle.finish(&pages)).collect()
    }
}

/// Time outside of faults: until the first reference, and of each reference.
#[derive(Clone, Copy)]
struct Idle {
    until: Ps,
    each: Ps,
}

/// As few groups as hold all lanes, but one group for each thread if there are enough lanes.
fn lanes_a_group(lanes: usize, threads: usize) -> usize {
    let groups = lanes.div_ceil(LANES).max(lanes.min(threads)).max(1);
    lanes.div_ceil(groups).max(1)
}

impl Group {
    /// The hot loop: a hit in all lanes is one compare and one store.
    fn references(&mut self, references: &[PageRef], idle: Idle, numbers: &Numbering) {
        match self.table.counts_reads() {
            false => self.go_through::<false>(references, idle, numbers),
            true => self.go_through::<true>(references, idle, numbers),
        }
    }

    /// `READS`: whether reads are counted by page, for lanes that read in place.
    fn go_through<const READS: bool>(&mut self, references: &[PageRef], idle: Idle, numbers: &Numbering) {
        for (i, reference) in references.iter().enumerate() {
            if !self.table.hit(&self.masks, reference.page(), reference.kind()) {
                self.miss(*reference, idle.until + idle.each * i as u64, numbers);
            }
            if READS {
                self.table.count(*reference);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn miss(&mut self, reference: PageRef, idle: Ps, numbers: &Numbering) {
        let mut lanes = self.table.miss(&self.masks, reference.page(), reference.kind());
        let page = PageId::from(reference.page());
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            self.lanes[lane].fault(&mut self.table, page, reference.writing(), reference.quiet(), idle, Some(numbers));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lanes_a_group;

    #[test]
    fn lanes_are_spread_over_threads_and_no_group_is_too_large() {
        for (lanes, threads, expected) in
            [(0, 2, 1), (1, 8, 1), (2, 2, 1), (16, 1, 16), (16, 2, 8), (17, 1, 9), (64, 2, 16), (5, 4, 2)]
        {
            assert_eq!(lanes_a_group(lanes, threads), expected, "{lanes} lanes, {threads} threads");
        }
    }
}
