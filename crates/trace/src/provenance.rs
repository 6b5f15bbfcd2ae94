//! Where a trace comes from. Stored as JSON under the Parquet metadata key `coldframe`.

use serde::{Deserialize, Serialize};

use crate::cut::Cut;
use crate::fidelity::Fidelity;
use crate::reduce::Reduction;

/// The origin of a trace and its totals. The recorder fills the first part; [`Writer::finish`](crate::Writer::finish)
/// counts the second from the rows and overwrites whatever stands there.
///
/// Unknown JSON fields are ignored on reading, so that a later version may add some.
#[allow(non_snake_case)] // `pages_1KiB`: outside a type the name carries the unit, as printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command line that was recorded, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What made the rows: `import lackey`, `qemu-user plugin`, ...
    pub recorder: String,
    /// What the rows can be trusted for.
    pub fidelity: Fidelity,
    /// Bytes of the page that references were reduced to; `None` when they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u64>,
    /// Pages of the window that the references went through; `None` when every reference is a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Share of the chunks of 8 neighbouring pages that were recorded, chosen by their place; `None` when all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,
    /// What the recorder measured of the program besides its references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFacts>,
    /// The processes of a recorded command, in the order of their starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<ProcessFacts>,
    /// How the trace was reduced, and what of; `None` when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// What was cut out of a longer trace, the last cut last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<Cut>,
    /// What `time` counts (`CLOCK_MONOTONIC`, `instructions`, ...); `None` without such a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// What that clock showed at time 0, in nanoseconds, where it can be compared with another trace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The program's address ranges, where known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// The tasks that the `task` column names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// Remarks for the reader of results: reductions done, readings taken.
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
    /// A provenance that says who recorded and what may be concluded, and nothing else yet.
    pub fn new(recorder: impl Into<String>, fidelity: Fidelity) -> Provenance {
        Provenance {
            command: None,
            recorder: recorder.into(),
            fidelity,
            page_size: None,
            window: None,
            sample: None,
            program: None,
            group: Vec::new(),
            reduction: None,
            cuts: Vec::new(),
            clock: None,
            started: None,
            mappings: Vec::new(),
            tasks: Vec::new(),
            notes: Vec::new(),
            references: 0,
            instructions: 0,
            reads: 0,
            writes: 0,
            pages_1KiB: 0,
            writer: String::new(),
        }
    }
}

/// What a recorder measured of the program besides its references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// The program's own run time without recorder and pager, in seconds, as estimated.
    pub seconds: f64,
    /// What the recorded run took, in seconds.
    pub recorded_seconds: f64,
    /// The most bytes of managed memory that were in RAM at a time.
    pub managed_bytes: u64,
    /// The most bytes in RAM of what is not paged: code, stacks, files, the C library's own.
    pub not_paged_bytes: u64,
    /// First touches of managed pages.
    pub zero_fills: u64,
    /// Exit code; `None` when a signal ended the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How well its pages compress; `None`: none was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Processes that were recorded.
    pub processes: u32,
    /// Threads that were recorded.
    pub threads: u32,
}

/// How well pages compress with lz4: a sample of those that left a recorder's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compression {
    /// Pages that were tried.
    pub tried: u64,
    /// Of those, pages that became small enough to be kept: at most three quarters of a page.
    pub kept: u64,
    /// Bytes of the latter, compressed.
    pub kept_bytes: u64,
    /// Seconds that a page takes that is compressed and decompressed, both hashed: a mean of all that were tried.
    pub page_seconds: f64,
}

impl Compression {
    /// The part of all pages that is kept.
    pub fn kept_share(&self) -> f64 {
        self.kept as f64 / (self.tried as f64).max(1.0)
    }

    /// How many times smaller a page becomes that is kept, 4096 bytes to its own.
    pub fn ratio(&self) -> f64 {
        (self.kept * crate::span::PAGE) as f64 / (self.kept_bytes as f64).max(1.0)
    }
}

/// What a recorder measured of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Its command line, cut after 256 bytes.
    pub command: String,
    /// The kernel's number of it.
    pub process: u32,
    /// The most bytes of managed memory that it had in RAM at a time.
    pub managed_bytes: u64,
    /// The most bytes in RAM of what is not paged.
    pub not_paged_bytes: u64,
    /// First touches of managed pages.
    pub zero_fills: u64,
    /// Entries that were recorded.
    pub entries: u64,
    /// From the start of its pager to its last entry or its end.
    pub seconds: f64,
    /// It is too small to matter, and its rows are not in the trace.
    pub left_out: bool,
}

/// One address range of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number in the `task` column.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The address space it lives in: tasks of one process share theirs.
    #[serde(default)]
    pub space: u32,
}
