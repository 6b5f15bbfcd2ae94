//! A set-associative table of tags with round-robin replacement: caches and TLBs.
//!
//! Each set has one pointer. A miss fills the way at the pointer and advances it. Hits change nothing, so only the
//! order of fills matters.

#[derive(Clone, Debug)]
pub struct Cache {
    tags: Box<[u64]>,
    pointer: Box<[u8]>,
    ways: usize,
    sets_mask: u64,
}

/// Tags are line or page numbers plus one, so that 0 is an empty way.
const EMPTY: u64 = 0;

/// Keeps the entries of different address spaces apart, like an address-space number in the tag. Space 0 has plain
/// tags.
const SPACE_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Cache {
    /// `sets` must be a power of two; 1 <= `ways` <= 255.
    pub fn new(sets: usize, ways: usize) -> Cache {
        assert!(sets.is_power_of_two() && (1..=255).contains(&ways), "{sets} sets of {ways} ways");
        Cache {
            tags: vec![EMPTY; sets * ways].into_boxed_slice(),
            pointer: vec![0; sets].into_boxed_slice(),
            ways,
            sets_mask: sets as u64 - 1,
        }
    }

    /// Looks up `item` (a line or page number) of an address space. On a miss, the item is stored at the pointer.
    /// Returns whether it was there.
    #[inline]
    pub fn look_up(&mut self, space: u32, item: u64) -> bool {
        self.place(space, item).1
    }

    /// As [`look_up`](Self::look_up), with the number of the way that holds the item from now on.
    #[inline]
    pub(super) fn place(&mut self, space: u32, item: u64) -> (usize, bool) {
        let first = (item & self.sets_mask) as usize * self.ways;
        let tag = (item + 1).wrapping_add(u64::from(space).wrapping_mul(SPACE_STRIDE));
        let ways = &mut self.tags[first..][..self.ways];
        if let Some(way) = ways.iter().position(|held| *held == tag) {
            return (first + way, true);
        }
        let pointer = &mut self.pointer[(item & self.sets_mask) as usize];
        let way = usize::from(*pointer);
        ways[way] = tag;
        *pointer += 1;
        if *pointer as usize == self.ways {
            *pointer = 0;
        }
        (first + way, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_replaces_in_the_order_of_fills_whatever_was_used_last() {
        let mut cache = Cache::new(2, 2);
        // Lines 0, 2, 4 share set 0; line 1 is alone in set 1.
        let looked: Vec<bool> = [0, 2, 0, 1, 4, 2, 0, 2].map(|line| cache.look_up(0, line)).to_vec();
        assert_eq!(looked, [false, false, true, false, false, true, false, false]);
    }
}
