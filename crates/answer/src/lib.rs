//! The run time of a program in less RAM on this machine: its window trace goes through the live pager's engine, and
//! each event has its cost on this machine.
//!
//! ```text
//!   window trace ─ rows ─► processes ─ simulate ─► counts by RAM ─ price (Here) ─► run time by RAM ─► words, JSON
//!                          (dense pages)  (sim's lane, no time)                     (curve: knee, thrash, advice)
//!   referenced bits ─ stretches: working set by time ─► faults by RAM ─ price of a fault ─► run time by RAM
//! ```
//! RAM here is the RAM of `coldframe run --ram`: RAM for paged memory, for each process. Memory that is not paged
//! comes on top and is printed separately.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::path::Path;

use coldframe_plan::Measured;
pub use coldframe_plan::Pager;
use coldframe_sheet::here::Here;

pub mod counts;
mod curve;
mod error;
pub mod json;
pub mod need;
pub mod price;
pub mod rows;
pub mod seen;
pub mod simulate;
pub mod stretches;
mod swap;
pub mod verdict;
mod watched;

pub use error::AnswerError;

pub use curve::{Point, THRASHES};
pub use json::{Answer, Rung};
pub use need::Need;
pub use price::Costs;
pub use seen::Seen;
pub use swap::{Price, SwapAnswer, Swapped};
pub use verdict::Verdict;
pub use watched::{of_bits, AskedOfBits};

/// The version of the form of every JSON object of this crate.
pub const SCHEMA_VERSION: u32 = 1;

use curve::Curve;
use rows::Rows;

/// The pager on this machine. A fault's whole time stands for a read of the device.
pub fn pager(here: &Here) -> Pager {
    Pager::of(&Measured { read_ns: here.device_fault.mean.0 / 1000, step_ns: 1 })
}

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The costs of paging here.
    pub costs: Costs,
    /// The source of these costs, for `How sure`.
    pub measured: String,
    /// What a page costs that comes back from the kernel's swap, for each kind that is known.
    pub swaps: Vec<Price>,
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
pub fn answer(path: &Path, question: &Question) -> Result<Answer, AnswerError> {
    let rows = Rows::read(path, question.program_seconds)?;
    let curve = Curve::find(&rows, question)?;
    let answer = Answer::new(path, &rows, question, &curve)?;
    let ram = answer.ram_bytes.unwrap_or(answer.needed_bytes / 2);
    let seen = Seen::of(&rows, &question.pager, ram)?;
    Ok(Answer { seen: Some(seen), ..answer })
}
