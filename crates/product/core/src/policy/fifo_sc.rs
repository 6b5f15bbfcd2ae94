//! FIFO with second chance as in Mach 2.5, and PA-FIFO-SC, which delays the downgrade.
//!
//! ```text
//!              head                tail   head                 tail
//!   valid list  [ . . . . . . . . . ]  →   [ . . . . . . . . ]  invalid list  → victim
//!              mapped, `valid` pages       resident, not mapped
//!                        ↑ false fault promotes to the tail │
//! ```
//!
//! A touch of a page on the invalid list is a *false fault*: the page goes to the valid tail. FIFO-SC then downgrades
//! the valid head at once, so that the list keeps its size. PA-FIFO-SC (SWL section 3.2) delays this downgrade to the
//! next true fault, where the load hides it; until then the valid list is longer than `valid`. The search is short
//! and constant, so neither policy gains from a parallel handler as Clock does. Use them where references can only be
//! seen as faults.
//!
//! With slices (SAP section 3.4), a prefetched page enters the invalid list before the pages that the running slice
//! has downgraded. With a valid list of one page, FIFO-SC sees every change from page to page and is exact LRU. SAP's
//! promise can be proved for exact LRU.

use alloc::boxed::Box;
use alloc::vec;

use super::{share, Param, ParamKind, Policy, PolicySpec, Victim};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::units::Walk;

const VALID: Param = Param {
    name: "valid",
    help: "capacity of the valid list in frames or percent of all frames; SWL does not print its own",
    kind: ParamKind::Frames { default_percent: None },
};

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "fifo-sc",
    summary: "FIFO with second chance: pages wait unmapped on an invalid list before they leave",
    source: "Draves 1991 (Mach 2.5); SWL section 3.2",
    params: &[VALID],
    build: |args, frames, _| {
        let valid = args.count("valid", frames, 1, frames as u32)? as usize;
        Ok(Box::new(FifoSc::new(frames, valid, Downgrade::AtOnce)))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let valid = args.count("valid", frames, 1, frames as u32).expect("tests give fitting values");
        Box::new(naive::NaiveFifoSc::new(frames, valid as usize, None))
    },
};

/// The entry of the table of policies.
pub const PA_SPEC: PolicySpec = PolicySpec {
    name: "pa-fifo-sc",
    summary: "FIFO-SC whose downgrades wait for the next true fault, where the load hides them",
    source: "SWL (LCTES 2007) section 3.2",
    params: &[
        VALID,
        Param {
            name: "max-downgrades",
            help: "delayed downgrades done in one true fault; 3 fit behind OneNAND's load, the literal policy has no \
                   limit",
            kind: ParamKind::Limit,
        },
    ],
    build: |args, frames, _| {
        let valid = args.count("valid", frames, 1, frames as u32)? as usize;
        let most = args.limit("max-downgrades").unwrap_or(u32::MAX);
        Ok(Box::new(FifoSc::new(frames, valid, Downgrade::AtTrueFault { most })))
    },
    #[cfg(feature = "naive")]
    naive: |args, frames| {
        let valid = args.count("valid", frames, 1, frames as u32).expect("tests give fitting values");
        let most = args.limit("max-downgrades").map_or(usize::MAX, |n| n as usize);
        Box::new(naive::NaiveFifoSc::new(frames, valid as usize, Some(most)))
    },
};

/// When the downgrade after a promotion is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Downgrade {
    /// In the false fault itself.
    AtOnce,
    /// At the next true fault, with an upper limit for each true fault.
    AtTrueFault {
        /// Delayed downgrades in one true fault.
        most: u32,
    },
}

/// The two lists.
#[derive(Debug)]
pub struct FifoSc {
    valid_list: List,
    invalid_list: List,
    links: Links,
    invalid: Box<[bool]>,
    /// The first page that the running slice has downgraded, if it is still on the invalid list; otherwise the page
    /// behind it.
    boundary: Option<usize>,
    /// The slice in which each page was last downgraded, and the running slice.
    downgraded: Box<[u64]>,
    slice: u64,
    capacity: usize,
    /// The capacity for all of RAM.
    capacity_most: usize,
    downgrade: Downgrade,
}

impl FifoSc {
    /// For a number of frames, with 1 <= `valid` <= `frames`.
    pub fn new(frames: usize, valid: usize, downgrade: Downgrade) -> FifoSc {
        debug_assert!(valid >= 1 && valid <= frames);
        FifoSc {
            valid_list: List::new(),
            invalid_list: List::new(),
            links: Links::new(frames),
            invalid: vec![false; frames].into_boxed_slice(),
            boundary: None,
            downgraded: vec![0; frames].into_boxed_slice(),
            slice: 1,
            capacity: valid,
            capacity_most: valid,
            downgrade,
        }
    }

    fn downgrade_head(&mut self) -> FrameId {
        let frame = self.valid_list.pop_head(&mut self.links).expect("the valid list is over its capacity");
        self.invalid_list.push_tail(&mut self.links, frame);
        self.invalid[frame] = true;
        self.boundary = self.boundary.or(Some(frame));
        self.downgraded[frame] = self.slice;
        frame.into()
    }

    fn join_behind_slice(&mut self, frame: usize) {
        match self.boundary {
            Some(boundary) => self.invalid_list.insert_before(&mut self.links, boundary, frame),
            None => self.invalid_list.push_tail(&mut self.links, frame),
        }
        (self.invalid[frame], self.downgraded[frame]) = (true, 0);
    }

    fn leave_invalid_list(&mut self, frame: usize) {
        if self.boundary == Some(frame) {
            self.boundary = self.links.next(frame);
        }
        self.invalid_list.unlink(&mut self.links, frame);
        self.invalid[frame] = false;
    }
}

impl Policy for FifoSc {
    fn true_fault(&mut self, residents: &mut Residents<'_>) {
        let Downgrade::AtTrueFault { most } = self.downgrade else { return };
        for _ in 0..most {
            if self.valid_list.len() <= self.capacity {
                break;
            }
            let frame = self.downgrade_head();
            residents.downgrade_delayed(frame);
        }
    }

    fn victim(&mut self, _: &mut Residents<'_>) -> Victim {
        let oldest = self.invalid_list.head().or(self.valid_list.head()).expect("a page is resident");
        self.remove(oldest.into());
        Victim { frame: oldest.into(), walk: Walk(1), forced: false }
    }

    fn begin_slice(&mut self, _: &mut Residents<'_>) {
        (self.boundary, self.slice) = (None, self.slice + 1);
    }

    fn victim_behind_slice(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        // Touches of a valid page do not show, so all valid pages count as touched in the slice.
        let oldest = self.invalid_list.head().filter(|head| self.boundary != Some(*head));
        oldest.map(|_| self.victim(residents))
    }

    fn insert_behind_slice(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        // A touch of a mapped page would not show. Pages on the invalid list must show their touches.
        residents.downgrade(frame);
        self.join_behind_slice(frame.index());
    }

    fn renew_behind_slice(&mut self, frame: FrameId, _: &mut Residents<'_>) -> bool {
        let i = frame.index();
        if !self.invalid[i] || self.downgraded[i] == self.slice {
            return false;
        }
        self.leave_invalid_list(i);
        self.join_behind_slice(i);
        true
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.valid_list.push_tail(&mut self.links, frame.index());
        if self.valid_list.len() > self.capacity {
            let frame = self.downgrade_head();
            residents.downgrade(frame);
        }
    }

    fn promote(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        // The page is not on the invalid list: the touch came through an emulated reference bit, and this policy
        // never clears one.
        debug_assert!(self.invalid[frame.index()]);
        self.leave_invalid_list(frame.index());
        self.valid_list.push_tail(&mut self.links, frame.index());
        if self.downgrade == Downgrade::AtOnce && self.valid_list.len() > self.capacity {
            let frame = self.downgrade_head();
            residents.downgrade(frame);
        }
    }

    fn resize(&mut self, frames: usize) {
        self.capacity = share(self.capacity_most, frames, self.invalid.len());
    }

    fn remove(&mut self, frame: FrameId) {
        let i = frame.index();
        match self.invalid[i] {
            true => self.leave_invalid_list(i),
            false => self.valid_list.unlink(&mut self.links, i),
        }
    }

    fn len(&self) -> usize {
        self.valid_list.len() + self.invalid_list.len()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::vec::Vec;

    /// Two plain lists of pages; `delayed` is the most delayed downgrades of one true fault, `None` for FIFO-SC.
    pub struct NaiveFifoSc {
        valid: Vec<u64>,
        invalid: Vec<u64>,
        frames: usize,
        capacity: usize,
        delayed: Option<usize>,
    }

    impl NaiveFifoSc {
        pub fn new(frames: usize, capacity: usize, delayed: Option<usize>) -> NaiveFifoSc {
            NaiveFifoSc { valid: Vec::new(), invalid: Vec::new(), frames, capacity, delayed }
        }

        fn downgrade(&mut self) {
            let head = self.valid.remove(0);
            self.invalid.push(head);
        }
    }

    impl Naive for NaiveFifoSc {
        fn reference(&mut self, page: u64) -> Touch {
            if self.valid.contains(&page) {
                return Touch::Hit;
            }
            if let Some(i) = self.invalid.iter().position(|p| *p == page) {
                self.invalid.remove(i);
                self.valid.push(page);
                if self.delayed.is_none() && self.valid.len() > self.capacity {
                    self.downgrade();
                }
                return Touch::FalseFault;
            }
            let pending = self.valid.len().saturating_sub(self.capacity);
            (0..pending.min(self.delayed.unwrap_or(0))).for_each(|_| self.downgrade());
            let mut victim = None;
            if self.valid.len() + self.invalid.len() == self.frames {
                victim = Some(if self.invalid.is_empty() { self.valid.remove(0) } else { self.invalid.remove(0) });
            }
            self.valid.push(page);
            if self.valid.len() > self.capacity {
                self.downgrade();
            }
            Touch::TrueFault { victim, walk: u64::from(victim.is_some()), forced: false }
        }
    }
}
