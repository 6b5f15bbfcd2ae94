//! SIEVE: a queue in order of arrival, and one hand that moves from the oldest page to the newest. Spared pages stay
//! in place.
//!
//! ```text
//!   oldest                hand →                     newest
//!     p ── p ── p ── [bit set: clear, pass] ── p ── p ← new pages
//! ```
//!
//! Source: Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024, section 3.1 and algorithm 1. Clock would move a spared
//! page behind the new ones; SIEVE does not. So new pages are examined soon after they come, and pages that stay are
//! examined again only when the hand has passed all others. In SIEVE a hit sets one bit and nothing else, so
//! reference bits need no change: with `insert-bit=clear`, the paper's reading, every victim is the paper's. When the
//! hand moves past the newest page, it is at no page, as in the paper, and the next search starts at the oldest.
//!
//! A search examines each page at most once before it meets one whose bit it has cleared itself: frames + 1 steps.
//!
//! When not to use it: if programs change their phase or loop. Old pages that were touched once since the hand passed
//! stay for a whole round, while new pages that are needed soon are evicted. The paper itself says that SIEVE is not
//! scan-resistant and is meant for web caches. Do not use it with `insert-bit=set` or without hardware bits: every
//! new page then survives the hand's first visit, and the first visit is where SIEVE evicts new pages.

use alloc::boxed::Box;

use super::{Param, ParamKind, Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "sieve",
    summary: "Clock whose hand leaves spared pages in place, so that new ones are sifted early",
    source: "Zhang et al., NSDI 2024, section 3.1",
    params: &[Param { kind: ParamKind::Bit { default: false }, ..INSERT_BIT }],
    build: |_, frames, _| Ok(Box::new(Sieve::new(frames))),
    #[cfg(feature = "naive")]
    naive: |args, frames| Box::new(naive::NaiveSieve::new(frames, args.bit("insert-bit"))),
};

/// Frames in the order in which their pages came, and the hand.
#[derive(Debug)]
pub struct Sieve {
    queue: List,
    links: Links,
    /// The frame that is examined next; `None`: the oldest.
    hand: Option<usize>,
}

impl Sieve {
    /// For a number of frames.
    pub fn new(frames: usize) -> Sieve {
        Sieve { queue: List::new(), links: Links::new(frames), hand: None }
    }
}

impl Policy for Sieve {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        loop {
            let i = self.hand.or(self.queue.head()).expect("a page is resident");
            let frame = FrameId::from(i);
            walk += Walk(1);
            self.hand = self.links.next(i);
            if !residents.referenced(frame, After::Clear) {
                self.queue.unlink(&mut self.links, i);
                return Victim { frame, walk, forced: false };
            }
        }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.queue.push_tail(&mut self.links, frame.index());
    }

    fn remove(&mut self, frame: FrameId) {
        if self.hand == Some(frame.index()) {
            self.hand = self.links.next(frame.index());
        }
        self.queue.unlink(&mut self.links, frame.index());
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_whose_page_is_gone_goes_on_to_the_next_newer_one() {
        let mut sieve = Sieve::new(3);
        (0..3).for_each(|i| sieve.queue.push_tail(&mut sieve.links, i));
        sieve.hand = Some(1);
        sieve.remove(FrameId(1));
        assert_eq!(sieve.hand, Some(2));
        sieve.remove(FrameId(2));
        assert_eq!((sieve.hand, sieve.len()), (None, 1));
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::vec::Vec;

    /// Pages with their bits, newest first as in the paper's figure. The hand is a place in the list, counted from
    /// the oldest page.
    pub struct NaiveSieve {
        newest_first: Vec<(u64, bool)>,
        passed: usize,
        frames: usize,
        insert_bit: bool,
    }

    impl NaiveSieve {
        pub fn new(frames: usize, insert_bit: bool) -> NaiveSieve {
            NaiveSieve { newest_first: Vec::new(), passed: 0, frames, insert_bit }
        }
    }

    impl Naive for NaiveSieve {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(at) = self.newest_first.iter().position(|(p, _)| *p == page) {
                self.newest_first[at].1 = true;
                return Touch::Hit;
            }
            let (mut victim, mut walk) = (None, 0);
            while victim.is_none() && self.newest_first.len() == self.frames {
                walk += 1;
                let at = self.frames - 1 - self.passed;
                match self.newest_first[at].1 {
                    true => {
                        self.newest_first[at].1 = false;
                        self.passed += 1;
                    }
                    // The number of passed pages is the same, and the next newer page moves up.
                    false => victim = Some(self.newest_first.remove(at).0),
                }
                // Past the newest page. The page that comes next was not there yet.
                if self.passed == self.newest_first.len() {
                    self.passed = 0;
                }
            }
            self.newest_first.insert(0, (page, self.insert_bit));
            Touch::TrueFault { victim, walk, forced: false }
        }
    }
}
