//! Generations, after Linux MGLRU: pages belong to numbered generations; aging scans all bits and opens a new generation, eviction
//! takes from the oldest.
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
//! - a loaded page goes to generation `max_seq` with its bit set (`lru_gen_in_fault` in `folio_add_lru`);
//! - the two youngest generations (`MIN_NR_GENS`) are never evicted from. "The first check clears the accessed bit from the initial
//!   fault; the second check makes sure this page hasn't been used since then", hence two. When no older one holds a page
//!   (`min_seq + MIN_NR_GENS > max_seq`, `should_run_aging`) **aging** runs: all pages' bits are asked and cleared, pages found touched
//!   go to generation `max_seq` (`walk_mm`, `folio_update_gen`), and only then `max_seq` grows by 1 (`inc_max_seq`), so that they are
//!   second youngest after it;
//! - eviction asks the bit of the oldest page of the oldest generation; a page found touched goes to the youngest generation
//!   (`lru_gen_look_around`, `sort_folio`), the first untouched one leaves;
//! - empty old generations are given up (`try_to_inc_min_seq`). At the start `max_seq` is 3 and `min_seq` 0.
//!
//! What is left out: tiers and their PID controller (they need file reads through descriptors), one kind of page instead of two,
//! the neighbours of a touched page, Bloom filters (they save work, not decisions), and aging ahead of need on a heuristic of sizes,
//! which makes the number of generations 3 at most after the start, though there is room for MAX_NR_GENS = 4. Linux changes a page's
//! generation number at once and its list when eviction meets it there; we move it at once, to the young end. The aging scan's order
//! is ours: oldest generation first, within it oldest page first (Linux: by address).
//!
//! The walk counts each page that aging scans as well as those that eviction examines. In the worst case one search examines all pages
//! at eviction, finds them touched, ages twice and evicts: 3 frames + 1 steps.
//!
//! When not to use it: where the search is not hidden and its worst case matters, since a single fault may pay for scanning all of RAM
//! (once in about as many faults as a generation has pages); and without hardware bits, where each aging unmaps everything.

use alloc::boxed::Box;
use alloc::vec;

use super::{Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// Generations that eviction leaves alone (Linux, `include/linux/mmzone.h`).
const MIN_NR_GENS: u64 = 2;
/// The most generations at a time (same place).
const MAX_NR_GENS: usize = 4;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "generations",
    summary: "after Linux MGLRU: aging scans all bits into generations, the oldest is evicted from",
    source: "Linux 6.x mm/vmscan.c, multi-gen LRU",
    params: &[INSERT_BIT],
    build: |args, frames, _| Ok(Box::new(Generations::new(frames, args.bit("insert-bit")))),
    #[cfg(feature = "naive")]
    naive: |args, frames| Box::new(naive::NaiveGenerations::new(frames, args.bit("insert-bit"))),
};

/// The generations, each a list of frames from old to young.
#[derive(Debug)]
pub struct Generations {
    /// Generation `seq` is in `lists[seq % MAX_NR_GENS]`.
    lists: [List; MAX_NR_GENS],
    links: Links,
    /// The generation of each held frame.
    seq: Box<[u64]>,
    min_seq: u64,
    max_seq: u64,
    insert_bit: bool,
}

fn slot(seq: u64) -> usize {
    (seq % MAX_NR_GENS as u64) as usize
}

impl Generations {
    /// For a number of frames.
    pub fn new(frames: usize, insert_bit: bool) -> Generations {
        Generations {
            lists: [List::new(); MAX_NR_GENS],
            links: Links::new(frames),
            seq: vec![0; frames].into_boxed_slice(),
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1,
            insert_bit,
        }
    }

    fn join_youngest(&mut self, frame: usize) {
        self.seq[frame] = self.max_seq;
        self.lists[slot(self.max_seq)].push_tail(&mut self.links, frame);
    }

    fn leave(&mut self, frame: usize) {
        self.lists[slot(self.seq[frame])].unlink(&mut self.links, frame);
    }

    /// Gives up empty old generations; false: none is left that may be evicted from.
    fn find_evictable(&mut self) -> bool {
        while self.min_seq + MIN_NR_GENS <= self.max_seq && self.lists[slot(self.min_seq)].is_empty() {
            self.min_seq += 1;
        }
        self.min_seq + MIN_NR_GENS <= self.max_seq
    }

    /// Asks all bits, takes touched pages to the youngest generation, opens the next one.
    fn age(&mut self, residents: &mut Residents<'_>) -> Walk {
        let mut walk = Walk::ZERO;
        for seq in self.min_seq..=self.max_seq {
            let mut next = self.lists[slot(seq)].head();
            while let Some(frame) = next {
                // The link must be read before the frame moves. A frame that moves was in an older generation, so it would be seen
                // again at the end of the youngest, but for the bound.
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
            if !self.find_evictable() {
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

    fn insert_bit(&self) -> bool {
        self.insert_bit
    }

    fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }
}
