//! FIFO: the page that has been in RAM longest is evicted. It reads no bits, so a search takes one step. Use it where
//! a machine has no reference bits, and nowhere else: a page in constant use is evicted as soon as any other.

use alloc::boxed::Box;

use super::{Policy, PolicySpec, Victim};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "fifo",
    summary: "the page longest in RAM leaves",
    source: "Belady 1966, section on FIFO",
    params: &[],
    build: |_, frames, _| Ok(Box::new(Fifo::new(frames))),
    #[cfg(feature = "naive")]
    naive: |_, frames| Box::new(naive::NaiveFifo { queue: Default::default(), frames }),
};

/// Frames in the order in which their pages came.
#[derive(Debug)]
pub struct Fifo {
    queue: List,
    links: Links,
}

impl Fifo {
    /// For a number of frames.
    pub fn new(frames: usize) -> Fifo {
        Fifo { queue: List::new(), links: Links::new(frames) }
    }
}

impl Policy for Fifo {
    fn victim(&mut self, _: &mut Residents<'_>) -> Victim {
        let frame = self.queue.pop_head(&mut self.links).expect("a page is resident");
        Victim { frame: frame.into(), walk: Walk(1), forced: false }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.queue.push_tail(&mut self.links, frame.index());
    }

    fn remove(&mut self, frame: FrameId) {
        self.queue.unlink(&mut self.links, frame.index());
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::VecDeque;

    pub struct NaiveFifo {
        pub queue: VecDeque<u64>,
        pub frames: usize,
    }

    impl Naive for NaiveFifo {
        fn reference(&mut self, page: u64) -> Touch {
            if self.queue.contains(&page) {
                return Touch::Hit;
            }
            let victim = if self.queue.len() == self.frames { self.queue.pop_front() } else { None };
            self.queue.push_back(page);
            Touch::TrueFault { victim, walk: u64::from(victim.is_some()), forced: false }
        }
    }
}
