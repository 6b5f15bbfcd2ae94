//! OPT (Belady's MIN) evicts the page whose next reference is farthest away. It needs the whole string before it
//! starts.
//!
//! There is no bypass: the page just loaded may be the victim of the next fault, but not of its own. Ties are between
//! pages that are never referenced again; OPT evicts the largest page number. Ties do not affect misses, but do affect
//! dirty evictions.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::{Oracle, OracleCounts, OracleSpec};
use coldframe_lane::PageRef;

pub const SPEC: OracleSpec = OracleSpec {
    name: "opt",
    summary: "the page used farthest in the future leaves: the least faults there can be",
    source: "Belady 1966 (MIN); Mattson et al. 1970",
    build: |frames| Box::new(Opt { frames: frames.to_vec(), string: Vec::new() }),
};

const NEVER: u64 = u64::MAX;

/// The string, as received so far.
pub struct Opt {
    frames: Vec<usize>,
    string: Vec<PageRef>,
}

impl Opt {
    fn run(&self, frames: usize, next: &[u64], pages: &[u64]) -> OracleCounts {
        let mut counts = OracleCounts::default();
        let mut resident: BTreeSet<(u64, u64, u32)> = BTreeSet::new();
        // For each page, `stands` is its next reference as in `resident`, or 0 if it is not resident. Bit 0 of `state`:
        // dirty; bit 1: seen.
        let mut stands = vec![0u64; pages.len()];
        let mut state = vec![0u8; pages.len()];
        for (reference, &next) in self.string.iter().zip(next) {
            let page = reference.page();
            if stands[page] != 0 {
                resident.remove(&(stands[page], pages[page], page as u32));
            } else {
                counts.true_faults += 1;
                counts.cold_faults += u64::from(state[page] & 2 == 0);
                if resident.len() == frames {
                    let (_, _, victim) = resident.pop_last().expect("frames > 0");
                    counts.evictions += 1;
                    counts.dirty_evictions += u64::from(state[victim as usize] & 1);
                    stands[victim as usize] = 0;
                    state[victim as usize] &= !1;
                }
            }
            state[page] |= 2 | u8::from(reference.writing());
            stands[page] = next;
            resident.insert((next, pages[page], page as u32));
        }
        counts
    }
}

impl Oracle for Opt {
    fn feed(&mut self, references: &[PageRef]) {
        self.string.extend_from_slice(references);
    }

    fn finish(&mut self, pages: &[u64]) -> Vec<OracleCounts> {
        // Positions start at 1, so 0 can mean "not resident".
        let mut later = vec![NEVER; pages.len()];
        let mut next = vec![NEVER; self.string.len()];
        for (i, reference) in self.string.iter().enumerate().rev() {
            next[i] = std::mem::replace(&mut later[reference.page()], i as u64 + 1);
        }
        self.frames.par_iter().map(|&frames| self.run(frames, &next, pages)).collect()
    }
}
