//! Drops references that make no difference in any memory of K pages or more: Safely Allowed Drop (Kaplan,
//! Smaragdakis and Wilson, "Trace reduction for virtual memory simulations", SIGMETRICS 1999, section 3).
//!
//! Of three references to a page, t1 < t2 < t3, the middle one is dropped if fewer than K other pages are referenced
//! between t1 and t3.
//!
//! - LRU of C >= K pages: the page stays from t1 to t3, so t2 and t3 are hits with and without the drop. Another page's
//!   distance changes only if both its references are between t1 and t3, from at most K to one less: a hit before and
//!   after.
//! - OPT of C >= K pages: fewer references never cost more. Conversely, take a best plan without t2 that misses the
//!   page at t3. Among C pages, one is not referenced until t3. The plan can keep our page from t1 on instead of that
//!   one, and exchange the two at t3: this causes no more misses.
//!
//! The same holds for the string after a drop, so any number of drops is allowed. Between t1 and t3, there are at
//! most as many pages of twice the size, so the same rows serve larger pages, from K of these on.
//!
//! The row at t3 takes over the dropped row's count, and whether it wrote. LRU's dirty evictions show no difference
//! either, since the page does not leave in between. Memory: K + 1 pages and at most two rows of each.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use coldframe_store::reference::{Kind, Reference};

/// A page: address space and number.
pub(super) type Page = (u32, u64);

/// A page among the K + 1 pages touched last.
struct Recent {
    page: Page,
    /// The time of its last reference but one, in the reduced trace; `None`: there was none while the page was among
    /// these.
    before: Option<u64>,
}

/// The filter. A reference's time is its number.
pub(super) struct Compactor {
    /// K.
    pages: usize,
    /// By time: rows that may still be dropped, or that follow one that may.
    rows: BTreeMap<u64, (Page, Reference)>,
    /// By the time of their last reference.
    recent: BTreeMap<u64, Recent>,
    /// The time of the last reference to each of these.
    last: FxHashMap<Page, u64>,
    now: u64,
}

impl Compactor {
    /// For memories of `pages` pages and more.
    pub(super) fn new(pages: usize) -> Compactor {
        Compactor { pages, rows: BTreeMap::new(), recent: BTreeMap::new(), last: FxHashMap::default(), now: 0 }
    }

    /// Takes the next reference, which is on `page` alone, and hands out rows that are decided.
    pub(super) fn push(&mut self, page: Page, mut reference: Reference, out: &mut impl FnMut(Reference)) {
        if let Some(mut entry) = self.rows.last_entry() {
            let (of, row) = entry.get_mut();
            if *of == page && absorb(row, &reference) {
                return;
            }
        }
        self.now += 1;
        let before = self.take_over(page, &mut reference);
        self.rows.insert(self.now, (page, reference));
        self.recent.insert(self.now, Recent { page, before });
        self.last.insert(page, self.now);
        self.release(out);
    }

    pub(super) fn finish(self, out: &mut impl FnMut(Reference)) {
        self.rows.into_values().for_each(|(_, row)| out(row));
    }

    /// Drops the page's last row if that is allowed; `reference` then counts for it. Returns the time of the page's
    /// reference before.
    fn take_over(&mut self, page: Page, reference: &mut Reference) -> Option<u64> {
        let Some(last) = self.last.get(&page).copied() else {
            self.forget_one();
            return None;
        };
        let droppable = self.recent.get(&last).is_some_and(|recent| self.droppable(recent));
        let before = self.recent.remove(&last)?.before;
        if droppable && self.rows.get(&last).is_some_and(|(_, row)| absorb(reference, row)) {
            self.rows.remove(&last);
            return before;
        }
        Some(last)
    }

    /// Whether at most K pages, including its own, have been referenced since its last reference but one.
    fn droppable(&self, recent: &Recent) -> bool {
        let oldest = self.recent.first_key_value().filter(|_| self.recent.len() > self.pages);
        recent.before.is_some_and(|before| oldest.is_none_or(|(oldest, _)| *oldest < before))
    }

    /// Makes room for another page among the K + 1.
    fn forget_one(&mut self) {
        if self.recent.len() > self.pages {
            self.recent.pop_first().map(|(_, recent)| self.last.remove(&recent.page));
        }
    }

    /// Hands out the first rows, up to one that may still be dropped. The newest row may still take over others.
    fn release(&mut self, out: &mut impl FnMut(Reference)) {
        while self.rows.len() > 1 {
            let Some(first) = self.rows.first_entry() else { return };
            if self.recent.get(first.key()).is_some_and(|recent| self.droppable(recent)) {
                return;
            }
            self.rows.pop_first().into_iter().for_each(|(_, (_, row))| out(row));
        }
    }
}

/// Lets `row` count for `dropped`, too. Returns false if the count would overflow.
fn absorb(row: &mut Reference, dropped: &Reference) -> bool {
    let Some(count) = row.count.checked_add(dropped.count) else { return false };
    row.count = count;
    if dropped.kind == Kind::Write {
        row.kind = Kind::Write;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(pages: usize, string: &[(u64, Kind)]) -> Vec<(u64, Kind, u32)> {
        let mut out = Vec::new();
        let mut take = |row: Reference| out.push((row.address, row.kind, row.count));
        let mut compactor = Compactor::new(pages);
        for &(page, kind) in string {
            compactor.push((0, page), Reference::new(page, 1, kind), &mut take);
        }
        compactor.finish(&mut take);
        out
    }

    #[test]
    fn the_middle_of_three_is_dropped_if_fewer_than_k_other_pages_lie_around_it() {
        use Kind::{Read, Write};
        let reads = |pages: &[u64]| pages.iter().map(|page| (*page, Read)).collect::<Vec<_>>();
        let pages = |rows: Vec<(u64, Kind, u32)>| rows.into_iter().map(|row| row.0).collect::<Vec<_>>();
        // Around the second 1 is 2 only; around the second 2 are 1 and 3.
        let string = reads(&[1, 2, 1, 2, 1, 3, 2]);
        assert_eq!(pages(compacted(2, &string)), [1, 2, 2, 1, 3, 2]);
        assert_eq!(pages(compacted(3, &string)), [1, 2, 1, 3, 2]);
        assert_eq!(pages(compacted(1, &string)), [1, 2, 1, 2, 1, 3, 2]);
        let written = [(1, Read), (2, Read), (1, Write), (1, Read), (2, Read), (1, Read)];
        assert_eq!(compacted(2, &written), [(1, Read, 1), (2, Read, 1), (2, Read, 1), (1, Write, 3)]);
    }

    #[test]
    fn a_count_that_would_overflow_keeps_its_row() {
        let mut rows = 0;
        let mut compactor = Compactor::new(4);
        for _ in 0..3 {
            let row = Reference { count: u32::MAX, ..Reference::new(0, 1, Kind::Read) };
            compactor.push((0, 0), row, &mut |_| rows += 1);
        }
        compactor.finish(&mut |_| rows += 1);
        assert_eq!(rows, 3);
    }

    #[test]
    fn memory_does_not_grow_with_the_trace() {
        let mut compactor = Compactor::new(8);
        let mut most = 0;
        // A page that waits at the front for its third reference while two others alternate, and now and then a sweep.
        for round in 0..20_000u64 {
            let page = if round % 5000 == 7 { 2 } else { round % 2 };
            compactor.push((0, page), Reference::new(page, 1, Kind::Read), &mut |_| ());
            most = most.max(compactor.rows.len());
        }
        assert!(most <= 2 * 9, "{most}");
    }
}
