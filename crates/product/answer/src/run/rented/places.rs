//! Which pages of a program lie in DRAM, and which ones change places: pure decisions.
//!
//! ```text
//!   grows: a quarter of its pages in DRAM, spread evenly ─► has grown: as many as --ram, spread evenly
//!   then, part by part: protected ── a window ── first look ── a window ── second look
//!      in slow memory, written in both windows ─► up ┐ as many as there are of the other, so that no page in DRAM
//!      in DRAM, written in neither             ─► down ┘ leaves for one that is no better
//! ```
//! Rent first: all lie in slow memory, where each access pays. Spread evenly they are what an interleaved heap is with
//! as much DRAM, and nothing is bought before it has been seen twice.

use std::ops::Range;
use std::time::Duration;

use coldframe_proc::PAGE;

/// While a program grows, one of this many pages is in DRAM: nobody knows yet how many there will be. A guess.
const GROWING_PART: usize = 4;
/// It grows if it has this part more pages than at the look before.
const GROWTH: usize = 64;
/// Pages that move at a time.
const MOVES: usize = 4096;
/// A page that did not move so often is not asked again.
const STAYED: u8 = 3;
/// A window is no shorter and no longer than this.
const WINDOW: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// The page's number is its address divided by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    number: u64,
    in_dram: bool,
    /// Written in neither window when it was last watched.
    cold: bool,
    /// How often it did not move when it was asked to: others have it, too, or the kernel uses it just now.
    stayed: u8,
}

impl Page {
    fn moves(&self) -> bool {
        self.stayed < STAYED
    }
}

/// The pages of a program.
#[derive(Debug)]
pub(crate) struct Places {
    room: usize,
    pages: Vec<Page>,
    in_dram: usize,
    grows: bool,
}

/// Addresses of pages that change places.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    pub up: Vec<u64>,
    pub down: Vec<u64>,
}

impl Places {
    /// With room in DRAM for so many pages.
    pub fn new(room: usize) -> Places {
        Places { room, pages: Vec::new(), in_dram: 0, grows: true }
    }

    /// What is there now, in order of addresses. New pages are in slow memory.
    pub fn now(&mut self, present: &[Range<u64>]) {
        let before = std::mem::take(&mut self.pages);
        let mut old = before.iter().peekable();
        for number in present.iter().flat_map(|range| range.start / PAGE..range.end / PAGE) {
            while old.next_if(|page| page.number < number).is_some() {}
            let page = old.next_if(|page| page.number == number).copied();
            self.pages.push(page.unwrap_or(Page { number, in_dram: false, cold: false, stayed: 0 }));
        }
        self.grows = self.pages.len() > before.len() + before.len() / GROWTH;
        self.in_dram = self.pages.iter().filter(|page| page.in_dram).count();
    }

    /// Pages that move up into room that is free, as evenly spread as interleaved ones.
    pub fn fill(&self) -> Vec<u64> {
        let room = if self.grows { self.room.min(self.pages.len() / GROWING_PART) } else { self.room };
        let slow: Vec<_> = self.pages.iter().filter(|page| !page.in_dram && page.moves()).collect();
        let wanted = room.saturating_sub(self.in_dram).min(slow.len()).min(MOVES);
        (0..wanted).map(|i| slow[i * slow.len() / wanted].number * PAGE).collect()
    }

    /// Whether there is something to choose: DRAM is full, and pages lie in slow memory.
    pub fn is_full(&self) -> bool {
        !self.grows && self.in_dram >= self.room.min(self.pages.len()) && self.in_dram < self.pages.len()
    }

    /// From the first page behind `after` on, the addresses of so many pages; at the end it begins anew.
    pub fn part(&self, after: u64, pages: usize) -> Range<u64> {
        let first = self.pages.partition_point(|page| page.number * PAGE < after);
        let first = if first == self.pages.len() { 0 } else { first };
        let last = (first + pages.max(1) - 1).min(self.pages.len().saturating_sub(1));
        let address = |index: usize| self.pages.get(index).map_or(0, |page| page.number * PAGE);
        address(first)..address(last) + PAGE
    }

    /// What was written in the two windows of a part decides. No more than `pairs_max` pairs.
    pub fn swap(&mut self, part: &Range<u64>, looks: [&[Range<u64>]; 2], pairs_max: usize) -> Moves {
        let within = |look: &[Range<u64>], address: u64| {
            let next = look.partition_point(|range| range.end <= address);
            look.get(next).is_some_and(|range| range.start <= address)
        };
        let mut up = Vec::new();
        for page in &mut self.pages {
            let address = page.number * PAGE;
            if part.contains(&address) {
                let written = looks.map(|look| within(look, address));
                page.cold = written == [false; 2];
                up.extend((!page.in_dram && page.moves() && written == [true; 2]).then_some(address));
            }
        }
        let cold = self.pages.iter_mut().filter(|page| page.in_dram && page.cold && page.moves());
        let leave = cold.take(up.len().min(pairs_max)).map(|page| {
            // It is not named twice.
            page.cold = false;
            page.number * PAGE
        });
        let down: Vec<u64> = leave.collect();
        up.truncate(down.len());
        Moves { up, down }
    }

    /// These were moved up or down; those that did not go are not asked again.
    pub fn moved(&mut self, pages: &[u64], gone: &[bool], up: bool) {
        for (address, gone) in pages.iter().zip(gone) {
            let found = self.pages.binary_search_by_key(&(address / PAGE), |page| page.number);
            let Some(page) = found.ok().and_then(|index| self.pages.get_mut(index)) else { continue };
            page.stayed += u8::from(!gone);
            page.cold &= !gone;
            if *gone && page.in_dram != up {
                page.in_dram = up;
                self.in_dram = if up { self.in_dram + 1 } else { self.in_dram - 1 };
            }
        }
    }

    /// The part of the pages for which DRAM has room.
    pub fn share(&self) -> f64 {
        self.room as f64 / self.pages.len().max(1) as f64
    }

    /// Bytes in DRAM, and of all.
    pub fn bytes(&self) -> [u64; 2] {
        [self.in_dram, self.pages.len()].map(|pages| pages as u64 * PAGE)
    }
}

/// The longest window: a move pays if the page is used `break_even` times while it stays; as long as it may stay is as
/// long as the program has run, so seen twice within a part of that it pays.
pub(crate) fn break_even_window(age: Duration, break_even: f64) -> Duration {
    age.div_f64(break_even.max(1.0)).clamp(WINDOW[0], WINDOW[1])
}

/// The next window after one in which the part `written` of the pages was written: one in which about as many are
/// written as DRAM has room for, `share` of all. A longer one does not tell what is written most from the rest.
pub(crate) fn next_window(last: Duration, written: f64, share: f64, longest: Duration) -> Duration {
    let next = if written > share {
        last / 2
    } else if written < share / 2.0 {
        last * 2
    } else {
        last
    };
    next.clamp(WINDOW[0], longest)
}

/// Pages of a part, so that the faults of its protected pages take no more than `share` of the time. `written`: the
/// part of the pages that was written in the last window; `fault`: what one of them takes.
pub(crate) fn part_pages(window: Duration, fault: Duration, written: f64, share: f64) -> usize {
    let faults = share * window.as_secs_f64() / fault.as_secs_f64().max(1e-9);
    ((faults / written.clamp(0.05, 1.0)) as usize).clamp(64, 1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(numbers: &[u64]) -> Vec<u64> {
        numbers.iter().map(|number| number * PAGE).collect()
    }

    fn range(pages: Range<u64>) -> Range<u64> {
        pages.start * PAGE..pages.end * PAGE
    }

    fn filled(room: usize, pages: u64) -> Places {
        let mut places = Places::new(room);
        places.now(&[range(0..pages)]);
        places.now(&[range(0..pages)]);
        let fill = places.fill();
        places.moved(&fill, &vec![true; fill.len()], true);
        places
    }

    #[test]
    fn while_it_grows_a_quarter_is_in_dram_and_then_as_much_as_there_is_room_for_evenly_spread() {
        let mut places = Places::new(6);
        places.now(&[range(0..8)]);
        assert_eq!(places.fill(), at(&[0, 4]));
        places.moved(&at(&[0, 4]), &[true, true], true);
        assert!(!places.is_full());
        places.now(&[range(0..8)]);
        assert_eq!(places.fill(), at(&[1, 2, 5, 6]));
        let small = filled(6, 4);
        assert_eq!((small.bytes(), small.is_full()), ([4 * PAGE, 4 * PAGE], false));
        let large = filled(8, 32);
        assert!(large.is_full());
        assert!(large.pages.iter().all(|page| page.in_dram == (page.number % 4 == 0)));
    }

    #[test]
    fn a_page_seen_twice_comes_up_for_one_that_was_not_seen_and_never_for_one_that_was() {
        let mut places = filled(2, 8);
        // In DRAM: 0 and 4. Seen twice: 1, 2, 4; once: 3.
        let (first, second) = ([range(1..5)], [range(1..3), range(4..5)]);
        let moves = places.swap(&range(0..8), [&first, &second], 9);
        assert_eq!(moves, Moves { up: at(&[1]), down: at(&[0]) });
        assert_eq!(places.swap(&range(0..8), [&first, &second], 0), Moves::default());
        places.moved(&moves.down, &[true], false);
        places.moved(&moves.up, &[true], true);
        assert_eq!(places.bytes(), [2 * PAGE, 8 * PAGE]);
        assert_eq!(places.swap(&range(0..8), [&first, &second], 9), Moves::default());
    }

    #[test]
    fn a_page_that_never_moves_is_not_asked_for_ever_and_one_that_is_gone_is_forgotten() {
        let mut places = filled(2, 8);
        let seen = [range(1..2)];
        for _ in 0..STAYED {
            let moves = places.swap(&range(0..8), [&seen, &seen], 9);
            assert_eq!(moves.up, at(&[1]));
            places.moved(&moves.up, &[false], true);
        }
        assert_eq!(places.swap(&range(0..8), [&seen, &seen], 9), Moves::default());
        places.now(&[range(3..8)]);
        assert_eq!(places.bytes(), [PAGE, 5 * PAGE]);
        assert_eq!(places.fill().len(), 1);
    }

    #[test]
    fn parts_go_round_and_windows_grow_with_the_programs_age() {
        let places = filled(2, 8);
        assert_eq!(
            [0, 3, 6, 8].map(|after| places.part(after * PAGE, 3)),
            [range(0..3), range(3..6), range(6..8), range(0..3)]
        );
        assert_eq!(Places::new(1).part(0, 3), 0..PAGE);
        let ms = Duration::from_millis;
        assert_eq!([1, 5_000, 500_000].map(|age| break_even_window(ms(age), 99.0).as_millis()), [10, 50, 1000]);
        let next = |seen| next_window(ms(40), seen, 0.25, ms(70)).as_millis();
        assert_eq!([0.3, 0.2, 0.1].map(next), [20, 40, 70]);
        assert_eq!(part_pages(ms(100), Duration::from_micros(1), 0.5, 0.01), 2000);
        assert_eq!(part_pages(ms(10), Duration::from_micros(20), 1.0, 0.01), 64);
    }

    /// A heap of which a fifth is written ten times as often as the rest: the hot ones end up in DRAM.
    #[test]
    fn the_pages_that_are_written_most_end_up_in_dram() {
        let mut places = filled(1024, 4096);
        let (hot, mut random) = (|number: u64| number * 7 % 4096 < 800, fastrand::Rng::with_seed(3));
        let mut after = 0;
        for _ in 0..64 {
            let part = places.part(after, 512);
            let mut look = || {
                let written = |number: &u64| random.f64() < if hot(*number) { 0.9 } else { 0.1 };
                let pages = (part.start / PAGE..part.end / PAGE).filter(written);
                pages.map(|number| number * PAGE..number * PAGE + PAGE).collect::<Vec<_>>()
            };
            let looks = [look(), look()];
            let moves = places.swap(&part, [&looks[0], &looks[1]], usize::MAX);
            places.moved(&moves.down, &vec![true; moves.down.len()], false);
            places.moved(&moves.up, &vec![true; moves.up.len()], true);
            after = part.end;
        }
        let up = places.pages.iter().filter(|page| page.in_dram && hot(page.number)).count();
        assert_eq!(places.in_dram, 1024);
        assert!(up > 700, "{up} of 800");
    }
}
