//! A string of page references made shorter, once for many runs: of each page, the first and the last reference in a window.
//!
//! ```text
//!   window of at most K pages:   A B A C A B A      kept:   A B . C . B A        what was written between, the last one writes
//! ```
//!
//! What is dropped lies between two references to its page with fewer than K other pages around it. That is the condition of Safely
//! Allowed Drop (Kaplan, Smaragdakis and Wilson, SIGMETRICS 1999, section 3), so that OPT and LRU of K frames and more miss as on the
//! whole string; see `trace/src/reduce/compact.rs` for why. Other policies do not: a reference bit that is cleared within a window is set
//! again at its end only. Use a shortened string to find out which configurations are worth the whole one, never for their answer.
//!
//! Call [`Shortener::push`] with each block's references, then [`Shortener::finish`]; [`Short::front_end`] plays it to a [`Run`](crate::Run).

use std::sync::Arc;

use coldframe_trace::Block;

use crate::front_end::{FrontEnd, FrontEndCounts, PageRef};
use crate::numbering::Numbering;

/// References of one block after shortening end before `end`; `rows` and `counts` are those of the trace and the front end until the end of
/// the whole block.
#[derive(Clone, Copy, Debug)]
struct Part {
    end: usize,
    rows: u64,
    counts: FrontEndCounts,
}

/// A page within a window.
#[derive(Clone, Copy)]
struct Seen {
    first: u32,
    last: u32,
    /// It was written after the first reference.
    writes: bool,
}

/// Finds windows and what to keep of them.
struct Windows {
    pages: usize,
    rows: usize,
    /// By page: the window that it was seen in last, and its place in `seen`.
    place: Vec<(u32, u32)>,
    number: u32,
    seen: Vec<Seen>,
    kept: Vec<u32>,
}

impl Windows {
    fn new(pages: usize, rows: usize) -> Windows {
        Windows { pages, rows, place: Vec::new(), number: 0, seen: Vec::new(), kept: Vec::new() }
    }

    /// Appends what is kept of `all` to `out`; a window does not go beyond its end.
    fn shorten(&mut self, all: &[PageRef], out: &mut Vec<PageRef>) {
        let mut rest = all;
        while !rest.is_empty() {
            let end = self.look(rest);
            self.keep(&rest[..end], out);
            rest = &rest[end..];
        }
    }

    /// Looks at references until the window is full, and returns how many those are.
    fn look(&mut self, all: &[PageRef]) -> usize {
        self.number += 1;
        self.seen.clear();
        for (at, reference) in all.iter().enumerate().take(self.rows) {
            let page = reference.page();
            if page >= self.place.len() {
                self.place.resize((page + 1).next_power_of_two(), (0, 0));
            }
            let (number, place) = self.place[page];
            if number == self.number {
                let seen = &mut self.seen[place as usize];
                seen.last = at as u32;
                seen.writes |= reference.writing();
                continue;
            }
            if self.seen.len() == self.pages {
                return at;
            }
            self.place[page] = (self.number, self.seen.len() as u32);
            self.seen.push(Seen { first: at as u32, last: at as u32, writes: false });
        }
        all.len().min(self.rows)
    }

    fn keep(&mut self, window: &[PageRef], out: &mut Vec<PageRef>) {
        self.kept.clear();
        for seen in &self.seen {
            self.kept.push(seen.first);
            if seen.last != seen.first {
                self.kept.push(seen.last);
            }
        }
        self.kept.sort_unstable();
        for &at in &self.kept {
            let reference = window[at as usize];
            let seen = self.seen[self.place[reference.page()].1 as usize];
            let writing = reference.writing() || (seen.last == at && seen.writes);
            out.push(PageRef::new(reference.page() as u32, writing, reference.quiet()));
        }
    }
}

/// References of a window at most: so few that a reference bit is late by no more than a small part of a memory's turn.
pub const WINDOW: usize = 4096;

/// A string without what memories of `pages` pages and more cannot tell under OPT and LRU.
pub fn shortened(string: &[PageRef], pages: usize) -> Vec<PageRef> {
    let mut out = Vec::new();
    Windows::new(pages.max(1), u32::MAX as usize).shorten(string, &mut out);
    out
}

/// Shortens a string as it comes.
pub struct Shortener {
    windows: Windows,
    references: Vec<PageRef>,
    parts: Vec<Part>,
    /// References kept at most.
    most: usize,
}

impl Shortener {
    /// Exact for OPT and LRU in memories of `pages` pages and more; gives up beyond `most` references kept.
    pub fn new(pages: usize, most: usize) -> Shortener {
        let windows = Windows::new(pages.max(1), WINDOW);
        Shortener { windows, references: Vec::new(), parts: Vec::new(), most }
    }

    /// Takes what a front end made of a block, its counts after it, and the trace's rows so far. Nothing is taken once there is too much.
    pub fn push(&mut self, references: &[PageRef], counts: &FrontEndCounts, rows: u64) {
        if self.references.len() > self.most {
            return;
        }
        self.windows.shorten(references, &mut self.references);
        self.parts.push(Part { end: self.references.len(), rows, counts: *counts });
    }

    /// The shortened string, of pages with these numbers; `None`: it is too long.
    pub fn finish(self, front_end: &dyn FrontEnd) -> Option<Short> {
        let Shortener { windows, mut references, parts, most } = self;
        if references.len() > most {
            return None;
        }
        references.shrink_to_fit();
        let numbering = Arc::new(front_end.numbering().clone());
        Some(Short { pages: windows.pages, references: references.into(), parts: parts.into(), numbering })
    }
}

/// A shortened string. Clones share it.
#[derive(Clone)]
pub struct Short {
    pages: usize,
    references: Arc<[PageRef]>,
    parts: Arc<[Part]>,
    numbering: Arc<Numbering>,
}

impl Short {
    /// OPT and LRU are exact in memories of so many pages and more.
    pub fn exact_from(&self) -> usize {
        self.pages
    }

    /// What is left.
    pub fn references(&self) -> &[PageRef] {
        &self.references
    }

    /// Blocks of the whole string.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Rows of the trace that the blocks up to this one stand for.
    pub fn rows_until(&self, part: usize) -> u64 {
        self.parts.get(part).map_or(0, |part| part.rows)
    }

    /// The front end's counts for the whole string.
    pub fn counts(&self) -> FrontEndCounts {
        self.parts.last().map(|part| part.counts).unwrap_or_default()
    }

    /// Different pages touched.
    pub fn pages_touched(&self) -> usize {
        self.numbering.count()
    }

    /// Plays it: each call of `filter` gives what is left of one block, whatever block it is given.
    pub fn front_end(&self) -> Box<dyn FrontEnd> {
        Box::new(Player { short: self.clone(), next: 0, counts: FrontEndCounts::default() })
    }
}

struct Player {
    short: Short,
    next: usize,
    counts: FrontEndCounts,
}

impl FrontEnd for Player {
    fn filter(&mut self, _: &Block, _: usize, out: &mut Vec<PageRef>) -> bool {
        let Some(part) = self.short.parts.get(self.next) else { return false };
        let begin = self.next.checked_sub(1).map_or(0, |before| self.short.parts[before].end);
        out.extend_from_slice(&self.short.references[begin..part.end]);
        self.counts = part.counts;
        self.next += 1;
        self.next < self.short.parts.len()
    }

    fn counts(&self) -> &FrontEndCounts {
        &self.counts
    }

    fn numbering(&self) -> &Numbering {
        &self.short.numbering
    }

    fn needs_exact(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(pages: &[(u32, bool)]) -> Vec<PageRef> {
        pages.iter().map(|(page, writing)| PageRef::new(*page, *writing, false)).collect()
    }

    #[test]
    fn the_first_and_the_last_reference_in_a_window_stay_and_the_last_writes_what_was_written_between() {
        let reads = |pages: &[u32]| string(&pages.iter().map(|page| (*page, false)).collect::<Vec<_>>());
        assert_eq!(shortened(&reads(&[0, 1, 0, 2, 0, 1, 0]), 3), reads(&[0, 1, 2, 1, 0]));
        // Two pages a window: 0 1 0 | 2 0 | 1 0.
        assert_eq!(shortened(&reads(&[0, 1, 0, 2, 0, 1, 0]), 2), reads(&[0, 1, 0, 2, 0, 1, 0]));
        let written = string(&[(0, false), (0, true), (1, false), (0, false)]);
        assert_eq!(shortened(&written, 2), string(&[(0, false), (1, false), (0, true)]));
    }
}
