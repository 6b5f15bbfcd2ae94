//! Second chance: Clock as a queue. A page can enter at any place, so the pages of the running task's slice stay
//! together.
//!
//! ```text
//!   oldest                                  boundary                newest
//!   [ earlier slices, prefetched pages ... | pages of the running slice ]
//!     │ bit clear                  ↑       ↑                          ↑
//!     ▼                    a prefetched page               loaded pages, pages found touched
//!   victim
//! ```
//!
//! Without slices it is Clock, victim by victim. When a slice begins, all bits are read, cleared and noted next to the
//! queue, so that a set bit shows a touch in the slice. A page joins the running slice when it is loaded for the
//! task, or when the search finds its bit set. A page that was touched before the slice has its second chance before
//! the boundary. A prefetch takes pages before the boundary only. A prefetched page has a second chance like the
//! pages around it; otherwise they would outlive it, although it is needed sooner. A machine without reference bits
//! pays a false fault for each cleared bit; there, touches before the slice count as touches in it.
//!
//! When not to use it: without prefetching, Clock does the same with less work, and each slice looks at every frame.

use alloc::boxed::Box;
use alloc::vec;

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
    build: |_, frames, _| Ok(Box::new(SecondChance::new(frames))),
    #[cfg(feature = "naive")]
    naive: |args, frames| Box::new(super::clock::naive::NaiveClock::new(frames, u64::MAX, args.bit("insert-bit"))),
};

/// The queue.
#[derive(Debug)]
pub struct SecondChance {
    queue: List,
    links: Links,
    /// The oldest page of the running slice; all pages behind it belong to the slice, too.
    boundary: Option<usize>,
    /// Touched before the slice, and not examined since.
    earlier: Box<[bool]>,
    /// The slice that each page joined last, and the running slice.
    joined: Box<[u64]>,
    slice: u64,
}

impl SecondChance {
    /// For a number of frames.
    pub fn new(frames: usize) -> SecondChance {
        SecondChance {
            queue: List::new(),
            links: Links::new(frames),
            boundary: None,
            earlier: vec![false; frames].into(),
            joined: vec![0; frames].into(),
            slice: 1,
        }
    }

    fn join_slice(&mut self, frame: usize) {
        self.queue.push_tail(&mut self.links, frame);
        self.joined[frame] = self.slice;
        self.boundary = self.boundary.or(Some(frame));
    }

    /// Before the boundary, as the newest page of earlier slices.
    fn join_behind_slice(&mut self, frame: usize) {
        match self.boundary {
            Some(boundary) => self.queue.insert_before(&mut self.links, boundary, frame),
            None => self.queue.push_tail(&mut self.links, frame),
        }
    }

    /// Takes the page out of the queue. Returns true if it has no second chance; otherwise it is back in the queue.
    fn examine(&mut self, frame: usize, residents: &mut Residents<'_>) -> bool {
        self.leave(frame);
        let earlier = core::mem::take(&mut self.earlier[frame]);
        if residents.referenced(frame.into(), After::Clear) {
            self.join_slice(frame);
            return false;
        }
        if earlier {
            self.join_behind_slice(frame);
        }
        !earlier
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
            if self.examine(frame, residents) {
                return Victim { frame: frame.into(), walk, forced: false };
            }
        }
    }

    fn begin_slice(&mut self, residents: &mut Residents<'_>) {
        (self.boundary, self.slice) = (None, self.slice + 1);
        if !residents.has_reference_bits() {
            return;
        }
        let mut next = self.queue.head();
        while let Some(frame) = next {
            self.earlier[frame] |= residents.referenced(frame.into(), After::Clear);
            next = self.links.next(frame);
        }
    }

    fn victim_behind_slice(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        let mut walk = Walk::ZERO;
        loop {
            let frame = self.queue.head().filter(|head| self.boundary != Some(*head))?;
            walk += Walk(1);
            if self.examine(frame, residents) {
                return Some(Victim { frame: frame.into(), walk, forced: false });
            }
        }
    }

    fn insert(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.join_slice(frame.index());
    }

    fn insert_behind_slice(&mut self, frame: FrameId, _: &mut Residents<'_>) {
        self.joined[frame.index()] = 0;
        self.earlier[frame.index()] = true;
        self.join_behind_slice(frame.index());
    }

    fn renew_behind_slice(&mut self, frame: FrameId, residents: &mut Residents<'_>) -> bool {
        let i = frame.index();
        if self.joined[i] == self.slice || residents.referenced(frame, After::Keep) {
            return false;
        }
        self.leave(i);
        self.earlier[i] = true;
        self.join_behind_slice(i);
        true
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.index());
        self.earlier[frame.index()] = false;
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
