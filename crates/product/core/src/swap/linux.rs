//! Linux's slot allocation as the slides describe it: the first free slot after the last one allocated. The search
//! starts again at the start of the area when it reaches the end, or when a cluster (SWAPFILE_CLUSTER, 256) of slots
//! has been allocated since the last start.
//!
//! On bare flash a slot is free when it is erased. A block's erased slots are always its last ones, so the ascending
//! search programs them in order. On a device with a translation layer a slot is free as soon as it is released.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;

/// SWAPFILE_CLUSTER, "usually 256" (slides, "main features").
pub const CLUSTER: u32 = 256;

/// Which slots of an area are in use.
#[derive(Clone, Debug)]
pub struct SlotMap {
    /// One bit for each slot, set when it is used; bits past the end are set.
    used: Box<[u64]>,
    slots: u32,
    cluster: u32,
    /// Where the search continues.
    next: u32,
    /// Slots allocated since the last start from 0.
    allocated: u32,
}

impl SlotMap {
    /// `slots` free slots.
    pub fn new(slots: u32, cluster: u32) -> SlotMap {
        let mut used = vec![0u64; (slots as usize).div_ceil(64)].into_boxed_slice();
        if !slots.is_multiple_of(64) {
            used[slots as usize / 64] = !0 << (slots % 64);
        }
        SlotMap { used, slots, cluster, next: 0, allocated: 0 }
    }

    /// Takes a free slot; `None`: there is none left.
    #[inline]
    pub fn allocate(&mut self) -> Option<u32> {
        if self.allocated >= self.cluster {
            self.restart();
        }
        let slot = match self.find(self.next) {
            Some(slot) => slot,
            None => {
                self.restart();
                self.find(0)?
            }
        };
        self.set_used(slot);
        self.next = slot + 1;
        self.allocated += 1;
        Some(slot)
    }

    fn restart(&mut self) {
        (self.next, self.allocated) = (0, 0);
    }

    fn find(&self, from: u32) -> Option<u32> {
        if from >= self.slots {
            return None;
        }
        let mut word = from as usize / 64;
        let mut free = !self.used[word] & (!0 << (from % 64));
        while free == 0 {
            word += 1;
            free = !*self.used.get(word)?;
        }
        Some(word as u32 * 64 + free.trailing_zeros())
    }

    /// The slot is used.
    pub fn set_used(&mut self, slot: u32) {
        self.used[slot as usize / 64] |= 1 << (slot % 64);
    }

    /// The slot is free again.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.used[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// An erase block is free again. If the search is within the block, it continues at the start of the block: NAND
    /// is programmed in order.
    pub fn erased(&mut self, slots: Range<u32>) {
        if slots.contains(&self.next) {
            self.next = slots.start;
        }
        slots.for_each(|slot| self.release(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The rules of the slides on a plain list.
    struct NaiveSlots {
        used: Vec<bool>,
        next: usize,
        allocated: u32,
    }

    impl NaiveSlots {
        fn allocate(&mut self, cluster: u32) -> Option<u32> {
            if self.allocated == cluster {
                (self.next, self.allocated) = (0, 0);
            }
            let free = (self.next..self.used.len()).find(|i| !self.used[*i]);
            let slot = free.or_else(|| {
                (self.next, self.allocated) = (0, 0);
                (0..self.used.len()).find(|i| !self.used[*i])
            })?;
            self.used[slot] = true;
            (self.next, self.allocated) = (slot + 1, self.allocated + 1);
            Some(slot as u32)
        }
    }

    #[test]
    fn slots_come_as_from_a_plain_list() {
        for (slots, cluster) in [(1, 1), (7, 3), (64, 5), (200, 16), (130, 256)] {
            let mut map = SlotMap::new(slots, cluster);
            let mut naive = NaiveSlots { used: vec![false; slots as usize], next: 0, allocated: 0 };
            let mut random = 12345u64;
            for _ in 0..3000 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let slot = (random >> 33) as u32 % slots;
                if random >> 62 != 0 {
                    assert_eq!(map.allocate(), naive.allocate(cluster), "{slots} slots, clusters of {cluster}");
                } else if naive.used[slot as usize] {
                    naive.used[slot as usize] = false;
                    map.release(slot);
                }
            }
        }
    }

    #[test]
    fn a_freed_slot_is_taken_after_the_last_one_or_after_a_restart() {
        let mut map = SlotMap::new(8, 4);
        assert_eq!((0..3).filter_map(|_| map.allocate()).collect::<Vec<_>>(), [0, 1, 2]);
        map.release(0);
        assert_eq!(map.allocate(), Some(3), "the search goes on from the last slot");
        assert_eq!(map.allocate(), Some(0), "four have been allocated: it starts anew");
        assert_eq!(map.allocate(), Some(4));
    }
}
