//! Shortens a string of page references, once for many runs: of each page, it keeps the first and the last reference in
//! a window.
//!
//! ```text
//!   window of at most K pages:   A B A C A B A      kept:   A B . C . B A
//!                                                        the last one writes if a dropped one wrote
//! ```
//!
//! A dropped reference is between two references to its page with fewer than K other pages between them. This is the
//! condition of Safely Allowed Drop (Kaplan, Smaragdakis and Wilson, SIGMETRICS 1999, section 3), so OPT and LRU with K
//! frames or more miss as on the whole string:
//!
//! - LRU: the page stays from its first to its last reference, so what follows is a hit with and without the drop.
//!   Another page's distance changes only if both its references are between those two, from at most K to one less: a
//!   hit too.
//! - OPT: fewer references never cost more. Conversely, take a best plan without the dropped reference that misses the
//!   page at the last one. Among K pages, one is not referenced until then: the plan can keep our page instead of that
//!   one, and exchange the two at the end, with no more misses.
//!
//! Other policies may miss otherwise: a reference bit that is cleared within a window is set again only at the window's
//! end. Use a shortened string to find the configurations that are worth a run of the whole string, never for their
//! answer.
//!
//! Call [`Shortener::push`] with each block's references, then [`Shortener::finish`]; [`Short::front_end`] plays it to
//! a [`Run`](crate::Run).

use std::sync::Arc;

use coldframe_store::Block;

use crate::front_end::{FrontEnd, FrontEndCounts};
use coldframe_lane::numbering::Numbering;
use coldframe_lane::PageRef;

/// The references of one block after shortening end before `end`. `rows` and `counts` are those of the trace and of the
/// front end at the end of the whole block.
#[derive(Clone, Copy, Debug)]
struct Part {
    end: usize,
    rows: u64,
    counts: FrontEndCounts,
}

#[derive(Clone, Copy)]
struct PageInWindow {
    first: u32,
    last: u32,
    /// Whether it was written after its first reference.
    writes: bool,
}

/// Finds windows, and the references to keep in them.
struct Windows {
    pages: usize,
    rows: usize,
    /// By page: the last window with the page, and its place in `seen`.
    place: Vec<(u32, u32)>,
    number: u32,
    window: Vec<PageInWindow>,
    chosen: Vec<u32>,
}

impl Windows {
    fn new(pages: usize, rows: usize) -> Windows {
        Windows { pages, rows, place: Vec::new(), number: 0, window: Vec::new(), chosen: Vec::new() }
    }

    /// Appends the kept references of `all` to `out`. A window ends at the end of `all` at the latest.
    fn shorten(&mut self, all: &[PageRef], out: &mut Vec<PageRef>) {
        let mut rest = all;
        while !rest.is_empty() {
            let end = self.look(rest);
            self.keep(&rest[..end], out);
            rest = &rest[end..];
        }
    }

    /// Looks at references until the window is full. Returns their number.
    fn look(&mut self, all: &[PageRef]) -> usize {
        self.number += 1;
        self.window.clear();
        for (at, reference) in all.iter().enumerate().take(self.rows) {
            let page = reference.page();
            if page >= self.place.len() {
                self.place.resize((page + 1).next_power_of_two(), (0, 0));
            }
            let (number, place) = self.place[page];
            if number == self.number {
                let entry = &mut self.window[place as usize];
                entry.last = at as u32;
                entry.writes |= reference.writing();
                continue;
            }
            if self.window.len() == self.pages {
                return at;
            }
            self.place[page] = (self.number, self.window.len() as u32);
            self.window.push(PageInWindow { first: at as u32, last: at as u32, writes: false });
        }
        all.len().min(self.rows)
    }

    fn keep(&mut self, window: &[PageRef], out: &mut Vec<PageRef>) {
        self.chosen.clear();
        for entry in &self.window {
            self.chosen.push(entry.first);
            if entry.last != entry.first {
                self.chosen.push(entry.last);
            }
        }
        self.chosen.sort_unstable();
        for &at in &self.chosen {
            let reference = window[at as usize];
            let entry = self.window[self.place[reference.page()].1 as usize];
            let writing = reference.writing() || (entry.last == at && entry.writes);
            out.push(PageRef::new(reference.page() as u32, writing, reference.quiet()));
        }
    }
}

/// The most references of a window: so few that a reference bit is set late by only a small part of a memory's turn.
pub const WINDOW: usize = 4096;

/// A string without the references that memories of `pages` pages and more cannot tell, under OPT and LRU.
pub fn shortened(string: &[PageRef], pages: usize) -> Vec<PageRef> {
    let mut out = Vec::new();
    Windows::new(pages.max(1), u32::MAX as usize).shorten(string, &mut out);
    out
}

pub struct Shortener {
    windows: Windows,
    references: Vec<PageRef>,
    parts: Vec<Part>,
    most: usize,
}

impl Shortener {
    /// Exact for OPT and LRU in memories of `pages` pages and more. Gives up after `most` references.
    pub fn new(pages: usize, most: usize) -> Shortener {
        let windows = Windows::new(pages.max(1), WINDOW);
        Shortener { windows, references: Vec::new(), parts: Vec::new(), most }
    }

    /// Takes the front end's references of a block, its counts after the block, and the number of the trace's rows so
    /// far. Takes nothing after it has given up.
    pub fn push(&mut self, references: &[PageRef], counts: &FrontEndCounts, rows: u64) {
        if self.references.len() > self.most {
            return;
        }
        self.windows.shorten(references, &mut self.references);
        self.parts.push(Part { end: self.references.len(), rows, counts: *counts });
    }

    /// The shortened string, with the page numbers; `None`: it is too long.
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
    /// OPT and LRU are exact in memories of this many pages and more.
    pub fn exact_from(&self) -> usize {
        self.pages
    }

    pub fn references(&self) -> &[PageRef] {
        &self.references
    }

    /// Blocks of the whole string.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The number of the trace's rows up to the end of this block.
    pub fn rows_until(&self, part: usize) -> u64 {
        self.parts.get(part).map_or(0, |part| part.rows)
    }

    /// The front end's counts for the whole string.
    pub fn counts(&self) -> FrontEndCounts {
        self.parts.last().map(|part| part.counts).unwrap_or_default()
    }

    pub fn pages_touched(&self) -> usize {
        self.numbering.count()
    }

    /// Plays the string: each call of `filter` gives the kept references of one block, whatever block it is given.
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
