//! Owners of the addresses of the managed span. Gaps between extents are free. Extents never overlap, and equal
//! neighbours are joined. The same calls in the same order give the same addresses, in the pager and in a library
//! that only lays memory out.
//!
//! ```text
//!   span.start ....................... HIGH ........................... span.end
//!   | addresses that programs ask for | what may be anywhere: first fit from HIGH on, then from the start |
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

/// Where memory goes that may be anywhere, if the span reaches this far: 1.5 TiB. Language runtimes like to ask for
/// lower addresses (Java below 32 GiB and in steps of 32 GiB up to 320 GiB, sbcl 64 GiB, GHC 264 GiB and a TiB from
/// there, Go 768 GiB).
pub const HIGH: usize = 0x180_0000_0000;

/// What the program has asked for its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// PROT_READ, PROT_WRITE, PROT_EXEC.
    pub protection: i32,
    /// mlock.
    pub locked: bool,
    /// MADV_DONTFORK: a child does not inherit it.
    pub dont_fork: bool,
    /// MADV_WIPEONFORK: a child gets zeros.
    pub wipe_on_fork: bool,
    /// MADV_DONTDUMP, which the kernel does.
    pub dont_dump: bool,
    /// MADV_MERGEABLE. It counts only where mremap moves the memory out of the span: managed pages are never merged.
    pub mergeable: bool,
    /// MADV_GUARD_INSTALL: a touch is SIGSEGV, whatever the rights. A page that is brought in would end that.
    pub guarded: bool,
    /// The program could touch it once. It counts as RAM until the engine owns the memory (`memory/kernel_owned.rs`).
    pub opened: bool,
}

impl Manner {
    /// As mmap gives it.
    pub const fn new(protection: i32) -> Manner {
        let opened = protection != 0;
        let (locked, dont_fork, wipe_on_fork, dont_dump, mergeable, guarded) =
            (false, false, false, false, false, false);
        Manner { protection, locked, dont_fork, wipe_on_fork, dont_dump, mergeable, guarded, opened }
    }
}

/// The owner of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Paged.
    Managed(Manner),
    /// A mapping that the program has put here itself: a file, shared memory. Only the kernel handles it.
    Foreign,
}

/// The extents of a span, by their addresses; all are multiples of a page.
#[derive(Debug)]
pub struct Extents {
    span: Range<usize>,
    map: BTreeMap<usize, (usize, Kind)>,
}

impl Extents {
    /// A span that is all free.
    pub fn new(span: Range<usize>) -> Extents {
        Extents { span, map: BTreeMap::new() }
    }

    /// A free place for `len` bytes at a multiple of `align`, a power of two. The place stays free.
    pub fn find(&self, len: usize, align: usize) -> Option<usize> {
        let high = if self.span.contains(&HIGH) { HIGH } else { self.span.start };
        self.fit(high, len, align).or_else(|| self.fit(self.span.start, len, align))
    }

    fn fit(&self, from: usize, len: usize, align: usize) -> Option<usize> {
        let before = self.map.range(..=from).next_back().map_or(from, |(_, (end, _))| from.max(*end));
        let mut at = before.checked_next_multiple_of(align)?;
        for (start, (end, _)) in self.map.range(before..) {
            if at.checked_add(len)? <= *start {
                return Some(at);
            }
            at = end.checked_next_multiple_of(align)?;
        }
        (at.checked_add(len)? <= self.span.end).then_some(at)
    }

    /// Whether the whole range is in the span and is free.
    pub fn is_free(&self, range: &Range<usize>) -> bool {
        let inside = self.span.start <= range.start && range.start < range.end && range.end <= self.span.end;
        inside && self.first_from(range.start).is_none_or(|(start, _)| start >= range.end)
    }

    /// The extent that holds an address.
    pub fn at(&self, address: usize) -> Option<(Range<usize>, Kind)> {
        let (start, (end, kind)) = self.map.range(..=address).next_back()?;
        (address < *end).then_some((*start..*end, *kind))
    }

    /// Start and end of the first extent that ends behind `address`.
    fn first_from(&self, address: usize) -> Option<(usize, usize)> {
        match self.at(address) {
            Some((range, _)) => Some((range.start, range.end)),
            None => self.map.range(address..).next().map(|(start, (end, _))| (*start, *end)),
        }
    }

    /// The extents in a range, cut to it, lowest first.
    pub fn within(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, Kind)> + '_ {
        let first = self.first_from(range.start).map_or(range.end, |(start, _)| start);
        self.map.range(first..range.end.max(first)).map(move |(start, (end, kind))| {
            let cut = (*start).max(range.start)..(*end).min(range.end);
            (cut, *kind)
        })
    }

    /// Sets the kind of a range, whatever it was before.
    pub fn insert(&mut self, mut range: Range<usize>, kind: Kind) {
        self.remove(range.clone());
        if range.is_empty() {
            return;
        }
        if let Some((start, (end, before))) = self.map.range(..range.start).next_back() {
            if *end == range.start && *before == kind {
                range.start = *start;
            }
        }
        if let Some((end, after)) = self.map.get(&range.end).copied() {
            if after == kind {
                self.map.remove(&range.end);
                range.end = end;
            }
        }
        self.map.insert(range.start, (range.end, kind));
    }

    /// Makes a range free; parts that are free stay so. Returns the extents that were there.
    pub fn remove(&mut self, range: Range<usize>) -> Vec<(Range<usize>, Kind)> {
        let there: Vec<_> = self.within(range.clone()).collect();
        for (part, kind) in &there {
            let (whole, _) = self.at(part.start).expect("it is there");
            self.map.remove(&whole.start);
            for rest in [whole.start..part.start, part.end..whole.end] {
                if !rest.is_empty() {
                    self.map.insert(rest.start, (rest.end, *kind));
                }
            }
        }
        there
    }

    /// Changes the manner of the managed extents in a range.
    pub fn change(&mut self, range: Range<usize>, change: impl Fn(&mut Manner)) {
        let there: Vec<_> = self.within(range).collect();
        for (part, kind) in there {
            if let Kind::Managed(mut manner) = kind {
                let opened = manner.opened;
                change(&mut manner);
                manner.opened |= opened || manner.protection != 0;
                self.insert(part, Kind::Managed(manner));
            }
        }
    }

    /// Bytes that are free.
    pub fn free(&self) -> usize {
        self.span.len() - self.map.iter().map(|(start, (end, _))| end - start).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Kind = Kind::Managed(Manner::new(3));
    const NONE: Kind = Kind::Managed(Manner::new(0));

    fn all(extents: &Extents) -> Vec<(usize, usize, Kind)> {
        extents.map.iter().map(|(start, (end, kind))| (*start, *end, *kind)).collect()
    }

    fn take(extents: &mut Extents, len: usize, align: usize) -> Option<usize> {
        let at = extents.find(len, align)?;
        extents.insert(at..at + len, PLAIN);
        Some(at)
    }

    #[test]
    fn the_lowest_place_that_fits_is_taken() {
        let mut extents = Extents::new(0x1000..0x10_000);
        let mut take = |len, align| take(&mut extents, len, align);
        assert_eq!(take(0x1000, 0x1000), Some(0x1000));
        assert_eq!(take(0x2000, 0x4000), Some(0x4000));
        assert_eq!(take(0x2000, 0x1000), Some(0x2000));
        assert_eq!(take(0x2000, 0x1000), Some(0x6000));
        assert_eq!(take(0x10_000, 0x1000), None);
        assert_eq!(take(usize::MAX, 0x1000), None);
    }

    #[test]
    fn what_may_lie_anywhere_leaves_low_addresses_to_those_who_ask_for_them() {
        let mut extents = Extents::new(0x1000..HIGH + 0x3000);
        assert_eq!(take(&mut extents, 0x2000, 0x1000), Some(HIGH));
        assert_eq!(take(&mut extents, 0x2000, 0x1000), Some(0x1000));
        assert_eq!(take(&mut extents, 0x1000, 0x1000), Some(HIGH + 0x2000));
        extents.remove(HIGH..HIGH + 0x1000);
        extents.insert(HIGH - 0x1000..HIGH + 0x1000, NONE);
        assert_eq!(extents.find(0x1000, 0x1000), Some(0x3000));
    }

    #[test]
    fn what_is_given_back_twice_is_free_once() {
        let mut extents = Extents::new(0..0x10_000);
        extents.insert(0..0x10_000, PLAIN);
        assert_eq!(extents.remove(0x3000..0x5000), [(0x3000..0x5000, PLAIN)]);
        assert_eq!(extents.remove(0x1000..0x6000), [(0x1000..0x3000, PLAIN), (0x5000..0x6000, PLAIN)]);
        assert_eq!(extents.remove(0x1000..0x6000), []);
        assert_eq!(extents.free(), 0x5000);
        assert_eq!(all(&extents), [(0, 0x1000, PLAIN), (0x6000, 0x10_000, PLAIN)]);
        assert!(
            extents.is_free(&(0x1000..0x6000)) && !extents.is_free(&(0..0x2000)) && !extents.is_free(&(0x5000..0x7000))
        );
        assert!(!extents.is_free(&(0x1000..0x1000)) && !extents.is_free(&(0xf000..0x20_000)));
    }

    #[test]
    fn neighbours_that_are_alike_are_one() {
        let mut extents = Extents::new(0..0x10_000);
        extents.insert(0x1000..0x2000, PLAIN);
        extents.insert(0x3000..0x4000, PLAIN);
        extents.insert(0x2000..0x3000, NONE);
        assert_eq!(all(&extents).len(), 3);
        extents.change(0x2000..0x3000, |manner| manner.protection = 3);
        assert_eq!(all(&extents), [(0x1000, 0x4000, PLAIN)]);
        extents.insert(0x2000..0x3000, Kind::Foreign);
        extents.change(0..0x10_000, |manner| manner.locked = true);
        let parts: Vec<_> = extents.within(0x1800..0x2800).map(|(range, _)| range).collect();
        assert_eq!(parts, [0x1800..0x2000, 0x2000..0x2800]);
        assert_eq!(extents.at(0x2fff), Some((0x2000..0x3000, Kind::Foreign)));
        assert_eq!(extents.at(0x4000), None);
    }
}
