//! Managed memory as a recording shows it. Addresses behind the span encode which memory the program has released, so
//! that any trace of references keeps the release in its place:
//!
//! ```text
//!   start ... start + len | 4 pages: the first | 6 fields of 1024 pages: a digit each |
//!   | the program's pages | begins a release   | first page: 3 digits | last page: 3  |
//! ```
//!
//! A release is seven reads: one begins it, the others are the digits of the first and last page, the highest digit
//! first. There is one page for each value of a digit, since a trace may keep only pages. The other three of the four
//! pages are not used.

use core::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The default start of managed memory: 2 GiB. It is low, so that addresses that language runtimes ask for are in
/// managed memory. It is above small executables that cannot be moved, their `brk` heap, and MAP_32BIT.
pub const BASE: u64 = 0x8000_0000;
/// The start of managed memory in a program that is recorded, or that has something at [`BASE`]: far from all else.
pub const BASE_RECORDED: u64 = 0x2000_0000_0000;
/// Values of a digit; three of them name more pages than an engine can (2^29).
const DIGIT: u64 = 1024;
const DIGITS: usize = 6;

/// Pages that can begin a note.
const BEGIN: u64 = 4;

/// Managed address space; both numbers are multiples of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// What an address stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// Managed memory: the page, counted from the span's start.
    Page(u64),
    /// A part of a release, for [`ReleaseReader::read`].
    Release(Part),
    /// Memory that is not managed.
    Elsewhere,
}

/// A part of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part(u64);

impl Span {
    /// The addresses of releases.
    const fn releases(&self) -> Range<u64> {
        let start = self.start + self.len;
        start..start + (BEGIN + DIGITS as u64 * DIGIT) * PAGE
    }

    /// The addresses whose reads, in this order, say that the bytes `range`, at least one, were released.
    pub fn release(&self, range: Range<u64>) -> [u64; 1 + DIGITS] {
        let (first, last) = ((range.start - self.start) / PAGE, (range.end - 1 - self.start) / PAGE);
        let page = |i: usize| match i {
            0 => 0,
            i => {
                let number = if i <= DIGITS / 2 { first } else { last };
                let digit = number / DIGIT.pow(((DIGITS - i) % (DIGITS / 2)) as u32) % DIGIT;
                BEGIN + (i as u64 - 1) * DIGIT + digit
            }
        };
        core::array::from_fn(|i| self.releases().start + page(i) * PAGE)
    }

    /// What this address stands for.
    pub fn kind_of(&self, address: u64) -> AddressKind {
        match address.checked_sub(self.start) {
            Some(offset) if offset < self.len => AddressKind::Page(offset / PAGE),
            Some(offset) if self.releases().contains(&address) => {
                AddressKind::Release(Part((offset - self.len) / PAGE))
            }
            _ => AddressKind::Elsewhere,
        }
    }
}

/// Reads releases; one for each task.
#[derive(Clone, Debug, Default)]
pub struct ReleaseReader {
    begun: bool,
    digits: [u64; DIGITS],
    read: usize,
}

impl ReleaseReader {
    /// Takes the next part. The last part completes the released pages. Parts that do not belong together are no
    /// release.
    pub fn read(&mut self, Part(page): Part) -> Option<Range<u64>> {
        let Some(place) = page.checked_sub(BEGIN) else {
            (self.begun, self.read) = (page == 0, 0);
            return None;
        };
        if !self.begun || (place / DIGIT) as usize != self.read {
            self.begun = false;
            return None;
        }
        self.digits[self.read] = place % DIGIT;
        self.read += 1;
        if self.read < DIGITS {
            return None;
        }
        self.begun = false;
        let number = |digits: &[u64]| digits.iter().fold(0, |n, digit| n * DIGIT + digit);
        let (first, last) = self.digits.split_at(DIGITS / 2);
        Some(number(first)..number(last) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { start: 0x2000_0000_0000, len: (1 << 29) * PAGE };

    #[test]
    fn a_release_is_read_back_from_its_addresses() {
        let mut reader = ReleaseReader::default();
        for (first, last) in [(7, 8), (7 << 8, (1 << 29) - 1), (7 << 16, 7 << 16)] {
            let range = SPAN.start + first * PAGE..SPAN.start + last * PAGE + 1;
            let all = SPAN.release(range).map(|at| match SPAN.kind_of(at) {
                AddressKind::Release(part) => reader.read(part),
                other => panic!("{at:#x} is {other:?}"),
            });
            assert!(all[..6].iter().all(Option::is_none));
            assert_eq!(all[6], Some(first..last + 1));
        }
    }

    #[test]
    fn parts_in_another_order_are_no_release() {
        assert_eq!(SPAN.kind_of(SPAN.start - 1), AddressKind::Elsewhere);
        assert_eq!(SPAN.kind_of(SPAN.start + 99 * PAGE + 4095), AddressKind::Page(99));
        assert_eq!(SPAN.kind_of(SPAN.releases().end), AddressKind::Elsewhere);
        let parts = SPAN.release(SPAN.start..SPAN.start + 1);
        let mut reader = ReleaseReader::default();
        for at in [1, 2, 3, 4, 5, 6, 0, 1, 3, 4, 5, 6, 2] {
            let AddressKind::Release(part) = SPAN.kind_of(parts[at]) else { panic!("{at}") };
            assert_eq!(reader.read(part), None);
        }
    }
}
