//! The pages that a hash sample keeps: those whose hash is below a threshold (SHARDS: Waldspurger, Park, Garthwaite
//! and Ahmad, "Efficient MRC construction with SHARDS", FAST 2015, section 3.1). All references to a kept page are
//! kept, so that distances are those of the whole trace times the share of pages kept.

use std::collections::BinaryHeap;

use super::compact::Page;

/// Hashes are below this: the paper's modulus P = 2^24 (section 4.1).
pub const MODULUS: u64 = 1 << 24;

/// The hash of a page, by the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub(super) fn hash((space, page): Page) -> u64 {
    let mut z = page ^ u64::from(space).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % MODULUS
}

/// Finds the threshold that keeps at most this many pages. The paper lowers the threshold as pages come (section
/// 3.2). Here the trace can be read twice, so the threshold is known beforehand, and the rate is the same from the
/// first row on.
pub(super) struct Smallest {
    pages: usize,
    /// The smallest hashes so far, one more than pages to keep.
    hashes: BinaryHeap<u64>,
}

impl Smallest {
    pub(super) fn new(pages: usize) -> Smallest {
        Smallest { pages, hashes: BinaryHeap::new() }
    }

    /// Takes a page that was not taken before.
    pub(super) fn push(&mut self, page: Page) {
        self.hashes.push(hash(page));
        if self.hashes.len() > self.pages + 1 {
            self.hashes.pop();
        }
    }

    /// Everything below is kept.
    pub(super) fn threshold(mut self) -> u64 {
        if self.hashes.len() <= self.pages {
            return MODULUS;
        }
        self.hashes.pop().unwrap_or(MODULUS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_keeps_its_share_of_pages_and_a_size_at_most_so_many() {
        let pages: Vec<Page> = (0..40_000).map(|page| (0, page)).collect();
        let below = |threshold| pages.iter().filter(|page| hash(**page) < threshold).count();
        // A tenth of 40 000 is 4000, with a standard deviation of 60.
        assert!(below(MODULUS / 10).abs_diff(4000) < 300);
        let mut smallest = Smallest::new(500);
        pages.iter().for_each(|page| smallest.push(*page));
        assert_eq!(below(smallest.threshold()), 500);
        let mut all = Smallest::new(40_000);
        pages.iter().for_each(|page| all.push(*page));
        assert_eq!(all.threshold(), MODULUS);
    }
}
