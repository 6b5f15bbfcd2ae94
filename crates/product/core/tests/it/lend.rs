//! Frames given away and got back: which pages leave, that a smaller engine decides as one that was made so, and what
//! is not accepted.

use std::collections::VecDeque;

use crate::support::{Rig, HARDWARE};
use coldframe_core::naive::Touch;
use coldframe_core::{Access, Caps, Event, PageId};
use proptest::prelude::*;

const PAGES: usize = 64;

/// FIFO in RAM that changes, slow and obviously right.
struct Twin {
    queue: VecDeque<u32>,
    ram: usize,
    all: usize,
    batch: usize,
}

impl Twin {
    fn reference(&mut self, page: u32) {
        if self.queue.contains(&page) {
            return;
        }
        let batch = if self.ram == self.all { self.batch } else { self.batch.min(self.ram / 8).max(1) };
        if self.queue.len() == self.ram {
            self.queue.drain(..batch.min(self.ram));
        }
        self.queue.push_back(page);
    }

    fn has(&mut self, ram: usize) {
        self.ram = ram;
        self.queue.drain(..self.queue.len().saturating_sub(ram));
    }
}

proptest! {
    #[test]
    fn an_engine_that_lends_and_borrows_does_what_its_naive_twin_does(
        frames in 2usize..40,
        batch in 1usize..9,
        steps in prop::collection::vec((0u32..PAGES as u32, 0u8..8), 1..400),
    ) {
        let mut rig = Rig::with_batch("fifo", frames, PAGES, HARDWARE, batch);
        let mut twin = Twin { queue: VecDeque::new(), ram: frames, all: frames, batch };
        for (page, what) in steps {
            let by = page % 5;
            match what {
                0 if twin.ram > by as usize => {
                    rig.tell(Event::Lend { frames: by });
                    rig.settle();
                    twin.has(twin.ram - by as usize);
                }
                1 if twin.ram + by as usize <= frames => {
                    rig.tell(Event::Borrow { frames: by });
                    twin.has(twin.ram + by as usize);
                }
                _ => {
                    rig.reference(page);
                    twin.reference(page);
                }
            }
            prop_assert_eq!(rig.engine.frames().len(), twin.ram);
            let resident = |page: &u32| rig.engine.frame_of(PageId(*page)).is_some();
            let here: Vec<u32> = (0..PAGES as u32).filter(resident).collect();
            let mut expected: Vec<u32> = twin.queue.iter().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(here, expected);
        }
    }

    /// Sizes that are shares of RAM follow it.
    #[test]
    fn an_engine_that_has_lent_half_of_its_frames_decides_as_one_of_half_the_size(
        string in prop::collection::vec(0u32..24, 1..400),
    ) {
        for policy in [
            "fifo", "clock", "sieve", "second-chance", "generations", "active-inactive", "fifo-sc:valid=40%",
            "pa-fifo-sc:valid=40%", "s3-fifo:small=20%", "multi-queue:watched=10%,ghosts=100%",
        ] {
            let mut lent = Rig::new(policy, "parallel", 20, PAGES, HARDWARE);
            lent.tell(Event::Lend { frames: 10 });
            let mut half = Rig::new(policy, "parallel", 10, PAGES, HARDWARE);
            for (i, page) in string.iter().enumerate() {
                let outcomes = [&mut lent, &mut half].map(|rig| match rig.reference(*page) {
                    Touch::TrueFault { victim, forced, .. } => Some((victim, forced)),
                    _ => None,
                });
                prop_assert_eq!(outcomes[0], outcomes[1], "{} reference {}", policy, i);
            }
        }
    }
}

#[test]
fn what_pins_and_loads_in_flight_may_need_is_not_lent() {
    let mut rig = Rig::new("clock", "parallel", 8, 16, Caps { buffers: 3, ..HARDWARE });
    assert!(rig.engine.accepts(&Event::Lend { frames: 5 }) && !rig.engine.accepts(&Event::Lend { frames: 6 }));
    rig.reference(0);
    rig.tell(Event::Pinned { page: PageId(0) });
    assert!(rig.engine.accepts(&Event::Lend { frames: 4 }) && !rig.engine.accepts(&Event::Lend { frames: 5 }));
    assert!(!rig.engine.accepts(&Event::Borrow { frames: 1 }), "nothing is lent");
    (1..4).for_each(|page| rig.fault(page - 1, page, Access::Write));
    rig.tell(Event::Lend { frames: 4 });
    rig.settle();
    assert_eq!((rig.machine.resumed.len(), rig.engine.frames().len(), rig.engine.frames().lent()), (4, 4, 4));
    assert!(rig.machine.read(PageId(0)).is_some(), "a pinned page stays");
    rig.tell(Event::Borrow { frames: 4 });
    (4..8).for_each(|page| _ = rig.reference(page));
    assert_eq!(rig.engine.counts().evictions, 0);
}
