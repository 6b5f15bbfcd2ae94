//! The pages that a hash sample keeps: those whose hash is below a threshold (SHARDS: Waldspurger, Park, Garthwaite
//! and Ahmad, "Efficient MRC construction with SHARDS", FAST 2015, section 3.1). All references to a kept page are
//! kept, so that distances are those of the whole trace times the share of pages kept.

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

/// The threshold that keeps at most `most` of these pages. The paper lowers the threshold as pages come (section 3.2).
/// Here the trace can be read twice, so the threshold is known beforehand, and the rate is the same from the first row
/// on.
pub(super) fn threshold(pages: impl Iterator<Item = Page>, most: usize) -> u64 {
    let mut hashes: Vec<u64> = pages.map(hash).collect();
    match most < hashes.len() {
        true => *hashes.select_nth_unstable(most).1,
        false => MODULUS,
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
        assert_eq!(below(threshold(pages.iter().copied(), 500)), 500);
        assert_eq!(threshold(pages.iter().copied(), 40_000), MODULUS);
    }
}
