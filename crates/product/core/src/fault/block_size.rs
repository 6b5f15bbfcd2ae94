//! How many pages a block of first touches has (`fault/first_touch.rs`). The size follows the touches: it grows while
//! blocks next to each other are touched, and shrinks when touches are far from each other, or when most neighbours
//! leave as they came. After that it grows again only if many more blocks next to each other are touched, or neighbours
//! stay: as memory fills up, a random touch is next to memory in use, too.

use core::ops::Range;

use crate::ids::PageId;
use crate::page_state::{PageState, PageStates};

/// The first size of a block, and the largest, in pages.
const FIRST: u32 = 16;
const MOST: u32 = 64;
/// A block takes at most this part of RAM.
const PART: usize = 16;
/// Faults in a row with blocks next to memory in use, after which the size doubles; and faults in a row with blocks in
/// the open, after which it is halved.
const STREAK: i32 = 4;
const SCATTERED: i32 = 16;
/// Faults in a row next to memory in use, after which a size that was judged too large is tried again.
const TRIED_AGAIN: u32 = 64;
/// Neighbours after which the size is judged.
const JUDGED: u32 = 64;

/// The size of the next block, and what it follows from.
#[derive(Debug)]
pub(crate) struct FirstTouchBlocks {
    pub(crate) size: u32,
    most: u32,
    /// The largest size for now.
    bound: u32,
    /// Faults in a row next to memory in use since the bound was changed.
    row: u32,
    /// Faults in a row next to memory in use; negative: in the open.
    streak: i32,
    /// Neighbours that were looked at since the size was judged last, and those of them that had been written to.
    looked: u32,
    filled: u32,
}

fn most_of(frames: usize) -> u32 {
    let most = (frames / PART).clamp(1, MOST as usize) as u32;
    if most.is_power_of_two() {
        most
    } else {
        most.next_power_of_two() / 2
    }
}

impl FirstTouchBlocks {
    pub(crate) fn new(frames: usize) -> FirstTouchBlocks {
        let most = most_of(frames);
        FirstTouchBlocks { size: most.min(FIRST), most, bound: most, row: 0, streak: 0, looked: 0, filled: 0 }
    }

    /// RAM has this many frames from now on.
    pub(crate) fn fit(&mut self, frames: usize) {
        let (old, most) = (self.most, most_of(frames));
        self.most = most;
        self.bound = if self.bound == old { most } else { self.bound.min(most) };
        self.size = self.size.min(self.bound);
    }

    /// The block of a page.
    pub(crate) fn around(&self, page: PageId) -> Range<u32> {
        let first = page.0 / self.size * self.size;
        first..first.saturating_add(self.size)
    }

    /// A page is touched for the first time.
    pub(crate) fn fault(&mut self, page: PageId, pages: &PageStates) {
        let block = self.around(page);
        let in_use = |page: u32| pages.find(PageId(page)).is_some_and(|state| state != PageState::Untouched);
        let next_to = block.start.checked_sub(1).is_some_and(in_use) || in_use(block.end);
        self.row = if next_to { self.row + 1 } else { 0 };
        if self.row == TRIED_AGAIN {
            self.bind(2 * self.bound);
        }
        self.streak = if next_to { self.streak.max(0) + 1 } else { self.streak.min(0) - 1 };
        match self.streak {
            STREAK => self.resize(2 * self.size),
            streak if streak == -SCATTERED => self.resize(self.size / 2),
            _ => {}
        }
    }

    fn resize(&mut self, size: u32) {
        (self.size, self.streak) = (size.clamp(1, self.bound), 0);
    }

    fn bind(&mut self, bound: u32) {
        (self.bound, self.row) = (bound.clamp(1, self.most), 0);
    }

    pub(crate) fn look(&mut self, filled: bool) {
        self.looked += 1;
        self.filled += u32::from(filled);
        if self.looked == JUDGED {
            if 2 * self.filled < JUDGED {
                self.bind(self.size / 2);
                self.resize(self.bound);
            } else {
                self.bind(2 * self.bound);
            }
            (self.looked, self.filled) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FrameId;

    #[test]
    fn a_block_grows_beside_memory_in_use_and_shrinks_when_most_of_it_stays_empty() {
        let (mut blocks, mut pages) = (FirstTouchBlocks::new(4096), PageStates::new(4096));
        assert_eq!(blocks.around(PageId(21)), 16..32);
        for page in 0..1000 {
            if pages.get(PageId(page)) == PageState::Untouched {
                let block = blocks.around(PageId(page));
                blocks.fault(PageId(page), &pages);
                block.for_each(|page| pages.set(PageId(page), PageState::Resident(FrameId(0))));
            }
        }
        assert_eq!(blocks.around(PageId(100)), 64..128);
        (0..JUDGED * 2).for_each(|look| blocks.look(look % 3 == 0));
        assert_eq!(blocks.around(PageId(100)), 96..112);
        (0..SCATTERED as u32 * 4).for_each(|i| blocks.fault(PageId(2000 + 32 * i), &pages));
        assert_eq!(blocks.around(PageId(100)), 100..101);
    }

    #[test]
    fn a_size_that_was_too_large_is_tried_again_after_many_faults_next_to_memory_in_use() {
        let (mut blocks, mut pages) = (FirstTouchBlocks::new(4096), PageStates::new(4096));
        (0..4096).for_each(|page| pages.set(PageId(page), PageState::Resident(FrameId(0))));
        (0..JUDGED).for_each(|_| blocks.look(false));
        assert_eq!(blocks.size, 8);
        (1..TRIED_AGAIN).for_each(|page| blocks.fault(PageId(page), &pages));
        assert_eq!(blocks.size, 8);
        (0..2 * STREAK as u32).for_each(|page| blocks.fault(PageId(page + 64), &pages));
        assert_eq!(blocks.size, 16);
        (0..JUDGED).for_each(|_| blocks.look(true));
        (0..STREAK as u32).for_each(|page| blocks.fault(PageId(page + 64), &pages));
        assert_eq!(blocks.size, 32);
    }

    #[test]
    fn a_block_is_a_small_part_of_ram() {
        let sizes = [1, 16, 50, 300, 1024, 1 << 20].map(|frames| FirstTouchBlocks::new(frames).most);
        assert_eq!(sizes, [1, 1, 2, 16, 64, 64]);
    }
}
