//! Clock with two hands: the front hand clears reference bits; the back hand, `spread` frames behind, evicts the
//! first page that was not touched in between. The spread, and not the size of memory, decides how long a page may be
//! idle. With few faults a small spread makes almost every page look idle; use one hand there. With a budget it is
//! PA-Clock with two arms (SWL section 3.2): after so many steps the page at the front hand leaves, whatever its bit.

use alloc::boxed::Box;
use alloc::vec;

use super::{Param, ParamKind, Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::machine::After;
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "two-handed-clock",
    summary: "the front hand clears bits, the back hand evicts the first page not touched in between",
    source: "Babaoglu and Joy 1981; SWL section 3.2 (\"a circular queue with two arms\")",
    params: &[
        Param {
            name: "spread",
            help: "frames from the back hand to the front hand, 1 to frames - 1",
            kind: ParamKind::Count { min: 1, default: None },
        },
        Param {
            name: "budget",
            help: "frames examined before the page at the front hand is taken (SWL's PA-Clock with two arms)",
            kind: ParamKind::Limit,
        },
        INSERT_BIT,
    ],
    build: |args, frames, _| {
        let spread = args.count("spread", frames, 1, frames as u32 - 1)?;
        let budget = args.limit("budget").map_or(u64::MAX, u64::from);
        Ok(Box::new(TwoHandedClock { budget, ..TwoHandedClock::new(frames, spread as usize) }))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let spread = args.count("spread", frames, 1, frames as u32 - 1).expect("tests give fitting values");
        let budget = args.limit("budget").map_or(u64::MAX, u64::from);
        Box::new(naive::NaiveTwoHanded::new(frames, spread as usize, budget, args.bit("insert-bit")))
    },
};

/// The back hand; the front hand is `spread` frames ahead.
#[derive(Debug)]
pub struct TwoHandedClock {
    in_circle: Box<[bool]>,
    count: usize,
    back: usize,
    spread: usize,
    budget: u64,
}

impl TwoHandedClock {
    /// For a number of frames, with 1 <= `spread` < `frames`; without a budget.
    pub fn new(frames: usize, spread: usize) -> TwoHandedClock {
        debug_assert!(spread >= 1 && spread < frames);
        TwoHandedClock {
            in_circle: vec![false; frames].into_boxed_slice(),
            count: 0,
            back: 0,
            spread,
            budget: u64::MAX,
        }
    }
}

impl Policy for TwoHandedClock {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let frames = self.in_circle.len();
        let mut walk = Walk::ZERO;
        loop {
            let (back, front) = (self.back, (self.back + self.spread) % frames);
            if walk.0 == self.budget {
                let full = (0..frames).map(|i| (front + i) % frames).find(|frame| self.in_circle[*frame]);
                let frame = FrameId::from(full.expect("a frame holds a page"));
                self.remove(frame);
                return Victim { frame, walk, forced: true };
            }
            self.back = (back + 1) % frames;
            if self.in_circle[front] {
                residents.referenced(front.into(), After::Clear);
            }
            // A frame that is free or reserved for a load is passed over without a step.
            if !self.in_circle[back] {
                continue;
            }
            walk += Walk(1);
            let frame = FrameId::from(back);
            if !residents.referenced(frame, After::Keep) {
                self.remove(frame);
                return Victim { frame, walk, forced: false };
            }
        }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.in_circle[frame.index()] = true;
        self.count += 1;
    }

    fn remove(&mut self, frame: FrameId) {
        self.in_circle[frame.index()] = false;
        self.count -= 1;
    }

    fn len(&self) -> usize {
        self.count
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::VecDeque;

    /// The queue form: the back hand is the head, the front hand the entry at `spread`, and both move on by rotating
    /// the queue.
    pub struct NaiveTwoHanded {
        queue: VecDeque<(u64, bool)>,
        frames: usize,
        spread: usize,
        budget: u64,
        insert_bit: bool,
    }

    impl NaiveTwoHanded {
        pub fn new(frames: usize, spread: usize, budget: u64, insert_bit: bool) -> NaiveTwoHanded {
            NaiveTwoHanded { queue: VecDeque::new(), frames, spread, budget, insert_bit }
        }
    }

    impl Naive for NaiveTwoHanded {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.queue.iter_mut().find(|(p, _)| *p == page) {
                entry.1 = true;
                return Touch::Hit;
            }
            if self.queue.len() < self.frames {
                self.queue.push_back((page, self.insert_bit));
                return Touch::TrueFault { victim: None, walk: 0, forced: false };
            }
            let mut walk = 0;
            loop {
                if walk == self.budget {
                    let victim = core::mem::replace(&mut self.queue[self.spread], (page, self.insert_bit)).0;
                    return Touch::TrueFault { victim: Some(victim), walk, forced: true };
                }
                walk += 1;
                self.queue[self.spread].1 = false;
                let head = self.queue.pop_front().expect("frames > 0");
                if head.1 {
                    self.queue.push_back(head);
                    continue;
                }
                self.queue.push_back((page, self.insert_bit));
                return Touch::TrueFault { victim: Some(head.0), walk, forced: false };
            }
        }
    }
}
