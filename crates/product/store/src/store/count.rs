//! The totals that the writer puts into the provenance.

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::reference::Kind;

/// Log2 of the granule's size: 1 KiB, the page of the smallest system that the project models.
const GRANULE_SHIFT: u32 = 10;
/// Granules per word of the set: one bit each.
const WORD_SHIFT: u32 = 6;
/// Entries of the filter in front of the set. Programs revisit few granules at a time: 4096 of them are 4 MiB of
/// memory, and the filter takes 32 KiB, a level-1 cache.
const RECENT: usize = 4096;

/// References so far, by kind, and the memory that they touched.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) rows: u64,
    /// Indexed by [`Kind`], weighted by `count`.
    kinds: [u64; 3],
    footprint: Footprint,
}

impl Totals {
    /// Adds the rows of a block that has passed the checks.
    pub(super) fn add(&mut self, block: &Block) {
        self.rows += block.len() as u64;
        if block.count().is_empty() {
            block.kind().iter().for_each(|&kind| self.kinds[kind as usize] += 1);
        } else {
            for (&kind, &count) in block.kind().iter().zip(block.count()) {
                let total = &mut self.kinds[kind as usize];
                *total = total.saturating_add(u64::from(count));
            }
        }
        for (&address, &size) in block.address().iter().zip(block.size()) {
            self.footprint.add(address >> GRANULE_SHIFT, (address + (u64::from(size) - 1)) >> GRANULE_SHIFT);
        }
    }

    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize]
    }

    pub(super) fn references(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, &kind| sum.saturating_add(kind))
    }

    pub(super) fn granules(&self) -> u64 {
        self.footprint.len()
    }
}

/// A set of granules: bit maps of 64 in a hash map, behind a filter of recently seen granules.
struct Footprint {
    /// Granule numbers by their low bits; an address has 54 bits above the granule, so all ones means empty.
    recent: Box<[u64]>,
    words: FxHashMap<u64, u64>,
}

impl Default for Footprint {
    fn default() -> Footprint {
        Footprint { recent: vec![u64::MAX; RECENT].into(), words: FxHashMap::default() }
    }
}

impl Footprint {
    #[inline]
    fn add(&mut self, first: u64, last: u64) {
        for granule in first..=last {
            let recent = &mut self.recent[granule as usize % RECENT];
            if *recent != granule {
                *recent = granule;
                *self.words.entry(granule >> WORD_SHIFT).or_default() |= 1 << (granule & 63);
            }
        }
    }

    fn len(&self) -> u64 {
        self.words.values().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;

    #[test]
    fn an_access_over_a_granule_border_touches_both_and_counts_once() {
        let mut totals = Totals::default();
        let block: Block = [
            Reference::new(1023, 2, Kind::Read),
            Reference::new(0, 1, Kind::Fetch),
            Reference { count: 5, ..Reference::new(u64::MAX - 1, 2, Kind::Write) },
        ]
        .into_iter()
        .collect();
        totals.add(&block);
        totals.add(&block);
        assert_eq!((totals.rows, totals.references(), totals.granules()), (6, 14, 3));
        assert_eq!([Kind::Fetch, Kind::Read, Kind::Write].map(|kind| totals.of(kind)), [2, 2, 10]);
    }

    #[test]
    fn an_access_that_ends_with_the_last_byte_of_memory_is_counted() {
        let mut totals = Totals::default();
        totals.add(&[Reference::new(u64::MAX - 1024, 1025, Kind::Read)].into_iter().collect());
        assert_eq!(totals.granules(), 2);
    }

    #[test]
    fn granules_that_share_a_filter_entry_are_both_kept() {
        let mut footprint = Footprint::default();
        for granule in [1, 1 + RECENT as u64, 1, 1 + RECENT as u64] {
            footprint.add(granule, granule);
        }
        assert_eq!(footprint.len(), 2);
    }
}
