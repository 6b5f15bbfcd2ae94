//! The compressed tier in virtual time: the compressed size of each page, and the processor time.
//!
//! A trace has no bytes of its pages. So the size of a page is drawn from a distribution, by a seed and the page's
//! number. It is the same in each run and for each configuration.

use coldframe_core::{PageId, Ps, TierCounts};

/// The distribution of compressed sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Sizes in bytes, with the sum of the weights up to and including each.
    steps: Vec<(u32, u64)>,
    seed: u64,
}

impl Sizes {
    /// A distribution of sizes in bytes with their weights. `None`: every weight is zero.
    pub fn new(weights: &[(u32, u64)], seed: u64) -> Option<Sizes> {
        let mut sum = 0u64;
        let mut steps = Vec::with_capacity(weights.len());
        for (size, weight) in weights.iter().filter(|(_, weight)| *weight > 0) {
            sum = sum.checked_add(*weight)?;
            steps.push(((*size).max(1), sum));
        }
        (sum > 0).then_some(Sizes { steps, seed })
    }

    /// Every page takes this many bytes.
    pub fn all(size: u32) -> Sizes {
        Sizes { steps: vec![(size.max(1), 1)], seed: 0 }
    }

    /// The page's size.
    pub fn of(&self, page: PageId) -> u32 {
        let (last, sum) = self.steps[self.steps.len() - 1];
        if self.steps.len() == 1 {
            return last;
        }
        let draw = mixed(self.seed ^ mixed(u64::from(page.0) + 1)) % sum;
        self.steps[self.steps.partition_point(|(_, upto)| *upto <= draw)].0
    }
}

/// SplitMix64's last step (Steele, Lea, Flood, OOPSLA 2014).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Processor time of the tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierTimes {
    /// One page.
    pub compress: Ps,
    /// One page.
    pub decompress: Ps,
    /// The distribution of compressed sizes.
    pub sizes: Sizes,
}

/// The result of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierDone {
    /// In pages.
    pub counts: TierCounts,
    /// The tier's frames at the end.
    pub frames: usize,
    /// The tier's pages at the end.
    pub pages: usize,
    /// Pages that were read from the device.
    pub reads: u64,
    /// Pages that were written to the device.
    pub writes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_as_often_as_their_weights_say_and_each_page_keeps_its_own() {
        let sizes = Sizes::new(&[(8, 10), (1000, 60), (0, 0), (4096, 30)], 7).unwrap();
        let count = |size| (0..100_000).filter(|page| sizes.of(PageId(*page)) == size).count() as i64;
        // Of 100 000 draws the standard deviation is below 160.
        assert!((count(8) - 10_000).abs() < 800 && (count(1000) - 60_000).abs() < 800);
        assert_eq!(count(8) + count(1000) + count(4096), 100_000);
        assert_eq!(sizes.of(PageId(5)), sizes.clone().of(PageId(5)));
        assert_eq!(Sizes::new(&[(7, 0)], 1), None);
    }
}
