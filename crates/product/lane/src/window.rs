//! The pages of a task that are read together with a wanted page, in any slots: Linux since 4.14 on flash
//! ("VMA-based"). Windows of slots are the core's (`coldframe_core::prefetch::Window`).
//!
//! Pages read ahead enter the swap cache of the driver.

use std::ops::Range;

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
