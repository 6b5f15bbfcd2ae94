//! Managed memory as a recording shows it. In layout-only mode, the preload library notes the calls that a pager
//! would get. It reads bytes behind the span, and the addresses encode the note. So any recorder of references keeps
//! the note in its place:
//!
//! ```text
//!   start ... start + len | 4 pages: which | 6 fields of 1024 pages: a digit each |
//!   | the program's pages | Released ...   | first page: 3 digits | last page: 3  |
//! ```
//!
//! A note is seven reads: one selects the kind, the others are the digits of the first and last page, the highest
//! digit first. The fields are small, since an emulator may keep a word for each mapped page. There is one page for
//! each value of a digit, since a recording may keep only pages.

use core::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The default start of managed memory: 2 GiB. It is low, so that addresses that language runtimes ask for are in
/// managed memory. It is above small executables that cannot be moved, their `brk` heap, and MAP_32BIT.
pub const BASE: u64 = 0x8000_0000;
/// The start of managed memory in a program that is recorded under an emulator, far from everything else. QEMU before
/// version 8.2 puts the program itself and all its mappings from 256 GiB upwards (`TASK_UNMAPPED_BASE` in its
/// `linux-user/mmap.c`), in the middle of a span that begins at `BASE`.
pub const BASE_RECORDED: u64 = 0x2000_0000_0000;
/// Values of a digit; three of them name more pages than an engine can (2^29).
const DIGIT: u64 = 1024;
const DIGITS: usize = 6;

/// A call to the pager about a range of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// The content is no longer needed.
    Released,
    /// It will be needed soon.
    WillNeed,
    /// It must stay in RAM.
    Pinned,
    /// It may leave RAM again.
    Unpinned,
}

impl Note {
    const ALL: [Note; 4] = [Note::Released, Note::WillNeed, Note::Pinned, Note::Unpinned];
}

/// Managed address space; both numbers are multiples of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// The meaning of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// Managed memory: the page, counted from the span's start.
    Page(u64),
    /// A part of a note, for [`Noted::read`].
    Note(Part),
    /// Memory that is not managed.
    Elsewhere,
}

/// A part of a note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part(u64);

impl Span {
    /// The addresses of notes.
    pub const fn notes(&self) -> Range<u64> {
        let start = self.start + self.len;
        start..start + (Note::ALL.len() as u64 + DIGITS as u64 * DIGIT) * PAGE
    }

    /// The addresses whose reads, in this order, note something of the bytes `range`, at least one.
    pub fn note(&self, note: Note, range: Range<u64>) -> [u64; 1 + DIGITS] {
        let (first, last) = ((range.start - self.start) / PAGE, (range.end - 1 - self.start) / PAGE);
        let page = |i: usize| match i {
            0 => note as u64,
            i => {
                let number = if i <= DIGITS / 2 { first } else { last };
                let digit = number / DIGIT.pow(((DIGITS - i) % (DIGITS / 2)) as u32) % DIGIT;
                Note::ALL.len() as u64 + (i as u64 - 1) * DIGIT + digit
            }
        };
        core::array::from_fn(|i| self.notes().start + page(i) * PAGE)
    }

    /// The meaning of a reference to this address.
    pub fn kind_of(&self, address: u64) -> AddressKind {
        match address.checked_sub(self.start) {
            Some(offset) if offset < self.len => AddressKind::Page(offset / PAGE),
            Some(offset) if self.notes().contains(&address) => AddressKind::Note(Part((offset - self.len) / PAGE)),
            _ => AddressKind::Elsewhere,
        }
    }
}

/// A note that is being read; one for each task.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    note: Option<Note>,
    digits: [u64; DIGITS],
    read: usize,
}

impl Noted {
    /// Takes the next part. The last part completes a note about a range of pages. Parts that do not belong together
    /// are no note.
    pub fn read(&mut self, Part(page): Part) -> Option<(Note, Range<u64>)> {
        let Some(place) = page.checked_sub(Note::ALL.len() as u64) else {
            (self.note, self.read) = (Some(Note::ALL[page as usize]), 0);
            return None;
        };
        if (place / DIGIT) as usize != self.read {
            self.note = None;
            return None;
        }
        self.digits[self.read] = place % DIGIT;
        self.read += 1;
        if self.read < DIGITS {
            return None;
        }
        let number = |digits: &[u64]| digits.iter().fold(0, |n, digit| n * DIGIT + digit);
        let (first, last) = self.digits.split_at(DIGITS / 2);
        Some((self.note.take()?, number(first)..number(last) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { start: 0x2000_0000_0000, len: (1 << 29) * PAGE };

    #[test]
    fn a_note_is_read_back_from_its_addresses() {
        let mut noted = Noted::default();
        for (i, note) in Note::ALL.into_iter().enumerate() {
            let (first, last) = (7 << (8 * i.min(2)), (1 << 29) - 1 - i as u64);
            let range = SPAN.start + first * PAGE..SPAN.start + last * PAGE + 1;
            let all = SPAN.note(note, range).map(|at| match SPAN.kind_of(at) {
                AddressKind::Note(part) => noted.read(part),
                other => panic!("{at:#x} is {other:?}"),
            });
            assert!(all[..6].iter().all(Option::is_none));
            assert_eq!(all[6], Some((note, first..last + 1)));
        }
    }

    #[test]
    fn an_address_is_a_page_a_note_or_elsewhere() {
        assert_eq!(SPAN.kind_of(SPAN.start - 1), AddressKind::Elsewhere);
        assert_eq!(SPAN.kind_of(SPAN.start + 99 * PAGE + 4095), AddressKind::Page(99));
        assert_eq!(SPAN.kind_of(SPAN.notes().end), AddressKind::Elsewhere);
        let parts = SPAN.note(Note::Pinned, SPAN.start..SPAN.start + 1);
        let mut noted = Noted::default();
        for at in [1, 2, 3, 4, 5, 6, 0, 1, 3, 4, 5, 6, 2] {
            let AddressKind::Note(part) = SPAN.kind_of(parts[at]) else { panic!("{at}") };
            assert_eq!(noted.read(part), None);
        }
    }
}
