//! Second chance: Clock as a queue, which can take a page in anywhere, and so keeps the pages of the running task's slice together.
//!
//! ```text
//!   oldest                                  boundary                newest
//!   [ earlier slices, prefetched pages ... | pages of the running slice ]
//!     │ bit clear                  ↑       ↑                          ↑
//!     ▼                    a prefetched page               loaded pages, pages found touched
//!   victim
//! ```
//!
//! Without slices it is Clock, victim by victim. A page joins the running slice when it is loaded for the task and when the search
//! finds its bit set (the touch may have been made before the slice; then it is protected for too long, which harms the prefetched only). A
//! prefetched page that has been touched has its bit set, as any other. A prefetch takes pages before the boundary only. When not to use it: where nothing is prefetched, Clock does the same with less work.

use alloc::boxed::Box;

use super::{Policy, PolicySpec, Victim, INSERT_BIT};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "second-chance",
    summary: "Clock as a queue: prefetched pages enter behind the pages of the running slice",
    source: "SAP section 3.4 and figure 5, on Corbato 1968",
    params: &[INSERT_BIT],
    build: |args, frames, _| Ok(Box::new(SecondChance::new(frames, args.bit("insert-bit")))),
    #[cfg(feature = "naive")]
    naive: |args, frames| Box::new(super::clock::naive::NaiveClock::new(frames, u64::MAX, args.bit("insert-bit"))),
};

/// The queue.
#[derive(Debug)]
pub struct SecondChance {
    queue: List,
    links: Links,
    /// The oldest page of the running slice; all behind it belong to the slice, too.
    boundary: Option<usize>,
    insert_bit: bool,
}

impl SecondChance {
    /// For a number of frames.
    pub fn new(frames: usize, insert_bit: bool) -> SecondChance {
        SecondChance { queue: List::new(), links: Links::new(frames), boundary: None, insert_bit }
    }

    fn join_slice(&mut self, frame: usize) {
        self.queue.push_tail(&mut self.links, frame);
        self.boundary = self.boundary.or(Some(frame));
    }

    fn leave(&mut self, frame: usize) {
        if self.boundary == Some(frame) {
            self.boundary = self.links.next(frame);
        }
        self.queue.unlink(&mut self.links, frame);
    }
}

impl Policy for SecondChance {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        loop {
            let frame = self.queue.head().expect("a page is resident");
            walk += Walk(1);
            self.leave(frame);
            if !residents.referenced(frame.into(), After::Clear) {
                return Victim { frame: frame.into(), walk, forced: false };
            }
            self.join_slice(frame);
        }
    }

    fn begin_slice(&mut self) {
        self.boundary = None;
    }

    fn victim_behind_slice(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        let mut walk = Walk::ZERO;
        loop {
            let frame = self.queue.head().filter(|head| self.boundary != Some(*head))?;
            walk += Walk(1);
            self.leave(frame);
            if !residents.referenced(frame.into(), After::Clear) {
                return Some(Victim { frame: frame.into(), walk, forced: false });
            }
            self.join_slice(frame);
        }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.join_slice(frame.index());
    }

    fn insert_behind_slice(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        match self.boundary {
            Some(boundary) => self.queue.insert_before(&mut self.links, boundary, frame.index()),
            None => self.queue.push_tail(&mut self.links, frame.index()),
        }
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.index());
    }

    fn insert_bit(&self) -> bool {
        self.insert_bit
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
