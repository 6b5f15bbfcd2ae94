//! The origin of a trace. Stored as JSON under the Parquet metadata key `coldframe`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fidelity::Fidelity;

/// The origin of a trace and its totals. The recorder fills in the first part.
/// [`Writer::finish`](crate::Writer::finish) counts the second part from the rows, and overwrites earlier values.
///
/// Unknown JSON fields are ignored on reading, so that a later version may add some.
#[allow(non_snake_case)] // `pages_1KiB`: outside a type the name carries the unit, as printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The command line that was recorded, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The tool that made the rows: `import lackey`, `qemu-user plugin`, ...
    pub recorder: String,
    /// The fidelity of the rows.
    pub fidelity: Fidelity,
    /// Bytes of the page that references were reduced to; `None` if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u64>,
    /// Pages of the recording window; `None` if every reference is a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The share of chunks of 8 neighbouring pages that were recorded, chosen by their place; `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,
    /// The recorder's measurements of the program, apart from its references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFacts>,
    /// The processes of a recorded command, in the order of their starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<ProcessFacts>,
    /// The moments at which several processes had the most memory in RAM together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<Moment>,
    /// The cuts from a longer trace, the last cut last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<Cut>,
    /// The clock of `time` (`CLOCK_MONOTONIC`, `instructions`, ...); `None` without such a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The value of that clock at time 0, in nanoseconds, if it can be compared with another trace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The program's address ranges, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// The tasks that the `task` column names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// Remarks for the reader of results: readings taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,

    /// References: rows weighted by their `count`.
    #[serde(default)]
    pub references: u64,
    /// Of these, instruction fetches.
    #[serde(default)]
    pub instructions: u64,
    /// Of these, data reads.
    #[serde(default)]
    pub reads: u64,
    /// Of these, data writes (a read-modify-write is one).
    #[serde(default)]
    pub writes: u64,
    /// Distinct aligned 1 KiB granules touched: the footprint in KiB.
    #[serde(default)]
    pub pages_1KiB: u64,
    /// The coldframe version that wrote the file.
    #[serde(default)]
    pub writer: String,
}

impl Provenance {
    /// A provenance with recorder and fidelity, and nothing else yet.
    pub fn new(recorder: impl Into<String>, fidelity: Fidelity) -> Provenance {
        Provenance { recorder: recorder.into(), fidelity, ..Provenance::default() }
    }
}

/// The part to keep: rows that meet all conditions. Without a column of counts, a row is a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Rows left out at the start.
    pub skip: u64,
    /// Rows examined after these; all if `None`.
    pub rows: Option<u64>,
    /// Rows are kept from this time on, in nanoseconds of the trace's clock.
    #[serde(default)]
    pub from_ns: Option<u64>,
    /// Rows are kept up to this time, which is excluded.
    #[serde(default)]
    pub until_ns: Option<u64>,
    /// Instruction fetches only.
    pub instructions_only: bool,
}

/// A cut that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// What was kept.
    pub part: Part,
    /// Rows of the trace that it was cut from.
    pub of_rows: u64,
}

/// `1000 rows after row 5000, from 0.5 s to 1 s, of 8000 rows`.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { skip, rows, from_ns, until_ns, instructions_only } = self.part;
        match rows {
            Some(rows) => write!(f, "{rows} rows after row {skip}")?,
            None => write!(f, "all rows after row {skip}")?,
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        from_ns.map_or(Ok(()), |from| write!(f, ", from {} s", seconds(from)))?;
        until_ns.map_or(Ok(()), |until| write!(f, ", until {} s", seconds(until)))?;
        let kinds = if instructions_only { ", the instruction fetches only" } else { "" };
        write!(f, "{kinds}, of {} rows", self.of_rows)
    }
}

/// The recorder's measurements of the program, apart from its references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFacts {
    /// The program's own run time without recorder and pager, in seconds (an estimate).
    pub seconds: f64,
    /// The time of the recorded run, in seconds.
    pub recorded_seconds: f64,
    /// The most bytes of managed memory that a process had in RAM at a time.
    pub managed_bytes: u64,
    /// The most bytes in RAM of memory that is not paged: code, stacks, files, the C library's own.
    pub not_paged_bytes: u64,
    /// First touches of managed pages.
    pub zero_fills: u64,
    /// Exit code; `None` if a signal ended the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// What other programs did during the recording; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Processes that were recorded.
    pub processes: u32,
    /// Threads that were recorded.
    pub threads: u32,
}

/// What other programs did while this one was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Processors that they used on average.
    pub others: f64,
    /// Processors of the machine.
    pub processors: u32,
}

/// The recorder's measurements of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessFacts {
    /// Its command line, cut after 256 bytes.
    pub command: String,
    /// The kernel's number of the process.
    pub process: u32,
    /// The most bytes of managed memory that it had in RAM at a time.
    pub managed_bytes: u64,
    /// The most bytes in RAM of memory that is not paged.
    pub not_paged_bytes: u64,
    /// First touches of managed pages.
    pub zero_fills: u64,
    /// Entries that were recorded.
    pub entries: u64,
    /// From the start of its pager to its last entry or its end.
    pub seconds: f64,
    /// The process is too small to matter, and its rows are not in the trace.
    pub left_out: bool,
}

/// What the processes of a command had in RAM at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Managed memory of each process, the largest first.
    pub bytes: Vec<u64>,
    /// Of these, bytes that a forked child still has in common with its parent.
    pub shared_bytes: u64,
}

impl Moment {
    /// Bytes of all processes, each page once.
    pub fn sum(&self) -> u64 {
        self.bytes.iter().sum::<u64>() - self.shared_bytes
    }

    /// The same if each process has at most this much RAM. Once pages of a process have left, those that come back
    /// are not shared any more. `margin`: what each process needs above its pages.
    pub fn within(&self, ram: u64, margin: u64) -> u64 {
        let all: u64 = self.bytes.iter().map(|bytes| ram.min(bytes + margin)).sum();
        match self.bytes.first().is_some_and(|largest| largest + margin > ram) {
            true => all,
            false => all - self.shared_bytes,
        }
    }
}

/// One address range of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// The file mapped there, or `[heap]`, `[stack]`, ...
    pub name: String,
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// `rwxp` as in `/proc/PID/maps`.
    pub protection: String,
}

/// One task (thread) of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its number in the `task` column.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its address space: tasks of one process share theirs.
    #[serde(default)]
    pub space: u32,
}
