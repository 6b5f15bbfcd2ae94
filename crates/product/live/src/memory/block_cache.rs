//! Blocks that the program has freed and may soon want again. Their mappings stay, and their content is of no use, so
//! their pages are the first to leave, without a write (`region/block_cache.rs`).

use std::ops::Range;

/// The longest block, and the most bytes and blocks together: glibc keeps as much (`M_MMAP_THRESHOLD` and
/// `M_TRIM_THRESHOLD` grow to 32 and 64 MiB).
const LONGEST: usize = 32 << 20;
const MOST: usize = 64 << 20;
const BLOCKS: usize = 16;
/// A block is given back after this time, when the next one is freed or wanted.
const AGE_NS: u64 = 1_000_000_000;
/// A block serves a wish that is smaller by up to this part.
const SMALLER: usize = 8;

#[derive(Debug)]
struct Block {
    range: Range<usize>,
    since: u64,
    /// Its pages may be in RAM.
    full: bool,
}

/// The oldest block is the first.
#[derive(Debug)]
pub struct BlockCache(Vec<Block>);

impl Default for BlockCache {
    fn default() -> BlockCache {
        BlockCache(Vec::with_capacity(BLOCKS))
    }
}

impl BlockCache {
    /// Whether a block of this length may be cached, when all that [`BlockCache::overdue`] returns has been given back.
    pub fn takes(len: usize) -> bool {
        len <= LONGEST
    }

    pub fn add(&mut self, range: Range<usize>, since: u64, full: bool) {
        self.0.push(Block { range, since, full });
    }

    /// The newest block that serves, and takes it out.
    pub fn take(&mut self, len: usize, align: usize) -> Option<Range<usize>> {
        let fits = |block: &Block| {
            let has = block.range.len();
            len <= has && has - has / SMALLER <= len && block.range.start.is_multiple_of(align)
        };
        let found = self.0.iter().rposition(fits)?;
        Some(self.0.remove(found).range)
    }

    /// The oldest block if it is too old, or if there is no room for another one of `more` bytes.
    pub fn overdue(&mut self, now: u64, more: usize) -> Option<Range<usize>> {
        let bytes = self.0.iter().map(|block| block.range.len()).sum::<usize>();
        let old = now.saturating_sub(self.0.first()?.since) > AGE_NS;
        (old || bytes + more > MOST || self.0.len() == BLOCKS).then(|| self.0.remove(0).range)
    }

    pub fn oldest(&mut self) -> Option<Range<usize>> {
        (!self.0.is_empty()).then(|| self.0.remove(0).range)
    }

    /// The oldest block with pages in RAM. It is taken out.
    pub fn oldest_full(&mut self) -> Option<(Range<usize>, u64)> {
        let found = self.0.iter().position(|block| block.full)?;
        let Block { range, since, .. } = self.0.remove(found);
        Some((range, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_block_serves_the_next_wish_of_about_its_size() {
        let mut cache = BlockCache::default();
        cache.add(0..16 * MIB, 1, true);
        cache.add(64 * MIB..80 * MIB, 2, false);
        assert_eq!(cache.take(17 * MIB, 1), None);
        assert_eq!(cache.take(13 * MIB, 1), None);
        assert_eq!(cache.take(15 * MIB, 1), Some(64 * MIB..80 * MIB), "the newest");
        assert_eq!((cache.oldest_full(), cache.oldest_full()), (Some((0..16 * MIB, 1)), None));
    }

    #[test]
    fn the_cache_has_a_bound_and_an_age() {
        let mut cache = BlockCache::default();
        assert!(BlockCache::takes(32 * MIB) && !BlockCache::takes(33 * MIB));
        (0..4).for_each(|i| cache.add(i * 16 * MIB..(i + 1) * 16 * MIB, i as u64, true));
        assert_eq!(cache.overdue(AGE_NS, 0), None);
        assert_eq!(cache.overdue(4, 16 * MIB), Some(0..16 * MIB));
        assert_eq!(cache.overdue(4, 16 * MIB), None);
        assert_eq!(cache.overdue(AGE_NS + 2, 0), Some(16 * MIB..32 * MIB));
    }
}
