//! Policies: which page leaves RAM when a frame is needed.
//!
//! A policy keeps lists of frames and answers one question, [`Policy::victim`]. The engine tells it when a page comes
//! ([`Policy::insert`]), when a touch of a resident but unmapped page maps it again ([`Policy::promote`]), and when a
//! page is gone for another reason ([`Policy::remove`]). A policy never sees a hit: hits set reference bits, and the
//! policy reads the bits.
//!
//! To add one: copy `policy/fifo.rs`, write its naive twin in the same file, and add its `SPEC` to [`ALL`]. The command
//! line, sweeps, fuzzing, all tests, help and the book find the policy there.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::frames::Residents;
use crate::ids::FrameId;
use crate::units::Walk;

pub mod active_inactive;
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
    &active_inactive::SPEC,
    &generations::SPEC,
    &multi_queue::SPEC,
];

/// A victim and the work of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The frame of the victim. The policy has removed it from its lists.
    pub frame: FrameId,
    /// Frames examined for it.
    pub walk: Walk,
    /// The victim was taken with any reference bit, because the walk's budget was used up.
    pub forced: bool,
}

/// A page replacement policy.
pub trait Policy: Send {
    /// A true fault has come. Called before a frame is sought, also if a frame is free.
    fn true_fault(&mut self, _residents: &mut Residents<'_>) {}

    /// Chooses the victim and removes its frame from the lists. Called only if the policy holds at least one frame.
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim;

    /// Another victim of the same search, on a machine that evicts several at once. `None`: the search's budget is
    /// spent, and the batch ends. A policy without a budget always has one.
    fn another_victim(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        Some(self.victim(residents))
    }

    /// A page has been loaded into `frame` and mapped.
    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>);

    /// Another task's slice begins: pages that are loaded or touched from now on belong to the running slice.
    fn begin_slice(&mut self, _residents: &mut Residents<'_>) {}

    /// Like [`Policy::victim`], for a prefetched page. Returns `None` if only pages of the running slice are left, as
    /// far as the policy knows. A policy that does not distinguish slices returns any victim.
    fn victim_behind_slice(&mut self, residents: &mut Residents<'_>) -> Option<Victim> {
        (!self.is_empty()).then(|| self.victim(residents))
    }

    /// A prefetched page has been loaded into `frame` and is not mapped. In the recency order it goes behind the
    /// pages of the running slice. A policy that does not distinguish slices inserts it like any other page.
    fn insert_behind_slice(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.insert(frame, residents);
    }

    /// A prefetch hint came for the page in `frame`. The page becomes as recent as one prefetched now, unless it
    /// belongs to the running slice. Returns false, without a change, if it does or if the policy does not
    /// distinguish slices.
    fn renew_behind_slice(&mut self, _frame: FrameId, _residents: &mut Residents<'_>) -> bool {
        false
    }

    /// The page in `frame` was resident but not mapped and has been touched: a false fault.
    fn promote(&mut self, _frame: FrameId, _residents: &mut Residents<'_>) {}

    /// RAM has this many frames from now on, at most as many as the policy was made for: shares of RAM follow.
    fn resize(&mut self, _frames: usize) {}

    /// The page in `frame` is gone although the policy did not choose it.
    fn remove(&mut self, frame: FrameId);

    /// Frames that it holds, for `Engine::check`.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The part of a share of `all` frames that goes to `frames` of them, at least 1.
fn share(of_all: usize, frames: usize, all: usize) -> usize {
    (of_all * frames / all).max(1)
}

/// A policy that has been made for an engine.
pub struct Made {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// The reference bit of a new page. True is what an MMU with demand paging does, since the access that faulted is
    /// repeated; false is how the caching literature reads it. On a machine without reference bits the value is taken
    /// as true.
    pub insert_bit: bool,
}

/// Makes a policy for a number of frames and pages.
pub type Build = fn(&Arguments, frames: usize, pages: usize) -> Result<Box<dyn Policy>, PolicyError>;

/// The name and parameters of a policy, and how it is made.
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

/// Each policy of the table with this value for every parameter that must be given: for tests of all policies.
pub fn texts(value: u32) -> impl Iterator<Item = String> {
    ALL.iter().map(move |spec| {
        let must = spec.params.iter().filter(|param| param.default().is_none());
        let values: Vec<_> = must.map(|param| alloc::format!("{}={value}", param.name)).collect();
        [spec.name, &values.join(",")].join(if values.is_empty() { "" } else { ":" })
    })
}

/// The parameter that policies with reference bits share.
pub const INSERT_BIT: Param = Param {
    name: "insert-bit",
    help: "reference bit of a page just loaded: set (an MMU, since the faulting access is repeated) or clear (caching \
           literature)",
    kind: ParamKind::Bit { default: true },
};
