//! What every answer about a program has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curve::Point;
use crate::not_paged::NotPaged;
use crate::SCHEMA_VERSION;

/// The name of this machine as a device.
pub const DEVICE: &str = "here";

/// What every answer has.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: String,
    /// `advice`.
    pub kind: String,
    /// `here`: this machine.
    pub device: String,
    /// The program's name.
    pub program: String,
    /// Its command line.
    pub command: Option<String>,
    /// The stand-alone time.
    pub program_seconds: f64,
    /// How long it took while it was recorded or watched.
    pub recorded_seconds: f64,
    /// The most RAM of memory that is not paged: code, stacks, files, the C library's own.
    pub not_paged_bytes: u64,
    /// The kinds of it, of the largest process; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_paged: Option<NotPaged>,
    /// The most managed memory of a process at a time; of all processes, if they share a limit.
    pub managed_bytes: u64,
    /// The most managed memory of all processes at one time. What a forked child only reads is there once.
    #[serde(default)]
    pub together_bytes: u64,
    /// RAM, in the form of `run --ram`, with which no page is evicted.
    pub needed_bytes: u64,
    /// The advised RAM, in the form of `run --ram`: for paged memory.
    pub ram_bytes: Option<u64>,
    /// A size of RAM whose cost was wanted (`--ram`): the curve has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_ram_bytes: Option<u64>,
    /// The extra time of a run with it, in percent, at the bad end.
    pub slowdown_percent: f64,
    /// Whether that is relative to the stand-alone time. If it does not meet the limit even with all its RAM, it is
    /// relative to the run with all its RAM.
    pub within_slowdown: bool,
    /// Run time by RAM, largest first.
    pub curve: Vec<Point>,
    /// With less RAM than this it takes more than twice as long as with all its RAM; `None`: at no size that was
    /// tried.
    pub thrash_bytes: Option<u64>,
    /// The covered size: for less RAM, the measurement only gives a lower bound of the run time.
    pub covered_bytes: u64,
    /// Rows of the trace, or looks at the bits.
    pub entries: u64,
    /// Processes with managed memory.
    pub processes: u64,
    /// Threads that touched it.
    pub threads: u64,
    /// The program's exit code; `None`: a signal ended it.
    pub exit: Option<i32>,
    /// The source of the costs.
    pub measured: String,
    /// The assumptions of the answer, and its uncertainties.
    pub how_sure: Vec<String>,
    /// What the reader should know of the measurement.
    pub notes: Vec<String>,
}

impl Common {
    /// Of this version, and empty.
    pub(crate) fn new() -> Common {
        Common {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            kind: "advice".into(),
            device: DEVICE.into(),
            within_slowdown: true,
            ..Common::default()
        }
    }

    /// The point of a size on the curve.
    pub fn at(&self, ram: u64) -> Option<&Point> {
        self.curve.iter().find(|point| point.ram_bytes == ram)
    }
}

/// The name of a command line's program.
pub(crate) fn program(command: Option<&str>) -> String {
    let first = command.and_then(|words| words.split_whitespace().next()).unwrap_or("the program");
    // A shell's quotes around a word are not part of it.
    first.rsplit('/').next().unwrap_or(first).trim_matches('\'').into()
}
