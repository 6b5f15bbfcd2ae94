//! Read-ahead of pages that were evicted together: the pages in the neighbouring slots, in the same aligned block of
//! the swap area (LOBI's swap-in by blocks). Pages that left RAM together often come back together. Probes find out how
//! many.
//!
//! ```text
//!   slots of a block    a   b   c   d   e   f   g   h       a fault on d
//!   read with it        a   b       .   e   f   g   h       c is left out: the probe. If it faults before as many
//!                                                            more probes as there are have come, its block was
//!                                                            worth reading
//! ```
//! After each 64 probes the block is doubled if half of them have faulted, and halved if less than a quarter have: a
//! page that is read together with another one takes about a quarter of the time of a fault of its own (measured: 71 us
//! a page alone, 17 among eight, on a disk). So a program without such neighbours has no read-ahead, and continues to
//! be probed. No page has to be touched, or left unmapped, to find out whether it was needed.

use crate::ids::PageId;

/// Probes that are remembered.
const PROBES: usize = 64;
/// No page.
const NONE: u32 = u32::MAX;

/// The window of a machine's blocks.
#[derive(Clone)]
pub struct Neighbours {
    most: u32,
    /// Slots of a block; 1: no page is read ahead.
    window: u32,
    probes: [u32; PROBES],
    next: usize,
    hits: u32,
}

impl Neighbours {
    /// Blocks have at most `most` slots, a power of two; 0 or 1: none.
    pub fn new(most: u32) -> Neighbours {
        Neighbours { most, window: most.min(2), probes: [NONE; PROBES], next: 0, hits: 0 }
    }

    /// A true fault on `page`: the slots of its aligned block, itself among them; 0: none need be looked at.
    pub fn fault(&mut self, page: PageId) -> u32 {
        if self.most < 2 {
            return 0;
        }
        if let Some(probe) = self.probes.iter_mut().find(|probe| **probe == page.0) {
            *probe = NONE;
            self.hits += 1;
        }
        self.window.max(2)
    }

    /// Of the pages in the other slots of the block that are worth reading, those to read now. Changes their order.
    pub fn choose<'a>(&mut self, pages: &'a mut [PageId]) -> &'a [PageId] {
        let Some(others) = pages.len().checked_sub(1) else { return &[] };
        pages.swap(self.next % pages.len(), others);
        self.probes[self.next] = pages[others].0;
        self.next += 1;
        if self.next == PROBES {
            let hits = core::mem::take(&mut self.hits) as usize;
            self.next = 0;
            self.window = match hits {
                many if 2 * many >= PROBES => (2 * self.window).min(self.most),
                few if 4 * few < PROBES => (self.window / 2).max(1),
                _ => self.window,
            };
        }
        &pages[..if self.window < 2 { 0 } else { others }]
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// Pages that left in this order fault in that order; how many pages were read with faults, and how many faults.
    fn run(left: &[u32], faults: impl Iterator<Item = u32>) -> (usize, usize) {
        let (mut neighbours, mut is_in) = (Neighbours::new(8), vec![false; left.len()]);
        let (mut read, mut all) = (0, 0);
        for page in faults {
            if core::mem::take(&mut is_in[page as usize]) {
                continue;
            }
            all += 1;
            let window = neighbours.fault(PageId(page)) as usize;
            let slot = left.iter().position(|one| *one == page).unwrap();
            let block = &left[slot / window * window..][..window];
            let worth = block.iter().filter(|one| **one != page && !is_in[**one as usize]);
            let mut pages: Vec<PageId> = worth.map(|one| PageId(*one)).collect();
            let chosen = neighbours.choose(&mut pages);
            chosen.iter().for_each(|one| is_in[one.index()] = true);
            read += chosen.len();
        }
        (read, all)
    }

    #[test]
    fn pages_that_left_together_and_come_back_together_are_read_together() {
        // They left in an order of their own, and come back in it, again and again.
        let left: Vec<u32> = (0..512).map(|i| i * 77 % 512).collect();
        let (read, faults) = run(&left, left.iter().copied().cycle().take(512 * 20));
        assert!(faults < 512 * 20 / 3 && read > faults, "{read} {faults}");
    }

    #[test]
    fn pages_that_come_back_at_random_are_not() {
        let left: Vec<u32> = (0..4096).collect();
        let mut random = 1u32;
        let next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 20
        };
        let (read, faults) = run(&left, core::iter::repeat_with(next).take(20_000));
        assert!(read * 100 < faults, "{read} of {faults}");
    }

    #[test]
    fn without_blocks_nothing_is_looked_at() {
        assert_eq!(Neighbours::new(0).fault(PageId(3)), 0);
        assert_eq!(Neighbours::new(1).fault(PageId(3)), 0);
    }
}
