//! The order in which a list is loaded: what the last turn touched first comes first (SAP's order of faults), then the
//! rest by address.

use std::collections::HashSet;
use std::ops::Range;

use coldframe_proc::PAGE;

/// The pages of a list in the order of their first faults of a turn. Behind them are those of the order before that
/// were not faulted now and are still listed: a full ring misses some, and a page that was read for its program has no
/// fault.
pub(crate) fn merged(faults: Vec<u64>, before: &[u64], list: &[Range<u64>]) -> Vec<u64> {
    let listed = |page: &u64| {
        let next = list.partition_point(|range| range.end <= *page);
        list.get(next).is_some_and(|range| range.start <= *page)
    };
    let mut seen = HashSet::new();
    faults.into_iter().chain(before.iter().copied()).filter(listed).filter(|page| seen.insert(*page)).collect()
}

/// These pages as ranges, in their order, and the rest of the list, by address.
pub(crate) fn first_and_rest(order: &[u64], list: &[Range<u64>]) -> [Vec<Range<u64>>; 2] {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let mut rest = Vec::new();
    for range in list {
        let (first, end) = [range.start, range.end].map(|at| sorted.partition_point(|page| *page < at)).into();
        let mut from = range.start;
        for page in &sorted[first..end] {
            rest.extend((from < *page).then_some(from..*page));
            from = page + PAGE;
        }
        rest.extend((from < range.end).then_some(from..range.end));
    }
    [joined(order.iter().map(|page| *page..page + PAGE)), rest]
}

fn joined(pages: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(last) if last.end == page.start => last.end = page.end,
            _ => ranges.push(page),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(pages: Range<u64>) -> Range<u64> {
        pages.start * PAGE..pages.end * PAGE
    }

    fn pages(numbers: &[u64]) -> Vec<u64> {
        numbers.iter().map(|number| number * PAGE).collect()
    }

    #[test]
    fn what_faulted_now_comes_before_what_faulted_before_and_only_listed_pages_count() {
        let list = [range(2..6), range(9..10)];
        let merged = merged(pages(&[9, 1, 3, 6, 3]), &pages(&[4, 3, 8, 2]), &list);
        assert_eq!(merged, pages(&[9, 3, 4, 2]));
    }

    #[test]
    fn each_listed_page_is_loaded_once_the_ordered_ones_first() {
        let list = [range(2..6), range(9..10), range(20..24)];
        let [first, rest] = first_and_rest(&pages(&[9, 3, 4, 20, 5]), &list);
        assert_eq!(first, [range(9..10), range(3..5), range(20..21), range(5..6)]);
        assert_eq!(rest, [range(2..3), range(21..24)]);
        assert_eq!(first_and_rest(&[], &list), [vec![], list.to_vec()]);
    }
}
