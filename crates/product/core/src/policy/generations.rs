//! Generations, after Linux MGLRU. Pages belong to numbered generations. Aging scans all bits and opens a new
//! generation; eviction takes pages from the oldest.
//!
//! ```text
//!     min_seq                         max_seq
//!   [ oldest ] ...   [ second ]   [ youngest ] ← loaded pages, and pages found touched at eviction
//!     │ bit clear                     ↑
//!     ▼                    aging: pages found touched, then max_seq + 1
//!   victim
//! ```
//!
//! Source: Linux 6.x `mm/vmscan.c` (Yu Zhao's multi-gen LRU); names in this file are the kernel's. What is kept:
//! - a loaded page goes to generation `max_seq` with its bit set (`lru_gen_in_fault` in `folio_add_lru`). The bit does
//!   not matter: the first aging clears it, and a page of the youngest generation stays in it either way. Hence no
//!   `insert-bit`;
//! - the two youngest generations (`MIN_NR_GENS`) are never evicted from, because "The first check clears the accessed
//!   bit from the initial fault; the second check makes sure this page hasn't been used since then". If no older
//!   generation has a page (`min_seq + MIN_NR_GENS > max_seq`), **aging** must run. If exactly one has, aging runs
//!   early if more than 1/2 of the pages are in the youngest generation or fewer than 1/4 in the oldest
//!   (`should_run_aging` of Linux 6.1 to 6.12). So there are 3 or 4 generations of some size. Without this second rule,
//!   one scan by aging would be followed at once by another;
//! - aging reads and clears the bits of all pages. Touched pages go to generation `max_seq` (`walk_mm`,
//!   `folio_update_gen`), and only then `max_seq` grows by 1 (`inc_max_seq`). So these pages are second youngest
//!   afterwards;
//! - eviction reads the bit of the oldest page of the oldest generation. A touched page goes to the youngest generation
//!   (`lru_gen_look_around`, `sort_folio`); the first untouched page is evicted;
//! - empty old generations are given up (`try_to_inc_min_seq`). At the start `max_seq` is 3 and `min_seq` 0.
//!
//! What is left out: tiers and their PID controller (they need file reads through descriptors), a second kind of
//! page, the neighbours of a touched page, and Bloom filters (they save work). Linux checks whether to age once for a
//! batch of victims; this policy checks before each page that eviction examines. Linux changes a page's generation
//! number at once, and moves the page to its list when eviction meets it. This policy moves the page at once, to the
//! young end, the oldest page first.
//!
//! The walk counts the pages that aging scans and the pages that eviction examines. In the worst case one search
//! examines all pages at eviction, finds them touched, ages twice (then no bit is set any more) and evicts: 3 frames
//! + 1 steps.
//!
//! When not to use it: if the search is not hidden and its worst case matters, since a single fault may scan all of
//! RAM (about once in as many faults as a generation has pages); and without hardware bits, where each aging unmaps
//! every page.

use alloc::boxed::Box;
use alloc::vec;

use super::{Policy, PolicySpec, Victim};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// Generations that eviction does not take from (Linux, `include/linux/mmzone.h`).
const MIN_NR_GENS: u64 = 2;
/// The largest number of generations at a time (same place).
const MAX_NR_GENS: usize = 4;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "generations",
    summary: "after Linux MGLRU: aging scans all bits into generations, the oldest is evicted from",
    source: "Linux 6.x mm/vmscan.c, multi-gen LRU",
    params: &[],
    build: |_, frames, _| Ok(Box::new(Generations::new(frames))),
    #[cfg(feature = "naive")]
    naive: |_, frames| Box::new(naive::NaiveGenerations::new(frames)),
};

/// The generations, each a list of frames from old to young.
#[derive(Debug)]
pub struct Generations {
    /// Generation `seq` is in `lists[seq % MAX_NR_GENS]`.
    lists: [List; MAX_NR_GENS],
    links: Links,
    /// The generation of each frame with a page.
    seq: Box<[u64]>,
    min_seq: u64,
    max_seq: u64,
}

fn slot(seq: u64) -> usize {
    (seq % MAX_NR_GENS as u64) as usize
}

impl Generations {
    /// For a number of frames.
    pub fn new(frames: usize) -> Generations {
        Generations {
            lists: [List::new(); MAX_NR_GENS],
            links: Links::new(frames),
            seq: vec![0; frames].into_boxed_slice(),
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1,
        }
    }

    fn join_youngest(&mut self, frame: usize) {
        self.seq[frame] = self.max_seq;
        self.lists[slot(self.max_seq)].push_tail(&mut self.links, frame);
    }

    fn leave(&mut self, frame: usize) {
        self.lists[slot(self.seq[frame])].unlink(&mut self.links, frame);
    }

    /// Gives up empty old generations.
    fn find_oldest(&mut self) {
        while self.min_seq + MIN_NR_GENS <= self.max_seq && self.lists[slot(self.min_seq)].is_empty() {
            self.min_seq += 1;
        }
    }

    /// Whether aging must run: eviction may take from no generation; or from one only, and the youngest generation has
    /// more than half of the pages, or the oldest fewer than a quarter.
    fn should_age(&self) -> bool {
        let size = |seq| self.lists[slot(seq)].len();
        match self.max_seq - self.min_seq {
            0..MIN_NR_GENS => true,
            MIN_NR_GENS => size(self.max_seq) * 2 > self.len() || size(self.min_seq) * 4 < self.len(),
            _ => false,
        }
    }

    /// Reads all bits, moves touched pages to the youngest generation, and opens the next one.
    fn age(&mut self, residents: &mut Residents<'_>) -> Walk {
        let mut walk = Walk::ZERO;
        // The youngest first, so that a page that moves there is not scanned again.
        for seq in core::iter::once(self.max_seq).chain(self.min_seq..self.max_seq) {
            let mut next = self.lists[slot(seq)].head();
            while let Some(frame) = next {
                next = self.links.next(frame);
                walk += Walk(1);
                if residents.referenced(frame.into(), After::Clear) && seq != self.max_seq {
                    self.leave(frame);
                    self.join_youngest(frame);
                }
            }
        }
        self.max_seq += 1;
        debug_assert!(self.max_seq - self.min_seq < MAX_NR_GENS as u64);
        walk
    }
}

impl Policy for Generations {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        loop {
            self.find_oldest();
            if self.should_age() {
                walk += self.age(residents);
                continue;
            }
            let frame = self.lists[slot(self.min_seq)].pop_head(&mut self.links).expect("it is not empty");
            walk += Walk(1);
            if !residents.referenced(frame.into(), After::Clear) {
                return Victim { frame: frame.into(), walk, forced: false };
            }
            self.join_youngest(frame);
        }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.join_youngest(frame.index());
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.index());
    }

    fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::vec::Vec;

    struct GenerationPage {
        number: u64,
        bit: bool,
        generation: u64,
        joined: u64,
    }

    /// No lists and no oldest generation: each page knows its generation and when it joined.
    pub struct NaiveGenerations {
        pages: Vec<GenerationPage>,
        youngest: u64,
        joins: u64,
        frames: usize,
    }

    impl NaiveGenerations {
        pub fn new(frames: usize) -> NaiveGenerations {
            NaiveGenerations { pages: Vec::new(), youngest: 3, joins: 0, frames }
        }

        fn join(&mut self, number: u64, bit: bool) {
            self.joins += 1;
            self.pages.push(GenerationPage { number, bit, generation: self.youngest, joined: self.joins });
        }

        fn age(&mut self) {
            self.pages.sort_by_key(|p| (p.generation, p.joined));
            for mut page in core::mem::take(&mut self.pages) {
                if page.bit && page.generation < self.youngest {
                    self.join(page.number, false);
                } else {
                    page.bit = false;
                    self.pages.push(page);
                }
            }
            self.youngest += 1;
        }

        fn evict(&mut self, walk: &mut u64) -> u64 {
            loop {
                let oldest = (0..self.pages.len()).min_by_key(|&i| (self.pages[i].generation, self.pages[i].joined));
                let oldest = oldest.expect("frames > 0");
                let all = self.pages.len();
                let of = |generation| self.pages.iter().filter(|p| p.generation == generation).count();
                // Eviction does not take from the youngest generation and the one before it. It also does not take
                // from a third one that is small, or if the youngest is large.
                let generation = self.pages[oldest].generation;
                let needed = generation + 2 > self.youngest;
                let ahead =
                    generation + 2 == self.youngest && (of(self.youngest) > all / 2 || of(generation) * 4 < all);
                if needed || ahead {
                    *walk += self.pages.len() as u64;
                    self.age();
                    continue;
                }
                *walk += 1;
                let page = self.pages.remove(oldest);
                if !page.bit {
                    return page.number;
                }
                self.join(page.number, false);
            }
        }
    }

    impl Naive for NaiveGenerations {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.pages.iter_mut().find(|p| p.number == page) {
                entry.bit = true;
                return Touch::Hit;
            }
            let mut walk = 0;
            let victim = (self.pages.len() == self.frames).then(|| self.evict(&mut walk));
            self.join(page, true);
            Touch::TrueFault { victim, walk, forced: false }
        }
    }
}
