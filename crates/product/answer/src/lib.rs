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
use std::time::Duration;

pub use coldframe_plan::Pager;
use coldframe_sheet::here::Here;
use coldframe_store::heat::{heat_of, Heat};
use coldframe_store::{Provenance, Reader};

mod awake;
pub mod bench;
pub mod bundle;
pub mod calibrate;
pub mod check;
pub mod child;
mod common;
pub mod compare;
pub mod compared;
pub mod counts;
mod curve;
pub mod device;
mod device_answer;
pub mod device_counts;
pub mod device_pages;
mod device_seen;
mod device_sizes;
pub mod device_trial;
mod device_watch;
mod disk;
pub mod doctor;
mod error;
pub mod guards;
mod kinds;
mod listener;
pub mod machine;
pub mod machine_sheet;
pub mod measure;
pub mod memory_use;
pub mod need;
mod not_paged;
pub mod nothing;
mod order;
mod page_cache;
pub mod pager;
pub mod pair;
pub mod park;
pub mod price;
mod prices;
pub mod program;
pub mod record;
pub mod recorded;
pub mod rows;
pub mod run;
pub mod run_by;
pub mod run_kernel;
pub mod setup;
pub mod simulate;
pub mod squeeze;
mod stand_alone;
pub mod streams;
pub mod stretches;
mod swap;
pub mod top;
pub mod trials;
pub mod turns;
pub mod verdict;
pub mod watch;
mod watched;

pub use common::{Common, Known, DEVICE};
pub use curve::{Point, THRASHES};
pub use error::AnswerError;
pub use kinds::{Answer, Method};
pub use listener::{Listener, Silent};
pub use memory_use::MemoryUse;
pub use need::Need;
pub use not_paged::{File, NotPaged};
pub use price::Costs;
pub use recorded::Recorded;
pub use swap::{Price, SwapAnswer, Swapped};
pub use trials::{By, Measured};
pub use verdict::Verdict;
pub use watched::Watched;

/// The version of the form of every JSON object of this crate.
pub const SCHEMA_VERSION: u32 = 1;

use curve::Curve;
use rows::Rows;

/// The pager on this machine. A fault's whole time stands for a read of the device.
pub fn pager(here: &Here) -> Pager {
    Pager::of(&coldframe_plan::Measured { read_ns: here.device_fault.mean.0 / 1000, step_ns: 1 })
}

/// A recording, whose trace is opened once.
pub struct Reading {
    /// Its path, for people.
    pub trace: String,
    /// What its recorder noted.
    pub provenance: Provenance,
    /// What was touched.
    pub rows: Rows,
    /// Where and when, if that was asked for.
    pub heat: Option<Heat>,
}

impl Reading {
    /// Reads a trace. `seconds`: the stand-alone time, if it is known better than from the trace; `map`: rows and
    /// columns of a map of touched memory.
    pub fn read(path: &Path, seconds: Option<f64>, map: Option<(usize, usize)>) -> Result<Reading, AnswerError> {
        let mut reader = Reader::open(path)?;
        let provenance = reader.provenance().clone();
        let rows = Rows::read(path, &mut reader, seconds)?;
        let heat = map.map(|(rows, columns)| heat_of(&mut reader, path, rows, columns)).transpose()?;
        Ok(Reading { trace: path.display().to_string(), provenance, rows, heat })
    }
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
    /// What the user wants to know.
    pub limits: Limits,
}

/// What the user wants to know about a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest extra run time, as a part of the stand-alone time.
    pub slowdown: f64,
    /// A size of RAM whose cost the answer says, too.
    pub ram: Option<u64>,
    /// The program is ended, or the watching of a process ends, after this time.
    pub time: Option<Duration>,
    /// The program runs once: all times are predicted.
    pub once: bool,
}

/// Extra seconds that are never too many: about what a pager takes to start and to end. They matter for programs of less
/// than a tenth of a second.
pub const UNNOTICED: f64 = 0.01;

impl Default for Limits {
    fn default() -> Limits {
        Limits { slowdown: 0.1, ram: None, time: None, once: false }
    }
}

impl Limits {
    /// The longest good run of a program that takes so many seconds alone.
    pub(crate) fn longest(&self, alone: f64) -> f64 {
        alone + (self.slowdown * alone).max(UNNOTICED)
    }

    /// With this slowdown, if there is one.
    #[must_use]
    pub fn slower(slowdown: Option<f64>) -> Limits {
        let own = Limits::default();
        Limits { slowdown: slowdown.unwrap_or(own.slowdown), ..own }
    }
}

/// The run time of a recorded program, by RAM.
pub fn answer(reading: &Reading, question: &Question) -> Result<Recorded, AnswerError> {
    let rows = &reading.rows;
    let curve = Curve::find(rows, question)?;
    let mut answer = Recorded::new(reading.trace.clone(), rows, question, &curve);
    let ram = answer.common.ram_bytes.unwrap_or(answer.common.needed_bytes / 2);
    answer.memory_use = Some(MemoryUse::of(rows, &question.pager, ram)?);
    answer.in_one_budget(rows);
    Ok(answer)
}
