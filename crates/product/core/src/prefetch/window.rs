//! The slots of a swap area that are read together with a wanted page.
//!
//! | window | slots | from |
//! |---|---|---|
//! | `Aligned` | the aligned group of 8 slots; may straddle erase blocks | Linux before 4.14, today on rotating disks |
//! | `Block` | the aligned part of 8, 16 or 32 slots of the page's erase block | LOBI |

use core::ops::Range;

use crate::ids::SlotId;
use crate::swap::Swap;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swap::AreaConfig;

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
}
