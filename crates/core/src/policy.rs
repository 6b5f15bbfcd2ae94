//! Policies: which page leaves RAM when a frame is needed.
//!
//! A policy keeps lists of frames and answers one question, [`Policy::victim`]. The engine tells it when a page comes
//! ([`Policy::insert`]), when a touch of a resident but unmapped page maps it again ([`Policy::promote`]), and when a
//! page is gone for another reason ([`Policy::remove`]). A policy never sees a hit: hits set reference bits, and the
//! policy reads the bits.
//!
//! To add one: copy `policy/fifo.rs`, write its naive twin beside it, and add its `SPEC` to [`ALL`]. The command line, sweeps,
//! fuzzing, differential tests and help find it there.

use alloc::boxed::Box;
use core::fmt;

use crate::frames::Residents;
use crate::ids::FrameId;
use crate::units::Walk;

mod choice;
pub mod clock;
pub mod clock_pro;
pub mod fifo;
pub mod fifo_sc;
pub mod generations;
pub mod multi_queue;
pub mod s3_fifo;
pub mod second_chance;
pub mod sieve;
pub mod two_handed_clock;

pub use choice::{Arguments, Param, ParamKind, PolicyChoice, PolicyError, Value};

/// Every policy that the engine can drive, in the order in which help shows them.
pub const ALL: &[&PolicySpec] = &[
    &fifo::SPEC,
    &clock::SPEC,
    &two_handed_clock::SPEC,
    &clock::PA_SPEC,
    &fifo_sc::SPEC,
    &fifo_sc::PA_SPEC,
    &second_chance::SPEC,
    &sieve::SPEC,
    &s3_fifo::SPEC,
    &clock_pro::SPEC,
    &generations::SPEC,
    &multi_queue::SPEC,
];

/// A victim and what it took to find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The frame whose page leaves. The policy has forgotten it already.
    pub frame: FrameId,
    /// Frames examined in this search.
    pub walk: Walk,
    /// It was taken whatever its bit, since the budget of the walk was used up.
    pub forced: bool,
}

/// A page replacement policy.
pub trait Policy: Send {
    /// A true fault has come, before a frame is sought, and also when a frame is free.
    fn true_fault(&mut self, _residents: &mut Residents<'_>) {}

    /// Chooses the page that leaves and forgets its frame. Called only when the policy holds at least one frame.
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim;

    /// A page has been loaded into `frame` and mapped.
    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>);

    /// Another task's slice begins: pages that come or are touched from now on are pages of the running slice.
    fn begin_slice(&mut self, _residents: &mut Residents<'_>) {}

    /// As [`Policy::victim`] for a page that nobody stands still for; `None`: only pages of the running slice are left, as far as it knows.
    /// A policy that keeps no slices apart finds any victim.
    fn victim_behind_slice(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        (!self.is_empty()).then(|| self.victim(residents))
    }

    /// A page has been loaded into `frame` for nobody and is not mapped; it enters behind the pages of the running slice. A policy that
    /// keeps no slices apart takes it as any other.
    fn insert_behind_slice(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.insert(frame, residents);
    }

    /// The page in `frame` was wished for and is in RAM: it becomes as recent as one that is prefetched now, unless it belongs to the running
    /// slice. False: it does, or the policy keeps no slices apart; nothing has changed.
    fn renew_behind_slice(&mut self, _frame: FrameId, _residents: &mut Residents<'_>) -> bool {
        false
    }

    /// The page in `frame` was resident but not mapped and has been touched: a false fault.
    fn promote(&mut self, _frame: FrameId, _residents: &mut Residents<'_>) {}

    /// The page in `frame` is gone though the policy did not choose it.
    fn remove(&mut self, frame: FrameId);

    /// The reference bit a new page starts with. True is what a demand-paging MMU does, since the access that faulted is repeated;
    /// false is the reading of the caching literature. On a machine without reference bits it is always taken as true.
    fn insert_bit(&self) -> bool {
        true
    }

    /// Frames that it holds, for `Engine::check`.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Makes a policy for a number of frames and pages.
pub type Build = fn(&Arguments, frames: usize, pages: usize) -> Result<Box<dyn Policy>, PolicyError>;

/// What a policy is called, what it can be told, and how it is made.
pub struct PolicySpec {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Makes it for a number of frames and pages; fails if a parameter does not fit the number of frames.
    pub build: Build,
    /// Makes its naive twin, slow and obviously right, for differential tests.
    #[cfg(feature = "naive")]
    pub naive: fn(&Arguments, frames: usize) -> Box<dyn crate::naive::Naive>,
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The policy of this name.
pub fn find(name: &str) -> Option<&'static PolicySpec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// The parameter that policies with reference bits share.
pub const INSERT_BIT: Param = Param {
    name: "insert-bit",
    help: "reference bit of a page just loaded: set (an MMU, since the faulting access is repeated) or clear (caching literature)",
    kind: ParamKind::Bit { default: true },
};
