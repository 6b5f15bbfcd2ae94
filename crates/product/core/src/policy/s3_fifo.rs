//! S3-FIFO: new pages enter a small FIFO queue, and pages touched there move to the main queue. A ghost list has the
//! pages evicted from the small queue; they go straight to main when they are loaded again.
//!
//! ```text
//!   new page ──→ [ small ] ── bit set ──→ [ main ] ↺ bit set, or lives left
//!                    │ bit clear              │ neither
//!                    ▼                        ▼
//!                 victim, → [ ghost ]       victim, forgotten
//!   page on the ghost list ─────────────→ main
//! ```
//!
//! Source: Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023, section 4.1 and algorithm 1. Its sizes are the defaults: small
//! 10 % of all frames, main the rest, as many ghosts as main has frames. The small queue is searched while it has its
//! share or more; otherwise the main queue is searched.
//!
//! What had to be adapted. The paper counts hits, up to 3, and moves a page into main after the second hit. The
//! engine sees no hits, only whether there was one since the bit was last cleared, and each queue looks at a page
//! only at its head. So:
//! - small to main: the bit is set. That is one hit or more, instead of two;
//! - main: a page has up to 3 lives, **one more for each scan that finds its bit set, one less for each that finds it
//!   clear**; it stays while it had one. Its count starts at 0 when it enters main ("its access bits are cleared during
//!   the move"). The paper's count falls at every scan but can rise by more than 1 between two scans. With single bits,
//!   the same rule would never leave more than 0, and main would be Clock. Measured against libCacheSim 0.3.5's S3FIFO
//!   (60,000 references to 1,000 pages, Zipf exponents 0.6 to 1.2, 50 to 400 frames): our reading has 0.2 to 2.2 %
//!   fewer misses; with main as Clock there are 1.7 to 5.9 % more;
//! - one search gives one victim. Algorithm 1 continues in the small queue after main was too large and gave a page;
//!   our search stops;
//! - while frames are free, all pages enter small, as in algorithm 1. libCacheSim puts them into main once small has
//!   its share, which keeps a part of a loop that is much larger than RAM;
//! - the ghost list is searched when the page has been loaded, after the eviction, as in algorithm 1.
//!
//! A search examines each page of the small queue once and each of main up to 5 times (bit set, then 3 lives, then
//! out): 5 frames + 1 steps at most.
//!
//! When not to use it: if most pages are touched again, but only after a tenth of the frames has been loaded since,
//! as in a loop over code just loaded. Each such page is evicted once before it enters main. Do not use it with
//! `insert-bit=set` or without hardware bits: then every page passes the small queue, and S3-FIFO is a costly Clock.

use alloc::boxed::Box;
use alloc::vec;

use super::{share, Param, ParamKind, Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// The most lives a page can have; the paper's counter has two bits (section 4.1).
const LIVES_MAX: u8 = 3;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "s3-fifo",
    summary: "a small FIFO sifts new pages, a main one keeps those touched, a ghost list recalls the rest",
    source: "Yang et al., SOSP 2023, section 4.1",
    params: &[
        Param {
            name: "small",
            help: "share of the small queue in frames or percent of all frames; the paper's is 10%",
            kind: ParamKind::Frames { default_percent: Some(10) },
        },
        Param { kind: ParamKind::Bit { default: false }, ..INSERT_BIT },
    ],
    build: |args, frames, pages| {
        let small = args.count("small", frames, 1, frames as u32)? as usize;
        Ok(Box::new(S3Fifo::new(frames, pages, small)))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let small = args.count("small", frames, 1, frames as u32).expect("tests give fitting values");
        Box::new(naive::NaiveS3Fifo::new(frames, small as usize, args.bit("insert-bit")))
    },
};

/// The queues of frames and the list of ghosts.
#[derive(Debug)]
pub struct S3Fifo {
    small: List,
    main: List,
    links: Links,
    in_main: Box<[bool]>,
    lives: Box<[u8]>,
    /// Pages, not frames.
    ghosts: List,
    ghost_links: Links,
    is_ghost: Box<[bool]>,
    small_share: usize,
    main_share: usize,
    /// The share of the small queue of all of RAM.
    small_most: usize,
}

impl S3Fifo {
    /// For a number of frames and pages, with 1 <= `small` <= `frames`.
    pub fn new(frames: usize, pages: usize, small: usize) -> S3Fifo {
        debug_assert!(small >= 1 && small <= frames);
        S3Fifo {
            small: List::new(),
            main: List::new(),
            links: Links::new(frames),
            in_main: vec![false; frames].into_boxed_slice(),
            lives: vec![0; frames].into_boxed_slice(),
            ghosts: List::new(),
            ghost_links: Links::new(pages),
            is_ghost: vec![false; pages].into_boxed_slice(),
            small_share: small,
            main_share: frames - small,
            small_most: small,
        }
    }

    fn enter_main(&mut self, frame: usize) {
        self.main.push_tail(&mut self.links, frame);
        self.in_main[frame] = true;
        self.lives[frame] = 0;
    }

    fn remember(&mut self, page: usize) {
        self.ghosts.push_tail(&mut self.ghost_links, page);
        self.is_ghost[page] = true;
        while self.ghosts.len() > self.main_share {
            let oldest = self.ghosts.pop_head(&mut self.ghost_links).expect("there is one");
            self.is_ghost[oldest] = false;
        }
    }

    /// The head of the small queue, if it was not touched; else it goes to main.
    fn scan_small(&mut self, residents: &mut Residents<'_>) -> Option<usize> {
        let frame = self.small.pop_head(&mut self.links).expect("a page is in small");
        if residents.referenced(frame.into(), After::Clear) {
            self.enter_main(frame);
            return None;
        }
        self.remember(residents.page(frame.into()).index());
        Some(frame)
    }

    /// The head of main, if it was not touched and has no life left; else it goes to the tail.
    fn scan_main(&mut self, residents: &mut Residents<'_>) -> Option<usize> {
        let frame = self.main.pop_head(&mut self.links).expect("a page is in main");
        let lives = self.lives[frame];
        self.lives[frame] = match residents.referenced(frame.into(), After::Clear) {
            true => (lives + 1).min(LIVES_MAX),
            false if lives > 0 => lives - 1,
            false => {
                self.in_main[frame] = false;
                return Some(frame);
            }
        };
        self.main.push_tail(&mut self.links, frame);
        None
    }
}

impl Policy for S3Fifo {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        loop {
            walk += Walk(1);
            // Main over its share means small under its own, since together they hold all frames at most.
            let from_small = self.main.is_empty() || self.small.len() >= self.small_share;
            let freed = match from_small {
                true => self.scan_small(residents),
                false => self.scan_main(residents),
            };
            if let Some(frame) = freed {
                return Victim { frame: frame.into(), walk, forced: false };
            }
        }
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        let page = residents.page(frame).index();
        if self.is_ghost[page] {
            self.is_ghost[page] = false;
            self.ghosts.unlink(&mut self.ghost_links, page);
            self.enter_main(frame.index());
        } else {
            self.small.push_tail(&mut self.links, frame.index());
        }
    }

    fn resize(&mut self, frames: usize) {
        self.small_share = share(self.small_most, frames, self.in_main.len());
        self.main_share = frames - self.small_share;
    }

    fn remove(&mut self, frame: FrameId) {
        let i = frame.index();
        let queue = if self.in_main[i] { &mut self.main } else { &mut self.small };
        queue.unlink(&mut self.links, i);
        self.in_main[i] = false;
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::VecDeque;

    struct S3FifoPage {
        number: u64,
        bit: bool,
        /// `None` in the small queue.
        lives: Option<u8>,
    }

    /// All resident pages in one queue; a page with a count of lives is in main, a page without one in small.
    pub struct NaiveS3Fifo {
        queue: VecDeque<S3FifoPage>,
        ghosts: VecDeque<u64>,
        frames: usize,
        small: usize,
        insert_bit: bool,
    }

    impl NaiveS3Fifo {
        pub fn new(frames: usize, small: usize, insert_bit: bool) -> NaiveS3Fifo {
            NaiveS3Fifo { queue: VecDeque::new(), ghosts: VecDeque::new(), frames, small, insert_bit }
        }

        fn count(&self, main: bool) -> usize {
            self.queue.iter().filter(|p| p.lives.is_some() == main).count()
        }

        fn take_oldest(&mut self, main: bool) -> S3FifoPage {
            let at = self.queue.iter().position(|p| p.lives.is_some() == main).expect("the queue is not empty");
            self.queue.remove(at).expect("it is there")
        }

        fn evict(&mut self, walk: &mut u64) -> u64 {
            while self.count(false) >= self.small {
                *walk += 1;
                let page = self.take_oldest(false);
                if !page.bit {
                    self.ghosts.push_back(page.number);
                    return page.number;
                }
                self.queue.push_back(S3FifoPage { bit: false, lives: Some(0), ..page });
                if self.count(true) > self.frames - self.small {
                    break;
                }
            }
            loop {
                *walk += 1;
                let page = self.take_oldest(true);
                let lives = match (page.bit, page.lives.expect("a page of main")) {
                    (false, 0) => return page.number,
                    (false, n) => n - 1,
                    (true, 3) => 3,
                    (true, n) => n + 1,
                };
                self.queue.push_back(S3FifoPage { bit: false, lives: Some(lives), ..page });
            }
        }
    }

    impl Naive for NaiveS3Fifo {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.queue.iter_mut().find(|p| p.number == page) {
                entry.bit = true;
                return Touch::Hit;
            }
            let mut walk = 0;
            let victim = (self.queue.len() == self.frames).then(|| self.evict(&mut walk));
            while self.ghosts.len() > self.frames - self.small {
                self.ghosts.pop_front();
            }
            let known = self.ghosts.contains(&page);
            self.ghosts.retain(|g| *g != page);
            self.queue.push_back(S3FifoPage { number: page, bit: self.insert_bit, lives: known.then_some(0) });
            Touch::TrueFault { victim, walk, forced: false }
        }
    }
}
