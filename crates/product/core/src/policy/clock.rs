//! Clock (second chance), and PA-Clock, which bounds its walk.
//!
//! A hand goes round the frames. A page whose reference bit is set loses the bit and stays; the first page without
//! the bit is evicted, and the hand moves past it. In the worst case every bit is set and the hand walks frames + 1
//! steps. PA-Clock (SWL section 3.2) walks only as many steps as the load of the page hides. Then it takes the page
//! under the hand with any bit, so the search is always hidden. Where a search takes a batch of victims, the budget is
//! that of the search: the batch ends with it, and only the first victim is taken with any bit. Do not use PA-Clock
//! where the search is not hidden: without overlap its budget costs hits and gains nothing.

use alloc::boxed::Box;
use alloc::vec;

use super::{Param, ParamKind, Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::machine::After;
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "clock",
    summary: "second chance: the first page at the hand without reference bit leaves",
    source: "Corbato 1968, A paging experiment with the Multics system",
    params: &[INSERT_BIT],
    build: |_, frames, _| Ok(Box::new(Clock::new(frames, u32::MAX))),
    #[cfg(feature = "naive")]
    naive: |args, frames| Box::new(naive::NaiveClock::new(frames, u64::MAX, args.bit("insert-bit"))),
};

/// The entry of the table of policies.
pub const PA_SPEC: PolicySpec = PolicySpec {
    name: "pa-clock",
    summary: "Clock whose walk ends after a budget of steps: the page at the hand leaves whatever its bit",
    source: "SWL (LCTES 2007) section 3.2",
    params: &[
        Param {
            name: "budget",
            help:
                "frames that one search examines before it takes the page at the hand; 13 steps fit behind OneNAND's \
                   load (SWL figure 7)",
            kind: ParamKind::Count { min: 1, default: None },
        },
        INSERT_BIT,
    ],
    build: |args, frames, _| {
        let budget = args.count("budget", frames, 1, u32::MAX)?;
        Ok(Box::new(Clock::new(frames, budget)))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let budget = args.limit("budget").map_or(u64::MAX, u64::from);
        Box::new(naive::NaiveClock::new(frames, budget, args.bit("insert-bit")))
    },
};

/// The hand, and the frames that hold pages.
#[derive(Debug)]
pub struct Clock {
    in_circle: Box<[bool]>,
    count: usize,
    hand: usize,
    budget: u32,
}

impl Clock {
    /// Makes it for a number of frames; `budget` is the most frames that one search examines, for all its victims
    /// together.
    pub fn new(frames: usize, budget: u32) -> Clock {
        Clock { in_circle: vec![false; frames].into_boxed_slice(), count: 0, hand: 0, budget }
    }

    /// Walks until a page without the bit, or until the budget is spent; then any page leaves, if one `must`.
    fn search(&mut self, residents: &mut Residents<'_>, must: bool) -> Option<Victim> {
        let left = u64::from(self.budget).saturating_sub(residents.walked().0);
        let mut walk = 0;
        loop {
            // A frame that is free or reserved for a load is not part of the circle now.
            while !self.in_circle[self.hand] {
                self.advance();
            }
            let (frame, forced) = (FrameId::from(self.hand), walk == left);
            if forced && !must {
                residents.walked_in_vain(Walk(walk));
                return None;
            }
            walk += u64::from(!forced);
            let leaves = forced || !residents.referenced(frame, After::Clear);
            self.advance();
            if leaves {
                self.remove(frame);
                return Some(Victim { frame, walk: Walk(walk), forced });
            }
        }
    }

    fn advance(&mut self) {
        self.hand += 1;
        if self.hand == self.in_circle.len() {
            self.hand = 0;
        }
    }
}

impl Policy for Clock {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        self.search(residents, true).expect("any page may leave")
    }

    fn another_victim(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        self.search(residents, false)
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
pub(super) mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::VecDeque;

    /// The queue form: a page with its bit set goes back to the tail.
    pub struct NaiveClock {
        queue: VecDeque<(u64, bool)>,
        frames: usize,
        budget: u64,
        insert_bit: bool,
    }

    impl NaiveClock {
        pub fn new(frames: usize, budget: u64, insert_bit: bool) -> NaiveClock {
            NaiveClock { queue: VecDeque::new(), frames, budget, insert_bit }
        }
    }

    impl Naive for NaiveClock {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.queue.iter_mut().find(|(p, _)| *p == page) {
                entry.1 = true;
                return Touch::Hit;
            }
            let (mut victim, mut walk, mut forced) = (None, 0, false);
            while self.queue.len() == self.frames && victim.is_none() {
                let (head, bit) = self.queue.pop_front().expect("frames > 0");
                forced = walk == self.budget;
                walk += u64::from(!forced);
                if bit && !forced {
                    self.queue.push_back((head, false));
                    continue;
                }
                victim = Some(head);
                break;
            }
            self.queue.push_back((page, self.insert_bit));
            Touch::TrueFault { victim, walk, forced }
        }
    }
}
