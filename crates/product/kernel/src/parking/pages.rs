//! Pages of a program's processes, as ranges of addresses in order: what SAP's prefetching list is of.
//!
//! Two looks at the page tables make a list: the pages that were in swap when the program began to run, and of those
//! the ones in RAM when it is stopped again: it had to load them, or has used what was loaded for it. Their order is
//! that of addresses; what was touched first is in `order`. The core's lists
//! (`coldframe_core::prefetch::PrefetchLists`) want each fault when it comes, and a bound at the start; the kernel's
//! record of faults (`coldframe_proc::Faults`) is read once a turn.

use std::collections::BTreeMap;
use std::ops::Range;

use coldframe_proc::{scan, Place, PAGE};

#[derive(Debug, Clone, Default)]
pub(crate) struct Pages(pub(crate) BTreeMap<u32, Vec<Range<u64>>>);

impl Pages {
    /// Those of these processes that are in this place. A process that has just ended has none.
    pub(crate) fn read(processes: &[u32], place: Place) -> Pages {
        let common = |pid: &u32| Some((*pid, scan(*pid, place).ok()?));
        Pages(processes.iter().filter_map(common).collect())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().flatten().map(|range| range.end - range.start).sum()
    }

    /// Those that are in both.
    pub(crate) fn and(&self, other: &Pages) -> Pages {
        let both = |(pid, ranges): (&u32, &Vec<_>)| Some((*pid, common(ranges, other.0.get(pid)?)));
        Pages(self.0.iter().filter_map(both).collect())
    }
}

impl Pages {
    /// Those that are in one of these.
    pub(crate) fn of_all<'a>(all: impl Iterator<Item = &'a Pages>) -> Pages {
        let mut by_process = BTreeMap::<u32, Vec<Range<u64>>>::new();
        for (pid, ranges) in all.flat_map(|pages| &pages.0) {
            by_process.entry(*pid).or_default().extend(ranges.iter().cloned());
        }
        by_process.values_mut().for_each(|ranges| *ranges = union(std::mem::take(ranges)));
        Pages(by_process)
    }
}

/// Ranges in any order, joined where they meet.
fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The parts of ranges that are in both.
pub(crate) fn common(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut common, mut i, mut j) = (Vec::new(), 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = x.start.max(y.start)..x.end.min(y.end);
        common.extend((!both.is_empty()).then_some(both));
        (i, j) = if x.end < y.end { (i + 1, j) } else { (i, j + 1) };
    }
    common
}

/// The addresses of pages to read. A page that was read looks used, so each turn one of `parts` is left out, to be
/// asked for if it is needed: an unneeded page leaves the list within `parts` turns.
pub(crate) fn but_one_part(ranges: &[Range<u64>], turn: u64, parts: u64) -> Vec<u64> {
    let pages = ranges.iter().flat_map(|range| range.clone().step_by(PAGE as usize));
    pages.filter(|page| !(page / PAGE + turn).is_multiple_of(parts)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pages(of: &BTreeSet<u32>) -> Pages {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for at in of.iter().map(|page| u64::from(*page) * PAGE) {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += PAGE,
                _ => ranges.push(at..at + PAGE),
            }
        }
        Pages(BTreeMap::from([(1, ranges)]))
    }

    /// With this many parts only the page at 0 is left out, which is not used here.
    fn listed(of: &Pages) -> BTreeSet<u32> {
        but_one_part(&of.0[&1], 0, u64::MAX).into_iter().map(|at| (at / PAGE) as u32).collect()
    }

    /// A page is on the list after a stay in which it was used, whether it came from swap or stood on the list.
    #[test]
    fn the_list_has_the_swapped_pages_that_the_last_stay_used() {
        let mut random = fastrand::Rng::with_seed(7);
        for stay in 0..50 {
            let used: BTreeSet<u32> = (0..100).map(|_| random.u32(1..300)).collect();
            let new = (300..300 + stay).chain(used.clone());
            assert_eq!(listed(&pages(&(1..300).collect()).and(&pages(&new.collect()))), used, "stay {stay}");
        }
    }

    #[test]
    fn pages_of_several_turns_are_one_list_by_process() {
        let [a, b] = [vec![0..4096, 8192..12288], vec![4096..12288, 20480..24576]];
        let all = [Pages([(1, a.clone())].into()), Pages([(1, b), (2, a.clone())].into())];
        let union = Pages::of_all(all.iter()).0;
        assert_eq!((&union[&1], &union[&2]), (&vec![0..12288, 20480..24576], &a));
    }

    #[test]
    fn each_page_is_left_out_once_in_as_many_turns_as_parts() {
        let ranges = [0..64 * PAGE, 100 * PAGE..101 * PAGE];
        let read: Vec<_> = (0..8).flat_map(|turn| but_one_part(&ranges, turn, 8)).collect();
        let times = |page: u64| read.iter().filter(|at| **at == page * PAGE).count();
        assert!((0..64).chain([100]).all(|page| times(page) == 7), "{read:?}");
    }
}
