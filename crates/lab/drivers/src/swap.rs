//! A swap area driven by a swap trace alone: where pages go, which pages are read for them, and how the flash wears.
//!
//! The trace's kernel has decided which pages leave RAM and which are touched. The area decides the rest again. A slot
//! number of the trace is only the name of a copy. What a trace does not say follows from its rows:
//!
//! - Touches are its `fault` rows; if it has none, its `in` rows that are not marked as read ahead.
//! - A page leaves RAM with its `evict` row; in a trace without any, with its `out` row.
//! - A copy dies with its `free` row ([`Keep::Trace`]), when it is touched ([`Keep::UntilTouched`]: the slides'
//!   "swap-in makes the slot invalid"), or when it is read, also by read-ahead ([`Keep::UntilRead`]). A page that then
//!   leaves RAM clean has no copy any more and is written once more than in the trace.
//! - An area that is full leaves the page in RAM.

use coldframe_core::swap::{AreaConfig, SwapCounts, SwapError};
use coldframe_core::{PageId, Ps};
use coldframe_formats::swap::{SwapEvent, SwapOp, SwapTrace};

use coldframe_lane::faulty::Failures;

pub mod cache;
mod neighbours;
mod store;

use cache::{CacheCounts, SwapCache};
use coldframe_core::prefetch::Window;
use neighbours::Neighbours;
use store::Store;

/// The pages that are read together with a wanted page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAhead {
    Slots(Window),
    /// Neighbouring pages of the same task, at most this many.
    Pages(u32),
}

/// When the copy of a page is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Trace,
    UntilTouched,
    /// When its page is read, as the wanted page or ahead: the slides list read-ahead under "swap slot release". A page
    /// that was read ahead is then in RAM without a copy, and nothing limits the number of such pages.
    /// [`CacheCounts::held_max`] is their largest number.
    UntilRead,
}

#[derive(Clone, Debug)]
pub struct SwapConfig {
    pub areas: Vec<AreaConfig>,
    pub slots_per_block: u32,
    /// Whether the device hides its erase blocks behind a translation layer.
    pub translation: bool,
    /// Whether a device with a translation layer is told of each freed slot (discard).
    pub discard: bool,
    pub read_ahead: ReadAhead,
    pub cache: usize,
    pub keep: Keep,
    /// Programs, copies and erases that fail.
    pub failures: Option<Failures>,
}

#[derive(Clone, Debug, Default)]
pub struct SwapResult {
    /// Pages that left RAM with a write.
    pub swap_outs: u64,
    /// Pages that could not leave RAM, since the area was full.
    pub refused: u64,
    /// Touches of pages that had left the page table.
    pub touches: u64,
    /// Of these, pages still in RAM.
    pub in_ram: u64,
    /// Touches that waited for a read.
    pub demand_reads: u64,
    /// Slots read: wanted ones and those read ahead. The slides' "read count".
    pub reads: u64,
    /// Outcomes of the pages that were read ahead.
    pub cache: CacheCounts,
    pub flash: SwapCounts,
    pub erases: Vec<u32>,
    pub copies_max: u64,
    pub duration_ns: u64,
    /// Events of slots without an earlier swap-out.
    pub unknown: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Never swapped out, or released.
    Unknown,
    Ram,
    Flash,
    SwapCache,
}

pub struct SwapRun {
    store: Store,
    cache: SwapCache,
    at: Vec<Where>,
    neighbours: Neighbours,
    keep: Keep,
    touch: SwapOp,
    evict_rows: bool,
    copies: u64,
    result: SwapResult,
    wanted: Vec<PageId>,
}

impl SwapRun {
    /// Empty areas for the slots of a trace.
    pub fn new(config: &SwapConfig, trace: &SwapTrace) -> Result<SwapRun, SwapError> {
        let pages = trace.slots().max(1);
        Ok(SwapRun {
            store: Store::new(config, pages)?,
            // A page without a copy cannot be dropped.
            cache: SwapCache::new(pages, if config.keep == Keep::UntilRead { pages } else { config.cache }),
            at: vec![Where::Unknown; pages],
            neighbours: Neighbours::new(config.read_ahead, pages),
            keep: config.keep,
            touch: if trace.has(SwapOp::Fault) { SwapOp::Fault } else { SwapOp::In },
            evict_rows: trace.has(SwapOp::Evict),
            copies: 0,
            result: SwapResult { duration_ns: trace.duration_ns(), ..SwapResult::default() },
            wanted: Vec::with_capacity(256),
        })
    }

    /// Keeps a journal from now on. Call it before the first event.
    pub fn keep_journal(&mut self, config: &SwapConfig) {
        self.store.keep_journal(config);
    }

    /// Takes the part of the journal that is new; empty without a journal.
    pub fn drain_journal(&mut self) -> Vec<u8> {
        self.store.drain_journal()
    }

    #[inline]
    pub fn event(&mut self, event: &SwapEvent) {
        self.store.set_time(Ps(event.time_ns.saturating_mul(1_000)));
        let page = PageId(event.slot);
        match event.op {
            SwapOp::Out => self.out(page, event),
            SwapOp::Evict => self.evict(page, event),
            SwapOp::Free => self.free(page),
            op if op == self.touch && event.flag != b'r' => self.touch(page),
            SwapOp::In | SwapOp::Fault => {}
        }
    }

    fn out(&mut self, page: PageId, event: &SwapEvent) {
        self.leave_cache(page);
        self.neighbours.learn(page, event);
        self.store.log_of(event.pid);
        self.at[page.index()] = Where::Ram;
        self.write(page);
        if !self.evict_rows {
            self.leave_ram(page);
        }
    }

    fn write(&mut self, page: PageId) {
        let had = self.store.holds(page);
        if self.store.swap_out(page).is_ok() {
            self.result.swap_outs += 1;
            self.copies += u64::from(!had);
            self.result.copies_max = self.result.copies_max.max(self.copies);
        } else {
            self.result.refused += 1;
            // The copy in this slot is not the newest.
            self.release(page);
        }
    }

    fn leave_ram(&mut self, page: PageId) {
        if self.store.holds(page) {
            self.at[page.index()] = Where::Flash;
        }
    }

    fn evict(&mut self, page: PageId, event: &SwapEvent) {
        match self.at[page.index()] {
            Where::Unknown => self.result.unknown += 1,
            Where::Flash => {}
            Where::SwapCache if self.store.holds(page) => {}
            Where::Ram | Where::SwapCache => {
                self.leave_cache(page);
                // The page leaves clean in the trace, but its copy here was released when it was touched, or never
                // existed.
                if event.flag == b'c' && !self.store.holds(page) {
                    self.write(page);
                }
                self.leave_ram(page);
            }
        }
    }

    fn free(&mut self, page: PageId) {
        self.leave_cache(page);
        self.neighbours.forget(page);
        self.result.unknown += u64::from(self.at[page.index()] == Where::Unknown);
        self.at[page.index()] = Where::Unknown;
        self.release(page);
    }

    fn release(&mut self, page: PageId) {
        if self.store.holds(page) {
            self.copies -= 1;
            self.store.release(page);
        }
    }

    fn leave_cache(&mut self, page: PageId) {
        if self.at[page.index()] == Where::SwapCache {
            self.cache.drop_unused(page);
            self.at[page.index()] = if self.store.holds(page) { Where::Flash } else { Where::Ram };
        }
    }

    fn touch(&mut self, page: PageId) {
        let at = self.at[page.index()];
        if at == Where::Unknown {
            self.result.unknown += 1;
            return;
        }
        self.result.touches += 1;
        match at {
            Where::Flash => self.swap_in(page),
            Where::SwapCache => {
                self.cache.take(page);
                self.neighbours.hit(page);
            }
            Where::Ram | Where::Unknown => self.result.in_ram += 1,
        }
        self.at[page.index()] = Where::Ram;
        if self.keep != Keep::Trace {
            self.release(page);
        }
    }

    /// Reads the page, and the pages around it that are on flash only.
    fn swap_in(&mut self, page: PageId) {
        self.result.demand_reads += 1;
        self.result.reads += 1;
        self.at[page.index()] = Where::Ram;
        self.wanted.clear();
        self.neighbours.of(page, &self.store, &mut self.wanted);
        for i in 0..self.wanted.len() {
            let other = self.wanted[i];
            if self.at[other.index()] == Where::Flash {
                self.result.reads += 1;
                self.at[other.index()] = Where::SwapCache;
                let dropped = self.cache.insert(other);
                dropped.into_iter().for_each(|page| self.at[page.index()] = Where::Flash);
                if self.keep == Keep::UntilRead {
                    self.release(other);
                }
            }
        }
    }

    pub fn result(&self) -> SwapResult {
        let swap = self.store.swap();
        SwapResult {
            cache: *self.cache.counts(),
            flash: *swap.counts(),
            erases: swap.erases().collect(),
            ..self.result.clone()
        }
    }

    /// Checks the area's invariants; for tests.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.store.swap().check();
        let held = self.at.iter().filter(|at| **at == Where::SwapCache).count();
        assert_eq!(held, self.cache.len(), "a page is in the swap cache and elsewhere");
        let lost = (0..self.at.len()).map(PageId::from).filter(|p| match self.at[p.index()] {
            Where::Flash => !self.store.holds(*p),
            Where::SwapCache => self.store.holds(*p) == (self.keep == Keep::UntilRead),
            Where::Unknown | Where::Ram => false,
        });
        assert_eq!(lost.count(), 0, "a page is nowhere");
    }
}

/// Runs a whole trace.
pub fn run(config: &SwapConfig, trace: &SwapTrace) -> Result<SwapResult, SwapError> {
    let mut run = SwapRun::new(config, trace)?;
    trace.events.iter().for_each(|event| run.event(event));
    Ok(run.result())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::prefetch::Window;

    fn config(keep: Keep) -> SwapConfig {
        SwapConfig {
            areas: vec![AreaConfig::log(8)],
            slots_per_block: 32,
            translation: false,
            discard: false,
            read_ahead: ReadAhead::Slots(Window::Block(8)),
            cache: 1024,
            keep,
            failures: None,
        }
    }

    fn events(ops: &[(SwapOp, u32)]) -> SwapTrace {
        let event = |(op, slot): &(SwapOp, u32)| SwapEvent {
            time_ns: 0,
            page_number: u64::from(*slot),
            slot: *slot,
            pid: 1,
            op: *op,
            flag: 0,
            kind: [0; 3],
        };
        SwapTrace { events: ops.iter().map(event).collect(), ..SwapTrace::default() }
    }

    /// Eight pages leave. The first comes back, and seven are read with it. Under `UntilRead` no slot has a copy then;
    /// under `UntilTouched` seven have. The second page is a hit in both cases; when it leaves again, it must be
    /// written in both.
    #[test]
    fn a_read_of_a_window_frees_its_slots_and_a_later_touch_is_a_hit() {
        for (keep, copies) in [(Keep::UntilRead, 0), (Keep::UntilTouched, 7)] {
            let outs: Vec<_> = (0..8).map(|slot| (SwapOp::Out, slot)).collect();
            let trace = events(&[&outs[..], &[(SwapOp::In, 0), (SwapOp::In, 1), (SwapOp::Out, 1)]].concat());
            let mut run = SwapRun::new(&config(keep), &trace).unwrap();
            trace.events[..9].iter().for_each(|event| run.event(event));
            run.check();
            assert_eq!(run.copies, copies, "{keep:?}");
            trace.events[9..].iter().for_each(|event| run.event(event));
            run.check();
            let r = run.result();
            assert_eq!((r.reads, r.demand_reads, r.cache.hits, r.swap_outs), (8, 1, 1, 9), "{keep:?}");
        }
    }
}
