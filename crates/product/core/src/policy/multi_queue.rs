//! Multi-queue: FIFO queues, sorted by how often a page was loaded again soon after its eviction. Hot pages are known
//! by their loads, so hardly any reference bit is read.
//!
//! ```text
//!   new page ─────→ [ level 0 ] ─────────────────────────→ victim, → [ ghosts ]
//!   ghost of level n ─→ [ level n + 1, at most 3 ]               ↗ untouched
//!                            │ oldest for its level → [ watched ]
//!                            ↑                           │ touched
//!                            └───── one level up ────────┘
//! ```
//!
//! Without hardware reference bits, a look at a page costs a false fault if the page is in use. So Clock and similar
//! policies pay one false fault for each page that they spare. But a load is a reference, too, and costs nothing
//! extra: a page that is loaded again soon after its eviction should have stayed. The sources:
//! - queues by reference count, and ghosts that keep the count of evicted pages: MQ (Zhou, Philbin, Li, USENIX ATC
//!   2001), with FIFO queues since hits are not seen, and without expiry. Only pages known from a ghost enter the
//!   protected queues, in FIFO order: 2Q (Johnson, Shasha, VLDB 1994) and S3-FIFO (Yang et al., SOSP 2023, section
//!   4);
//! - **the oldest for its level** is evicted first: the page with the largest quotient of loads since it was placed
//!   and (2^favour)^level. Of equal pages, the one of the lower level goes first. So no level has a size: a page of
//!   level n stays (2^favour)^n times as long as a page of level 0. This is as in hyperbolic caching (Blankstein,
//!   Sen, Freedman, USENIX ATC 2017), but four heads are compared, not samples;
//! - **favour** goes from 0, plain FIFO by age, to 3, where a level stays 8 times as long as the one below. The
//!   ghosts decide it, as in ARC (Megiddo, Modha, FAST 2003) and the tiers of Linux MGLRU (`mm/vmscan.c`): the page
//!   of each ghost either is loaded again, or the ghost is forgotten. The two rates are compared sixteen times in as
//!   many loads as there are frames. If a greater share of level 0 comes back than of the higher levels, the wrong
//!   pages are evicted, and favour falls by 1; if a smaller share does, it rises by 1. Then the counts are halved.
//!   Ghosts are counted when they end, not when they begin. Otherwise the level that is evicted more just now would
//!   seem to come back less, and favour would swing (measured: 1.04 to 1.06 in place of 0.82 in the first row below);
//! - **watched**: a page of level 1 or more is not evicted at once. Its bit is cleared first (without hardware bits:
//!   it is unmapped), and it waits behind `watched` others. If it is touched by then, it goes one level up. All bits
//!   are read there, for pages about to be evicted, and all decisions are the same with hardware bits and without.
//!
//! The rest of our reading: `ghosts` counts the last evictions, including those whose page has been loaded again
//! since. Ghosts are looked up when the page has been loaded, after the eviction. Released pages are not remembered.
//! favour is 0 at the start: FIFO, until there is evidence.
//!
//! A search moves at most 4 pages to the watched ones. If no victim was found by then, the oldest watched page is
//! evicted, touched or not. That is at most 9 steps for any size of memory.
//!
//! Measured on strings made from a seed, each policy without its machine, this one in the engine. The first figure is
//! the number of loads as a multiple of exact LRU's, the second is false faults per reference. 262,144 pages in
//! 65,536 frames, 8 million references after a warm-up of at most 6 million. 2Q has FIFO queues of 25 and 75 % and
//! ghosts of 50 %, also from its main queue. LRU loads 15.9 % in the first row. *Thrash* is uniform over 1.5 times
//! memory, *fit* is uniform over another 0.9 times; each lasts half a million references.
//!
//! ```text
//!                          FIFO      2Q    FIFO-SC 50 %    Clock, bits emulated    this one
//! Zipf 0.99                1.18    0.99    1.02, 10.5 %    1.04, 10.1 %            0.82, 0.3 %
//! 2.8 M after 0.7 M        1.19    0.99    1.02, 10.5 %    1.04, 10.0 %            0.93, 0.4 %
//! 131,072 frames           1.26    1.12    1.02, 10.6 %    1.04,  9.4 %            0.97, 0.4 %
//! 26,214 frames            1.13    0.92    1.02, 10.1 %    1.03, 10.3 %            0.80, 0.2 %
//! Zipf 0.8                 1.12    0.97    1.02, 16.5 %    1.03, 16.6 %            0.84, 0.4 %
//! uniform                  1.00    1.00    1.00, 12.5 %    1.00, 12.5 %            1.00, 0.5 %
//! loop over 78,643         1.00    0.79    1.00,  0   %    1.00,  0   %            1.00, 0   %
//! other places each 1 M    1.13    1.08    1.01,  9.6 %    1.02,  9.2 %            1.09, 0.4 %
//! thrash and fit by turns  1.00    1.34    1.00, 31.8 %    1.00, 15.4 %            1.04, 0.4 %
//! Zipf and fit by turns    1.03    1.18    1.01, 20.9 %    1.01,  6.4 %            1.13, 0.3 %
//! ```
//!
//! When not to use it: if hardware sets reference bits at no cost (Clock-Pro and S3-FIFO see touches of new pages,
//! this policy does not; in a loop over more than memory it always misses, as LRU does), or if programs change their
//! phase all the time. A page of the new phase is loaded up to four times before it weighs as much as the old ones,
//! until favour has fallen (last rows). The policy takes 4 bytes for each page, which are zeros until the page is
//! first evicted, and 26 bytes for each frame.

use alloc::boxed::Box;
use alloc::vec;
use core::cmp::Ordering;

use super::{share, Param, ParamKind, Policy, PolicySpec, Victim};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::leaves::Leaves;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// Number of queues. If pages stay 8 times as long at each level, the highest level stays 512 times as long as the
/// lowest. A fifth level saved at most 3 % of the loads in the measurement above.
const LEVELS: usize = 4;
const TOP: u8 = LEVELS as u8 - 1;
/// The most that favour can be.
const FAVOUR_MAX: u32 = 3;
/// Pages that one search may begin to watch.
const WATCH_MAX: usize = 4;
/// How often favour is adjusted in as many loads as there are frames.
const RULINGS: u64 = 16;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "multi-queue",
    summary: "FIFO queues by how often a page came back soon after it left; hardly needs reference bits",
    source: "after MQ (Zhou et al., USENIX ATC 2001) and 2Q (Johnson and Shasha, VLDB 1994)",
    params: &[
        Param {
            name: "watched",
            help: "pages kept with their bit cleared before they leave, in frames or percent of all frames; 2% is \
                   measured",
            kind: ParamKind::Frames { default_percent: Some(2) },
        },
        Param {
            name: "ghosts",
            help: "evictions remembered, in frames or percent of all frames; 100% is measured",
            kind: ParamKind::Frames { default_percent: Some(100) },
        },
    ],
    build: |args, frames, pages| {
        let watched = args.count("watched", frames, 1, frames as u32)? as usize;
        let ghosts = args.count("ghosts", frames, 1, frames as u32)? as usize;
        Ok(Box::new(MultiQueue::new(frames, pages, watched, ghosts)))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let count = |name| args.count(name, frames, 1, frames as u32).expect("tests give fitting values") as usize;
        Box::new(naive::NaiveMultiQueue::new(frames, count("watched"), count("ghosts")))
    },
};

/// The queues, the watched frames and what is remembered.
#[derive(Debug)]
pub struct MultiQueue {
    levels: [List; LEVELS],
    watch_list: List,
    links: Links,
    level: Box<[u8]>,
    watched: Box<[bool]>,
    /// The number of loads when the frame was placed at its level.
    since: Box<[u64]>,
    loads: u64,
    watch_share: usize,
    /// The share of watched frames and the ghosts for all of RAM.
    shares: (usize, usize),
    ghosts: Ghosts,
    fates: Fates,
    ruling_period: u64,
    favour: u32,
}

/// The pages of the last evictions and the level of each.
#[derive(Debug)]
struct Ghosts {
    ring: Box<[(u32, u8)]>,
    /// So many places of the ring are in use.
    most: usize,
    next: usize,
    /// For each page its place in the ring plus 1, or 0.
    place: Leaves,
}

impl Ghosts {
    fn new(ghosts: usize, pages: usize) -> Ghosts {
        Ghosts { ring: vec![(0, 0); ghosts].into(), most: ghosts, next: 0, place: Leaves::new(pages) }
    }

    /// Remembers a page. Returns the level of the ghost that is forgotten for it.
    fn remember(&mut self, page: usize, level: u8) -> Option<u8> {
        let (old, old_level) = self.ring[self.next];
        let here = self.next as u32 + 1;
        let forgotten = self.place.get(old as usize) == here;
        if forgotten {
            self.place.set(old as usize, 0);
        }
        self.ring[self.next] = (page as u32, level);
        self.place.set(page, here);
        self.next = (self.next + 1) % self.most;
        forgotten.then_some(old_level)
    }

    /// Removes the page's ghost and returns its level.
    fn recall(&mut self, page: usize) -> Option<u8> {
        let place = self.place.get(page);
        self.place.set(page, 0);
        (place > 0).then(|| self.ring[place as usize - 1].1)
    }
}

/// What became of ghosts; old counts fade.
#[derive(Clone, Copy, Default, Debug)]
struct Fate {
    returned: u64,
    ended: u64,
}

/// Of level 0 and of the levels above.
#[derive(Default, Debug)]
struct Fates {
    low: Fate,
    high: Fate,
}

impl Fates {
    fn count(&mut self, level: u8, returned: bool) {
        let fate = if level == 0 { &mut self.low } else { &mut self.high };
        fate.returned += u64::from(returned);
        fate.ended += 1;
    }

    /// Compares the share of the higher levels that comes back with that of level 0.
    fn high_against_low(&self) -> Ordering {
        (self.high.returned * self.low.ended).cmp(&(self.low.returned * self.high.ended))
    }

    fn fade(&mut self) {
        for fate in [&mut self.low, &mut self.high] {
            *fate = Fate { returned: fate.returned / 2, ended: fate.ended / 2 };
        }
    }
}

impl MultiQueue {
    /// For a number of frames and pages, with 1 <= `watched`, `ghosts` <= `frames`.
    pub fn new(frames: usize, pages: usize, watched: usize, ghosts: usize) -> MultiQueue {
        debug_assert!(watched >= 1 && watched <= frames && ghosts >= 1 && ghosts <= frames);
        MultiQueue {
            levels: [List::new(); LEVELS],
            watch_list: List::new(),
            links: Links::new(frames),
            level: vec![0; frames].into_boxed_slice(),
            watched: vec![false; frames].into_boxed_slice(),
            since: vec![0; frames].into_boxed_slice(),
            loads: 0,
            watch_share: watched,
            shares: (watched, ghosts),
            ghosts: Ghosts::new(ghosts, pages),
            fates: Fates::default(),
            ruling_period: (frames as u64 / RULINGS).max(1),
            favour: 0,
        }
    }

    fn place(&mut self, frame: usize, level: u8) {
        self.level[frame] = level;
        self.since[frame] = self.loads;
        self.levels[usize::from(level)].push_tail(&mut self.links, frame);
    }

    /// Takes the page that is the oldest for its level, unless all pages are watched.
    fn take_oldest(&mut self) -> Option<usize> {
        let mut oldest = None;
        for (level, queue) in self.levels.iter().enumerate() {
            let Some(head) = queue.head() else { continue };
            // Multiplied by the stay of the highest level, so that nothing is rounded.
            let age = (self.loads - self.since[head]) << (self.favour as usize * (LEVELS - 1 - level));
            if oldest.is_none_or(|(_, most)| age > most) {
                oldest = Some((level, age));
            }
        }
        self.levels[oldest?.0].pop_head(&mut self.links)
    }

    fn watch(&mut self, frame: usize, residents: &mut Residents<'_>) {
        residents.referenced(frame.into(), After::Clear);
        self.watched[frame] = true;
        self.watch_list.push_tail(&mut self.links, frame);
    }

    fn take_watched(&mut self) -> usize {
        let frame = self.watch_list.pop_head(&mut self.links).expect("a page is watched");
        self.watched[frame] = false;
        frame
    }

    fn leave(&mut self, frame: usize, walk: Walk, forced: bool, residents: &Residents<'_>) -> Victim {
        let frame_id = FrameId::from(frame);
        if let Some(level) = self.ghosts.remember(residents.page(frame_id).index(), self.level[frame]) {
            self.fates.count(level, false);
        }
        Victim { frame: frame_id, walk, forced }
    }

    fn rule(&mut self) {
        self.favour = match self.fates.high_against_low() {
            Ordering::Greater => (self.favour + 1).min(FAVOUR_MAX),
            Ordering::Equal => self.favour,
            Ordering::Less => self.favour.saturating_sub(1),
        };
        self.fates.fade();
    }
}

impl Policy for MultiQueue {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        for _ in 0..WATCH_MAX {
            let Some(frame) = self.take_oldest() else { break };
            walk += Walk(1);
            if self.level[frame] == 0 {
                return self.leave(frame, walk, false, residents);
            }
            self.watch(frame, residents);
            if self.watch_list.len() > self.watch_share {
                let frame = self.take_watched();
                walk += Walk(1);
                // The bit is kept: without hardware bits, clearing it would unmap a page just found in use.
                if !residents.referenced(frame.into(), After::Keep) {
                    return self.leave(frame, walk, false, residents);
                }
                self.place(frame, (self.level[frame] + 1).min(TOP));
            }
        }
        let frame = self.take_watched();
        let touched = residents.referenced(frame.into(), After::Keep);
        self.leave(frame, walk + Walk(1), touched, residents)
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.loads += 1;
        let level = match self.ghosts.recall(residents.page(frame).index()) {
            Some(level) => {
                self.fates.count(level, true);
                (level + 1).min(TOP)
            }
            None => 0,
        };
        self.place(frame.index(), level);
        if self.loads.is_multiple_of(self.ruling_period) {
            self.rule();
        }
    }

    fn resize(&mut self, frames: usize) {
        let (all, (watched, ghosts)) = (self.level.len(), self.shares);
        self.watch_share = share(watched, frames, all);
        self.ruling_period = (frames as u64 / RULINGS).max(1);
        // What is remembered behind these places stays until RAM grows again.
        self.ghosts.most = share(ghosts, frames, all);
        self.ghosts.next %= self.ghosts.most;
    }

    fn remove(&mut self, frame: FrameId) {
        let i = frame.index();
        let queue = match core::mem::take(&mut self.watched[i]) {
            true => &mut self.watch_list,
            false => &mut self.levels[usize::from(self.level[i])],
        };
        queue.unlink(&mut self.links, i);
    }

    fn len(&self) -> usize {
        self.watch_list.len() + self.levels.iter().map(List::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_recalled_once_and_forgotten_after_as_many_evictions_as_are_remembered() {
        let mut ghosts = Ghosts::new(2, 8);
        assert_eq!(ghosts.recall(0), None, "page 0 is no ghost although the ring is full of zeros");
        assert_eq!(ghosts.remember(0, 3), None);
        assert_eq!(ghosts.remember(5, 1), None);
        assert_eq!((ghosts.recall(5), ghosts.recall(5)), (Some(1), None));
        assert_eq!(ghosts.remember(6, 0), Some(3), "0 makes room");
        assert_eq!(ghosts.remember(7, 0), None, "5 has come back, so that nothing is forgotten");
        assert_eq!((ghosts.recall(0), ghosts.recall(6), ghosts.recall(7)), (None, Some(0), Some(0)));
    }

    #[test]
    fn a_higher_level_stays_longer_by_the_power_of_favour() {
        let oldest = |favour, loads| {
            let mut queues = MultiQueue::new(2, 2, 1, 1);
            queues.favour = favour;
            queues.place(0, 2);
            queues.loads = 100;
            queues.place(1, 0);
            queues.loads += loads;
            queues.take_oldest()
        };
        assert_eq!([oldest(0, 5), oldest(1, 33), oldest(1, 34)], [Some(0), Some(0), Some(1)]);
        assert_eq!(
            [oldest(3, 1), oldest(3, 2)],
            [Some(0), Some(1)],
            "64 times 1 is less than 101, 64 times 2 more than 102"
        );
    }

    #[test]
    fn favour_falls_while_level_0_comes_back_more_and_rises_while_the_others_do() {
        let mut queues = MultiQueue::new(16, 16, 1, 16);
        let mut rule = |low: bool, high: bool| {
            queues.fates.count(0, low);
            queues.fates.count(2, high);
            queues.rule();
            queues.favour
        };
        assert_eq!([(); 5].map(|()| rule(false, true)), [1, 2, 3, 3, 3]);
        assert_eq!([rule(true, false), rule(true, true)], [2, 2], "where there is no difference it stays");
        assert_eq!([(); 3].map(|()| rule(true, false)), [1, 0, 0]);
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    struct MultiQueuePage {
        number: u64,
        bit: bool,
        level: u32,
        loads_when_placed: u64,
        watched: bool,
    }

    /// All resident pages in one list in the order in which they were last placed or began to be watched.
    pub struct NaiveMultiQueue {
        pages: Vec<MultiQueuePage>,
        /// The last evictions, oldest first; `None` if the page has been loaded again.
        ghosts: VecDeque<Option<(u64, u32)>>,
        /// Ghosts whose page came back, and ghosts that ended, as (level 0, higher levels).
        returned: (u64, u64),
        ended: (u64, u64),
        frames: usize,
        watch_share: usize,
        remembered: usize,
        loads: u64,
        favour: u32,
    }

    impl NaiveMultiQueue {
        pub fn new(frames: usize, watch_share: usize, remembered: usize) -> NaiveMultiQueue {
            NaiveMultiQueue {
                pages: Vec::new(),
                ghosts: VecDeque::new(),
                returned: (0, 0),
                ended: (0, 0),
                frames,
                watch_share,
                remembered,
                loads: 0,
                favour: 0,
            }
        }

        fn count(pair: &mut (u64, u64), level: u32) {
            *(if level == 0 { &mut pair.0 } else { &mut pair.1 }) += 1;
        }

        fn oldest(&self) -> Option<usize> {
            let weighted =
                |p: &MultiQueuePage| (self.loads - p.loads_when_placed) * 2u64.pow(self.favour * (3 - p.level));
            let mut best: Option<usize> = None;
            for i in (0..self.pages.len()).filter(|&i| !self.pages[i].watched) {
                let page = &self.pages[i];
                let better = best.is_none_or(|b| {
                    let best = &self.pages[b];
                    let (this, that) = (weighted(page), weighted(best));
                    this > that || (this == that && page.level < best.level)
                });
                if better {
                    best = Some(i);
                }
            }
            best
        }

        fn first_watched(&mut self) -> MultiQueuePage {
            let at = self.pages.iter().position(|p| p.watched).expect("one is watched");
            self.pages.remove(at)
        }

        /// The evicted page, the steps, and whether the page had been touched.
        fn evict(&mut self) -> (MultiQueuePage, u64, bool) {
            let mut walk = 0;
            for _ in 0..4 {
                let Some(at) = self.oldest() else { break };
                walk += 1;
                let page = self.pages.remove(at);
                if page.level == 0 {
                    return (page, walk, false);
                }
                self.pages.push(MultiQueuePage { bit: false, watched: true, ..page });
                if self.pages.iter().filter(|p| p.watched).count() <= self.watch_share {
                    continue;
                }
                walk += 1;
                let page = self.first_watched();
                if !page.bit {
                    return (page, walk, false);
                }
                let level = if page.level == 3 { 3 } else { page.level + 1 };
                self.pages.push(MultiQueuePage { level, loads_when_placed: self.loads, watched: false, ..page });
            }
            let page = self.first_watched();
            let touched = page.bit;
            (page, walk + 1, touched)
        }

        fn bury(&mut self, page: &MultiQueuePage) {
            self.ghosts.push_back(Some((page.number, page.level)));
            if self.ghosts.len() > self.remembered {
                if let Some(Some((_, level))) = self.ghosts.pop_front() {
                    Self::count(&mut self.ended, level);
                }
            }
        }

        fn level_of_newcomer(&mut self, page: u64) -> u32 {
            let Some(ghost) = self.ghosts.iter_mut().find(|g| g.is_some_and(|(p, _)| p == page)) else { return 0 };
            let (_, level) = ghost.take().expect("it was found");
            Self::count(&mut self.returned, level);
            Self::count(&mut self.ended, level);
            if level == 3 {
                3
            } else {
                level + 1
            }
        }

        fn rule(&mut self) {
            // Compares the shares, returned of ended. Both sides are multiplied by both ended counts.
            let (low, high) = (self.returned.0 * self.ended.1, self.returned.1 * self.ended.0);
            if low > high && self.favour > 0 {
                self.favour -= 1;
            }
            if low < high && self.favour < 3 {
                self.favour += 1;
            }
            for pair in [&mut self.returned, &mut self.ended] {
                *pair = (pair.0 / 2, pair.1 / 2);
            }
        }
    }

    impl Naive for NaiveMultiQueue {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.pages.iter_mut().find(|p| p.number == page) {
                entry.bit = true;
                return Touch::Hit;
            }
            let (mut victim, mut walk, mut forced) = (None, 0, false);
            if self.pages.len() == self.frames {
                let (gone, steps, touched) = self.evict();
                self.bury(&gone);
                (victim, walk, forced) = (Some(gone.number), steps, touched);
            }
            self.loads += 1;
            let level = self.level_of_newcomer(page);
            let loads_when_placed = self.loads;
            self.pages.push(MultiQueuePage { number: page, bit: true, level, loads_when_placed, watched: false });
            if self.loads.is_multiple_of((self.frames as u64 / 16).max(1)) {
                self.rule();
            }
            Touch::TrueFault { victim, walk, forced }
        }
    }
}
