//! The slots that are read together with a wanted page.
//!
//! | window | slots | from |
//! |---|---|---|
//! | `Aligned` | the aligned group of 8 slots; may straddle erase blocks | Linux before 4.14, today on rotating disks |
//! | `Block` | the aligned part of 8, 16 or 32 slots of the page's erase block | LOBI |
//! | [`PageWindow`] | pages around it in its task's memory, in any slots | Linux since 4.14 on flash ("VMA-based") |
//!
//! Pages read ahead enter the swap cache of the driver.

use std::ops::Range;

use coldframe_core::swap::Swap;
use coldframe_core::SlotId;

/// The number of an area's first slot. Slot 0 of a Linux swap area has its header, which is before the first erase
/// block here. So groups of 8 slot numbers are not aligned with erase blocks, and the slides' picture shows a group
/// that straddles two blocks.
const FIRST_SLOT_NUMBER: u32 = 1;

/// A window of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// The page alone.
    Alone,
    /// Linux: an aligned group of this many slot numbers.
    Aligned(u32),
    /// LOBI: an aligned part of this many slots of the erase block.
    Block(u32),
}

impl Window {
    /// The largest number of its slots.
    pub const fn slots(self) -> u32 {
        match self {
            Window::Alone => 1,
            Window::Aligned(size) | Window::Block(size) => size,
        }
    }

    /// The slots that are read when the page in `slot` is wanted, with that slot. The caller knows which of them have a
    /// page that is not in RAM.
    pub fn around(self, slot: SlotId, swap: &Swap) -> Range<u32> {
        let area = swap.area_of(slot);
        match self {
            Window::Alone => slot.0..slot.0 + 1,
            Window::Block(size) => {
                let n = swap.slots_per_block();
                let block = slot.0 / n * n;
                let start = block + (slot.0 - block) / size * size;
                start..(start + size).min(block + n)
            }
            Window::Aligned(size) => {
                let number = slot.0 - area.start + FIRST_SLOT_NUMBER;
                let group = number / size * size;
                let start = area.start + group.saturating_sub(FIRST_SLOT_NUMBER);
                start..(area.start + group + size - FIRST_SLOT_NUMBER).min(area.end)
            }
        }
    }
}

/// Linux's window of pages around a fault, for one task: forward or backward if the last fault was on the neighbour,
/// otherwise around the fault. Its size follows the use of the last window (`__swapin_nr_pages` and
/// `swap_vma_readahead`, mm/swap_state.c, 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageWindow {
    last: u64,
    size: u32,
    hits: u32,
}

impl PageWindow {
    /// A page read ahead for this task was used. The next fault is expected next to it.
    pub fn hit(&mut self, page: u64) {
        self.last = page;
        self.hits += 1;
    }

    /// The page numbers to read for a fault on page number `page`, at most `most` of them.
    pub fn fault(&mut self, page: u64, most: u32) -> Range<u64> {
        let neighbour = page == self.last.wrapping_add(1) || page.wrapping_add(1) == self.last;
        self.size = match self.hits {
            0 if !neighbour => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        }
        .max(self.size / 2)
        .min(most)
        .max(1);
        let size = u64::from(self.size);
        let start = if page == self.last.wrapping_add(1) {
            page
        } else if page.wrapping_add(1) == self.last {
            (page + 1).saturating_sub(size)
        } else {
            page.saturating_sub((size - 1) / 2)
        };
        (self.last, self.hits) = (page, 0);
        start..start.saturating_add(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::swap::AreaConfig;

    fn two_areas() -> Swap {
        Swap::new(100, 32, &[AreaConfig::log(4); 2]).unwrap()
    }

    #[test]
    fn lobis_window_stays_within_the_erase_block_and_linuxs_straddles() {
        let swap = two_areas();
        assert_eq!(Window::Block(8).around(SlotId(33), &swap), 32..40);
        assert_eq!(Window::Block(16).around(SlotId(63), &swap), 48..64);
        assert_eq!(Window::Block(32).around(SlotId(63), &swap), 32..64);
        // Slot numbers 32 to 39 are in places 31 to 38: the last of one block and seven of the next.
        assert_eq!(Window::Aligned(8).around(SlotId(33), &swap), 31..39);
        assert_eq!(Window::Aligned(8).around(SlotId(0), &swap), 0..7);
        assert_eq!(Window::Aligned(8).around(SlotId(127), &swap), 127..128, "an area's end is not passed");
        assert_eq!(Window::Aligned(8).around(SlotId(128), &swap), 128..135, "a second area counts anew");
        assert_eq!(Window::Alone.around(SlotId(5), &swap), 5..6);
    }

    #[test]
    fn the_window_of_pages_grows_with_hits_and_turns_with_the_direction() {
        let mut w = PageWindow { last: 1000, ..PageWindow::default() };
        assert_eq!(w.fault(50, 8), 50..51, "nothing points to a neighbour");
        assert_eq!(w.fault(51, 8), 51..55, "forward");
        (52..55).for_each(|page| w.hit(page));
        assert_eq!(w.fault(55, 8), 55..63, "three hits: 5 pages, rounded to 8; forward from the last hit");
        assert_eq!(w.fault(54, 8), 51..55, "backward, half of the last window");
        assert_eq!(w.fault(500, 8), 500..502);
    }
}
