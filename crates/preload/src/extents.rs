//! Free address space, first fit. The same calls in the same order give the same addresses.

use std::collections::BTreeMap;

/// The free parts of a range, each as start and end; no two touch.
#[derive(Debug)]
pub struct Extents(BTreeMap<usize, usize>);

impl Extents {
    /// All of `start..end` is free.
    pub fn new(start: usize, end: usize) -> Extents {
        Extents(BTreeMap::from([(start, end)]))
    }

    /// Takes `len` bytes at the lowest free multiple of `align`, a power of two.
    pub fn take(&mut self, len: usize, align: usize) -> Option<usize> {
        let (start, end, at) = self.0.iter().find_map(|(&start, &end)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(len)? <= end).then_some((start, end, at))
        })?;
        self.0.remove(&start);
        self.insert(start, at);
        self.insert(at + len, end);
        Some(at)
    }

    /// Gives `start..end` back; what of it is free already stays free.
    pub fn give(&mut self, mut start: usize, mut end: usize) {
        if let Some((&s, &e)) = self.0.range(..=start).next_back() {
            if e >= start {
                (start, end) = (s, end.max(e));
            }
        }
        while let Some((&s, &e)) = self.0.range(start..=end).next() {
            end = end.max(e);
            self.0.remove(&s);
        }
        self.insert(start, end);
    }

    fn insert(&mut self, start: usize, end: usize) {
        if start < end {
            self.0.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_place_that_fits_is_taken() {
        let mut free = Extents::new(0x1000, 0x10_000);
        assert_eq!(free.take(0x1000, 0x1000), Some(0x1000));
        assert_eq!(free.take(0x2000, 0x4000), Some(0x4000));
        assert_eq!(free.take(0x2000, 0x1000), Some(0x2000));
        assert_eq!(free.take(0x2000, 0x1000), Some(0x6000));
        assert_eq!(free.take(0x10_000, 0x1000), None);
        assert_eq!(free.take(usize::MAX, 0x1000), None);
    }

    #[test]
    fn what_is_given_back_grows_together() {
        let mut free = Extents::new(0, 0x10_000);
        for _ in 0..16 {
            free.take(0x1000, 0x1000).unwrap();
        }
        assert_eq!(free.take(1, 1), None);
        for page in [3, 1, 2, 2, 5] {
            free.give(page * 0x1000, (page + 1) * 0x1000);
        }
        assert_eq!(free.0, BTreeMap::from([(0x1000, 0x4000), (0x5000, 0x6000)]));
        free.give(0, 0x10_000);
        assert_eq!(free.0, BTreeMap::from([(0, 0x10_000)]));
    }
}
