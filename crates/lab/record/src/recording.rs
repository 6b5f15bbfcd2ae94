//! What to record, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

/// The detail of each reference that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Every reference with its address and size.
    Exact,
    /// Runs on pages of this many bytes, a power of two from 64 on.
    Pages(u64),
}

/// Where recording begins and ends. The first limit that is reached ends it, and the file is finished as if the
/// program had ended there. The program gets SIGTERM, and two seconds later SIGKILL.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// References left out at the start: those of the program, at every level. On pages, one over a page's end then
    /// counts on each of its pages.
    pub skip_refs: u64,
    /// References kept, counted in the same way.
    pub max_refs: Option<u64>,
    /// Time since the start.
    pub max_time: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct Recording {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The search path for the program and QEMU, as in `PATH`.
    pub search_path: OsString,
    /// The trace to write. While recording it is `OUT.partial`.
    pub out: PathBuf,
    pub level: Level,
    pub limits: Limits,
    /// Set by the caller, for example at Ctrl-C: recording ends as at a limit.
    pub stop: Arc<AtomicBool>,
    pub plugin: Option<PathBuf>,
    /// For programs of another machine: the directory with that machine's `lib` (QEMU's `-L`).
    pub sysroot: Option<PathBuf>,
}

impl Recording {
    /// A recording without limits, at the exact level, with QEMU searched for along this process's `PATH`.
    pub fn new(program: impl Into<OsString>, args: Vec<OsString>, out: impl Into<PathBuf>) -> Self {
        Recording {
            program: program.into(),
            args,
            search_path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            out: out.into(),
            level: Level::Exact,
            limits: Limits::default(),
            stop: Arc::default(),
            plugin: None,
            sysroot: None,
        }
    }
}

/// The progress of a recording, reported about ten times a second.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub references: u64,
    /// References skipped at the start.
    pub skipped: u64,
    pub seconds: f64,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// References in the file (rows weighted by their count).
    pub references: u64,
    /// Rows in the file.
    pub rows: u64,
    /// Instructions that the program executed while it was recorded, including skipped ones.
    pub instructions: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// From the program's start to the finished file.
    pub seconds: f64,
    pub references_per_second: f64,
    /// The program's own status.
    #[serde(skip)]
    pub status: ExitStatus,
    /// The limit that ended the recording: `max-refs`, `max-time` or `stopped`.
    pub limit: Option<&'static str>,
    /// Guest threads and processes recorded.
    pub tasks: usize,
    /// What the program did and the trace lacks, one sentence each; also in the trace's notes.
    pub not_recorded: Vec<String>,
}

impl Outcome {
    /// Bytes of the file for each reference.
    pub fn bytes_per_reference(&self) -> f64 {
        self.bytes as f64 / self.references.max(1) as f64
    }
}
