//! The run time of a program in less RAM on this machine: its window trace goes through the live pager's engine, and
//! each event has its cost on this machine.
//!
//! ```text
//!   window trace ─ rows ─► processes ─ simulate ─► counts by RAM ─ price (Here) ─► run time by RAM ─► words, JSON
//!                          (dense pages)  (machine: the engine, no time)            (curve: knee, thrash, advice)
//! ```
//! RAM here is the RAM of `coldframe run --ram`: RAM for paged memory, for each process. Memory that is not paged
//! comes on top and is printed separately.

use std::path::Path;

use coldframe_core::Bytes;
use coldframe_device::here::Here;
use coldframe_journal::span::PAGE;

use crate::error::ReportError;

mod curve;
pub mod json;
pub mod machine;
pub mod price;
pub mod rows;
pub mod simulate;
pub mod tier;
pub mod words;

pub use curve::{Point, THRASHES};
pub use json::Answer;
pub use price::Costs;

use curve::Curve;
use rows::Rows;

/// The live pager's configuration, as far as it affects evictions and loads.
#[derive(Clone, PartialEq, Debug)]
pub struct Pager {
    /// Policy, as on the command line.
    pub policy: String,
    /// Most pages read ahead.
    pub read_ahead: u32,
    /// Victims that are evicted together.
    pub evict_batch: usize,
    /// Loads in flight.
    pub buffers: usize,
    /// The least RAM, in bytes.
    pub ram_least: u64,
}

impl Default for Pager {
    /// The defaults of `coldframe run`: `live/src/{options,calibrate,task,start}.rs`. 24 victims are evicted together
    /// if a read of a page takes about 50 us.
    fn default() -> Pager {
        let (policy, ram_least) = ("multi-queue".into(), 64 * PAGE);
        Pager { policy, read_ahead: 16, evict_batch: 24, buffers: 32 + 64 / 2, ram_least }
    }
}

/// The time of an eviction beside a read (`live/src/calibrate.rs`, `evict_batch`), in nanoseconds.
const VICTIM_NS: u64 = 2_000;
/// Nothing overlaps with a device this fast (`live/src/calibrate.rs`, `FAST_NS`).
const FAST_NS: u64 = 8_000;
/// Bounds of a batch (there as well).
const BATCH: std::ops::RangeInclusive<u64> = 8..=32;

impl Pager {
    /// As the pager adapts to this machine: as many victims are evicted together as a read of the device hides.
    pub fn of(here: &Here) -> Pager {
        let read = here.device_fault.mean.0 / 1000;
        let batch = if read < FAST_NS { *BATCH.end() } else { (read / VICTIM_NS).clamp(*BATCH.start(), *BATCH.end()) };
        Pager { evict_batch: batch as usize, ..Pager::default() }
    }

    /// Frames of the engine of a pager with this much RAM: all frames without the reserve for pages on their way out
    /// (`live/src/budget.rs`).
    pub fn engine_frames(&self, ram: u64) -> usize {
        let frames = (ram / PAGE) as usize;
        let batch = self.evict_batch.min(frames / 8);
        let reserve = batch.max((4 * batch).min(frames / 64)).min(frames / 8);
        frames - reserve
    }

    /// The least RAM whose engine has this many frames.
    pub fn ram_for(&self, frames: u64) -> Bytes {
        let mut ram = (frames * PAGE).max(self.ram_least);
        while (self.engine_frames(ram) as u64) < frames {
            ram += PAGE;
        }
        Bytes(ram)
    }
}

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The costs of paging here.
    pub costs: Costs,
    /// The source of these costs, for `How sure`.
    pub measured: String,
    /// The pager.
    pub pager: Pager,
    /// The longest extra run time, as a part of the program's own time.
    pub slowdown: f64,
    /// The program's own time, if it is known better than from the trace.
    pub program_seconds: Option<f64>,
}

impl Question {
    /// The default of the longest extra run time.
    pub const SLOWDOWN: f64 = 0.1;
}

/// The run time of the program recorded at `path`, by RAM.
///
/// # Errors
/// The trace cannot be read or lacks the program's facts, or this version does not know the policy.
pub fn answer(path: &Path, question: &Question) -> Result<Answer, ReportError> {
    let rows = Rows::read(path, question.program_seconds)?;
    let curve = Curve::find(&rows, question)?;
    Ok(Answer::new(path, &rows, question, &curve))
}
