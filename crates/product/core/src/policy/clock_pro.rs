//! CLOCK-Pro keeps hot pages and evicts cold pages. A cold page that is touched again soon enough turns hot, even if it
//! was evicted in between.
//!
//! ```text
//!   HAND_hot          HAND_test        HAND_cold                       head
//!   [ hot · · · · · (in test, gone) · · · · [ cold ] · · · · · · · · · ] ← pages placed
//!    oldest hot page   oldest page in test   oldest cold page in RAM
//! ```
//!
//! Source: Jiang, Chen, Zhang, USENIX ATC 2005, sections 4.2 to 4.4. All pages are in one clock, in the order in which
//! they were last placed at its head. Each page is hot or cold. A cold page that a fault placed at the head is *in
//! test* until a hand ends the test. There are m frames: m_c for cold pages, and m_h = m - m_c for hot pages. Our
//! reading:
//! - **HAND_cold** takes the oldest cold page in RAM. If the bit is clear, the page is the victim; if it is in test, it
//!   stays in the clock, not in RAM. If the bit is set, the bit is cleared and the page is placed at the head. It turns
//!   hot if it was in test (m_c grows by 1). Otherwise it stays cold ("no status change") and is in test again, as a
//!   page of LIRS is that comes to the top of its stack, and as in Zijlstra's patch for Linux of 2006. The author's own
//!   simulator (S. Jiang, clock-pro.c, 2005) evicts that page instead, against section 4.3.
//! - **HAND_hot** runs while there are more than m_h hot pages. It starts at the oldest page of the clock. A hot page
//!   with its bit set loses the bit and is placed at the head. A hot page with its bit clear is placed at the head as a
//!   cold page not in test. A cold page's test ends, and the page keeps its place (it does not become younger; so in
//!   clock-pro.c). The hand stops at the first hot page after the one that it turned cold, or at once if there is none.
//! - **HAND_test** ends the oldest test while more than m pages are in the clock but not in RAM.
//! - When a test ends, the page leaves the clock if it is not in RAM, and m_c falls by 1 in either case (section 4.4).
//!   The hand that ends a test does not read the page's bit: only HAND_cold judges cold pages.
//! - A loaded page that is still in test is placed at the head as a hot page, and m_c grows by 1. Any other loaded page
//!   is placed as a cold page in test.
//! - 1 <= m_c <= m. The paper leaves the start open: m_c starts at `cold`, 5 % of m (MIN_COLD_ALLOC_RATE in the
//!   author's clock-pro.h). Until the first search, pages are loaded as hot pages while there are fewer than m_h (so in
//!   clock-pro.c).
//!
//! What had to be adapted: nothing about hits, which set a bit in the paper, too. One point differs. If a page not in
//! RAM passes its test, the paper runs HAND_hot within that fault. Here that run opens the next search, so that all
//! bits are read in `victim` and all steps count in its walk. Between the two there are only hits, and HAND_hot sees
//! them.
//!
//! The walk counts the frames in RAM whose bit a hand reads. A search finds each set bit at most once, demotes each
//! page at most once, and evicts one page: 2 frames + 1 steps. Pages not in RAM cost no step; there are at most m of
//! them.
//!
//! When not to use it: if searches must be short, or if there is no memory for two links, a stamp and a state for
//! every page. On a string without reuse it does what Clock does at more cost. Do not use it with `insert-bit=set` or
//! without hardware bits: the load itself then counts as the second touch, and every page turns hot at once.

use alloc::boxed::Box;
use alloc::vec;

use super::{Param, ParamKind, Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "clock-pro",
    summary: "three hands tell hot from cold pages by how soon they are touched again, in RAM or not",
    source: "Jiang, Chen, Zhang, USENIX ATC 2005, sections 4.2 to 4.4",
    params: &[
        Param {
            name: "cold",
            help:
                "frames meant for cold pages at the start (m_c, which adapts), or percent of all frames; 5% as in the \
                   author's simulator",
            kind: ParamKind::Frames { default_percent: Some(5) },
        },
        Param { kind: ParamKind::Bit { default: false }, ..INSERT_BIT },
    ],
    build: |args, frames, pages| {
        let cold = args.count("cold", frames, 1, frames as u32)? as usize;
        Ok(Box::new(ClockPro::new(frames, pages, cold)))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let cold = args.count("cold", frames, 1, frames as u32).expect("tests give fitting values");
        Box::new(naive::NaiveClockPro::new(frames, cold as usize, args.bit("insert-bit")))
    },
};

/// The clock, kept as three lists, each in the order of the clock. Pages are placed at the head only, so a place in
/// the clock is a number that grows, and each hand is at the head of its list.
#[derive(Debug)]
pub struct ClockPro {
    /// Frames with hot pages; HAND_hot is at its head.
    hot: List,
    /// Frames with cold pages; HAND_cold is at its head.
    cold: List,
    links: Links,
    is_hot: Box<[bool]>,
    page: Box<[u32]>,
    /// Pages in test, in RAM or not; HAND_test is at its head.
    test: List,
    test_links: Links,
    in_test: Box<[bool]>,
    /// In the clock but not in RAM; all of them are in test.
    gone: Box<[bool]>,
    gone_count: usize,
    /// Where a page was last placed.
    place: Box<[u64]>,
    places: u64,
    cold_target: usize,
    filling: bool,
}

impl ClockPro {
    /// For a number of frames and pages, with 1 <= `cold` <= `frames`.
    pub fn new(frames: usize, pages: usize, cold: usize) -> ClockPro {
        debug_assert!(cold >= 1 && cold <= frames);
        ClockPro {
            hot: List::new(),
            cold: List::new(),
            links: Links::new(frames),
            is_hot: vec![false; frames].into_boxed_slice(),
            page: vec![0; frames].into_boxed_slice(),
            test: List::new(),
            test_links: Links::new(pages),
            in_test: vec![false; pages].into_boxed_slice(),
            gone: vec![false; pages].into_boxed_slice(),
            gone_count: 0,
            place: vec![0; pages].into_boxed_slice(),
            places: 0,
            cold_target: cold,
            filling: true,
        }
    }

    fn page(&self, frame: usize) -> usize {
        self.page[frame] as usize
    }

    fn hot_target(&self) -> usize {
        self.page.len() - self.cold_target
    }

    /// Places the page in `frame`, which is on no list, at the head of the clock.
    fn place(&mut self, frame: usize, hot: bool) {
        self.places += 1;
        self.place[self.page(frame)] = self.places;
        self.is_hot[frame] = hot;
        let list = if hot { &mut self.hot } else { &mut self.cold };
        list.push_tail(&mut self.links, frame);
    }

    fn start_test(&mut self, page: usize) {
        self.in_test[page] = true;
        self.test.push_tail(&mut self.test_links, page);
    }

    /// Takes a page out of test, and out of the clock if it is gone.
    fn stop_test(&mut self, page: usize) {
        self.in_test[page] = false;
        self.test.unlink(&mut self.test_links, page);
        self.gone_count -= usize::from(self.gone[page]);
        self.gone[page] = false;
    }

    /// The page was touched again within its test.
    fn test_passed(&mut self, page: usize) {
        self.stop_test(page);
        self.cold_target = (self.cold_target + 1).min(self.page.len());
    }

    /// The page's test ended without a touch.
    fn test_failed(&mut self, page: usize) {
        self.stop_test(page);
        self.cold_target = (self.cold_target - 1).max(1);
    }

    /// HAND_hot moves on to the oldest hot page and ends the tests of the cold pages before it.
    fn hand_hot_goes_on(&mut self) {
        let Some(stop) = self.hot.head() else { return };
        let stop = self.place[self.page(stop)];
        while let Some(page) = self.test.head().filter(|&page| self.place[page] < stop) {
            self.test_failed(page);
        }
    }

    /// Turns one hot page cold.
    fn run_hand_hot(&mut self, residents: &mut Residents<'_>) -> Walk {
        let mut walk = Walk::ZERO;
        self.hand_hot_goes_on();
        loop {
            let frame = self.hot.pop_head(&mut self.links).expect("a page is hot");
            walk += Walk(1);
            let spared = residents.referenced(frame.into(), After::Clear);
            self.place(frame, spared);
            self.hand_hot_goes_on();
            if !spared {
                return walk;
            }
        }
    }

    fn run_hand_test(&mut self) {
        while self.gone_count > self.page.len() {
            let page = self.test.head().expect("pages that are gone are in test");
            self.test_failed(page);
        }
    }

    fn demote_surplus(&mut self, residents: &mut Residents<'_>) -> Walk {
        let mut walk = Walk::ZERO;
        while self.hot.len() > self.hot_target() {
            walk += self.run_hand_hot(residents);
        }
        walk
    }
}

impl Policy for ClockPro {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        self.filling = false;
        let mut walk = self.demote_surplus(residents);
        loop {
            let Some(frame) = self.cold.pop_head(&mut self.links) else {
                // All cold frames are reserved for loads.
                walk += self.run_hand_hot(residents);
                continue;
            };
            walk += Walk(1);
            let page = self.page(frame);
            match (residents.referenced(frame.into(), After::Clear), self.in_test[page]) {
                (true, true) => {
                    self.test_passed(page);
                    self.place(frame, true);
                    walk += self.demote_surplus(residents);
                }
                (true, false) => {
                    self.place(frame, false);
                    self.start_test(page);
                }
                (false, in_test) => {
                    self.gone[page] = in_test;
                    self.gone_count += usize::from(in_test);
                    self.run_hand_test();
                    return Victim { frame: frame.into(), walk, forced: false };
                }
            }
        }
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        let page = residents.page(frame).index();
        self.page[frame.index()] = page as u32;
        let passed = self.in_test[page];
        if passed {
            self.test_passed(page);
        }
        let hot = passed || (self.filling && self.hot.len() < self.hot_target());
        self.place(frame.index(), hot);
        if !hot {
            self.start_test(page);
        }
    }

    fn remove(&mut self, frame: FrameId) {
        let i = frame.index();
        if self.is_hot[i] {
            self.hot.unlink(&mut self.links, i);
            self.hand_hot_goes_on();
            return;
        }
        self.cold.unlink(&mut self.links, i);
        if self.in_test[self.page(i)] {
            self.stop_test(self.page(i));
        }
    }

    fn len(&self) -> usize {
        self.hot.len() + self.cold.len()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::vec::Vec;

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Hot,
        Cold,
        ColdInTest,
        GoneInTest,
    }
    use Kind::*;

    struct ClockEntry {
        page: u64,
        kind: Kind,
        bit: bool,
    }

    /// The clock as the paper draws it: one list of all pages, including those not in RAM, with the head last. A hand
    /// is at the first page of its kind.
    pub struct NaiveClockPro {
        clock: Vec<ClockEntry>,
        frames: usize,
        m_c: usize,
        evicted_once: bool,
        insert_bit: bool,
    }

    impl NaiveClockPro {
        pub fn new(frames: usize, m_c: usize, insert_bit: bool) -> NaiveClockPro {
            NaiveClockPro { clock: Vec::new(), frames, m_c, evicted_once: false, insert_bit }
        }

        fn find(&self, of: &[Kind]) -> Option<usize> {
            self.clock.iter().position(|e| of.contains(&e.kind))
        }

        fn count(&self, of: &[Kind]) -> usize {
            self.clock.iter().filter(|e| of.contains(&e.kind)).count()
        }

        /// Ends the test of the entry at `at`. Returns whether the entry is still there.
        fn end_test(&mut self, at: usize) -> bool {
            self.m_c = if self.m_c > 1 { self.m_c - 1 } else { 1 };
            let gone = self.clock[at].kind == GoneInTest;
            if gone {
                self.clock.remove(at);
            } else {
                self.clock[at].kind = Cold;
            }
            !gone
        }

        /// HAND_hot: step by step over the clock, until it has turned a hot page cold and is at another hot page.
        fn hand_hot(&mut self, walk: &mut u64) {
            let (mut at, mut turned) = (0, false);
            while !turned || self.count(&[Hot]) > 0 {
                match self.clock[at].kind {
                    Cold => at += 1,
                    ColdInTest | GoneInTest => at += usize::from(self.end_test(at)),
                    Hot if turned => return,
                    Hot => {
                        *walk += 1;
                        let entry = self.clock.remove(at);
                        turned = !entry.bit;
                        self.clock.push(ClockEntry { bit: false, kind: if turned { Cold } else { Hot }, ..entry });
                    }
                }
            }
        }

        fn shrink_hot(&mut self, walk: &mut u64) {
            while self.count(&[Hot]) > self.frames - self.m_c {
                self.hand_hot(walk);
            }
        }

        fn evict(&mut self, walk: &mut u64) -> u64 {
            self.evicted_once = true;
            self.shrink_hot(walk);
            loop {
                let at = self.find(&[Cold, ColdInTest]).expect("m_c is 1 at least");
                *walk += 1;
                let ClockEntry { page, kind, bit } = self.clock.remove(at);
                match (kind, bit) {
                    (ColdInTest, true) => {
                        self.m_c = self.frames.min(self.m_c + 1);
                        self.clock.push(ClockEntry { page, kind: Hot, bit: false });
                        self.shrink_hot(walk);
                    }
                    (_, true) => self.clock.push(ClockEntry { page, kind: ColdInTest, bit: false }),
                    (ColdInTest, false) => {
                        self.clock.insert(at, ClockEntry { page, kind: GoneInTest, bit: false });
                        if self.count(&[GoneInTest]) > self.frames {
                            let oldest = self.find(&[ColdInTest, GoneInTest]).expect("there are many");
                            assert!(!self.end_test(oldest), "pages that are gone are older than those in RAM");
                        }
                        return page;
                    }
                    (_, false) => return page,
                }
            }
        }
    }

    impl Naive for NaiveClockPro {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.clock.iter_mut().find(|e| e.page == page && e.kind != GoneInTest) {
                entry.bit = true;
                return Touch::Hit;
            }
            let mut walk = 0;
            let full = self.count(&[Hot, Cold, ColdInTest]) == self.frames;
            let victim = full.then(|| self.evict(&mut walk));
            let known = self.clock.iter().position(|e| e.page == page);
            if let Some(at) = known {
                self.clock.remove(at);
                self.m_c = self.frames.min(self.m_c + 1);
            }
            let room = !self.evicted_once && self.count(&[Hot]) < self.frames - self.m_c;
            let kind = if known.is_some() || room { Hot } else { ColdInTest };
            self.clock.push(ClockEntry { page, kind, bit: self.insert_bit });
            Touch::TrueFault { victim, walk, forced: false }
        }
    }
}
