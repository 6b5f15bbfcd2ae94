//! The answer as data: the content of `advice.json`.

use std::path::Path;

use coldframe_recording::span::PAGE;
use coldframe_sheet::quantity::human_size;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::curve::{Curve, Point};
use crate::error::AnswerError;
use crate::rows::Rows;
use crate::seen::Seen;
use crate::swap::{with_swap, SwapAnswer};
use crate::Question;
use crate::SCHEMA_VERSION;

/// The name of this machine as a device.
pub const DEVICE: &str = "here";

/// How the program was watched: the best way that the machine allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The pager's recorder: which page, in which order.
    #[default]
    Recorder,
    /// The referenced bits that the kernel shows: how many pages in which time.
    ReferencedBits,
}

/// The run time of a program by RAM on this machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: String,
    /// `advice`.
    pub kind: String,
    /// [`DEVICE`].
    pub device: String,
    /// How the program was watched.
    #[serde(default)]
    pub rung: Rung,
    /// Its process, if it ran before it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The program's name.
    pub program: String,
    /// The command line that was recorded.
    pub command: Option<String>,
    /// The trace.
    pub trace: String,
    /// The program's own time.
    pub program_seconds: f64,
    /// How long it took while it was recorded or watched.
    #[serde(default)]
    pub recorded_seconds: f64,
    /// The most RAM of memory that is not paged: code, stacks, files, the C library's own.
    pub not_paged_bytes: u64,
    /// The most managed memory at a time.
    pub managed_bytes: u64,
    /// RAM, in the form of `run --ram`, with which no page is evicted.
    pub needed_bytes: u64,
    /// The advised RAM, in the form of `run --ram`: for paged memory.
    pub ram_bytes: Option<u64>,
    /// The extra time of a run with it, in percent, at the bad end.
    pub slowdown_percent: f64,
    /// Whether that is relative to the program's own time. If it does not meet the limit even with all its RAM, it is
    /// relative to the run with all its RAM.
    pub within_slowdown: bool,
    /// Run time by RAM, largest first.
    pub curve: Vec<Point>,
    /// With less RAM than this it takes more than twice as long as with all its RAM; `None`: at no size that was
    /// tried.
    pub thrash_bytes: Option<u64>,
    /// Below this RAM, the recorder's window only gives a lower bound of the run time.
    pub told_bytes: u64,
    /// The same with the kernel's swap; `None`: its costs are not known, or `curve` is of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<SwapAnswer>,
    /// What swap `run --by kernel` has to make; `None`: none, or our pager runs the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<String>,
    /// Page replacement policy.
    pub policy: String,
    /// Most pages read ahead.
    pub read_ahead: u32,
    /// Pages that are evicted together.
    pub evict_batch: usize,
    /// For a trace of some of the pages.
    pub sampled: Option<Sampled>,
    /// Pages of the recorder's window.
    pub window_pages: u64,
    /// Rows of the trace.
    pub entries: u64,
    /// Processes with managed memory.
    pub processes: u64,
    /// Threads that touched it.
    pub threads: u64,
    /// The recorded program's exit code; `None`: a signal ended it.
    pub exit: Option<i32>,
    /// The source of the costs.
    pub measured: String,
    /// The assumptions of the answer, and its uncertainties.
    pub how_sure: Vec<String>,
    /// The recorder's notes, without those about bounds of policies, which are for readers of the trace.
    pub notes: Vec<String>,
    /// What the recording shows besides; `None`: it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Runs with less RAM that were measured (`--verify`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<Verified>,
}

/// A measured run with this RAM.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verified {
    /// `--ram`.
    pub ram_bytes: u64,
    /// Its time.
    pub seconds: f64,
    /// Faults on pages that had to be brought into RAM, if they were counted.
    pub true_faults: Option<u64>,
}

/// A sample of the pages, and its error.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sampled {
    /// Share of all pages.
    pub share: f64,
    /// Largest standard error of the paging time, in percent of it.
    pub error_percent: f64,
}

impl Answer {
    /// Of a curve that has been found.
    ///
    /// # Errors
    /// As [`with_swap`].
    pub(crate) fn new(path: &Path, rows: &Rows, question: &Question, curve: &Curve<'_>) -> Result<Answer, AnswerError> {
        let points = curve.points();
        let livable = curve.livable();
        let thrash = curve.smallest(|point| point.seconds <= livable);
        let thrashes = points.iter().any(|point| point.seconds > livable);
        let sampled =
            (rows.sample < 1.0).then(|| Sampled { share: rows.sample, error_percent: 100.0 * curve.error_max() });
        let answer = Answer {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            kind: "advice".into(),
            device: DEVICE.into(),
            rung: Rung::Recorder,
            process: None,
            program: program(rows.command.as_deref()),
            command: rows.command.clone(),
            trace: path.display().to_string(),
            program_seconds: rows.facts.seconds,
            recorded_seconds: rows.facts.recorded_seconds,
            not_paged_bytes: rows.facts.not_paged_bytes,
            managed_bytes: rows.peak() * PAGE,
            needed_bytes: curve.needed,
            ram_bytes: curve.recommended(),
            slowdown_percent: 100.0 * question.slowdown,
            within_slowdown: curve.meets(),
            thrash_bytes: thrash.filter(|_| thrashes).map(|point| point.ram_bytes),
            kernel: with_swap(curve, &points, &question.swaps, rows.facts.compression.as_ref())?,
            curve: points,
            told_bytes: curve.told(),
            swap: None,
            policy: question.pager.policy.clone(),
            read_ahead: question.pager.read_ahead,
            evict_batch: question.pager.evict_batch,
            sampled,
            window_pages: rows.window,
            entries: rows.count(),
            processes: rows.processes.len() as u64,
            threads: rows.processes.iter().map(|process| process.threads as u64).sum(),
            exit: rows.facts.exit,
            measured: question.measured.clone(),
            how_sure: Vec::new(),
            notes: rows.notes.iter().filter(|note| !note.contains("window")).cloned().collect(),
            seen: None,
            verified: Vec::new(),
        };
        Ok(Answer { how_sure: answer.rests_on(rows), ..answer })
    }

    /// The assumptions of the answer, the most important first.
    fn rests_on(&self, rows: &Rows) -> Vec<String> {
        let mut notes =
            Vec::from_iter((!self.measured.is_empty()).then(|| format!("the costs of paging were {}", self.measured)));
        let threads = rows.processes.iter().map(|process| process.threads).max().unwrap_or(1);
        if threads > 1 {
            notes.push(format!("{threads} threads: their waits can overlap, so it may be faster"));
        }
        if self.processes > 1 {
            let processes = self.processes;
            notes.push(format!("{processes} processes: each has so much RAM, and their waits are added up"));
        }
        if let Some(Sampled { share, error_percent }) = self.sampled {
            let share = 100.0 * share;
            let decimals = usize::from(share < 9.95);
            notes.push(format!(
                "{share:.decimals$} % of the pages were recorded, so paging may take {error_percent:.0} % more or less"
            ));
        }
        if self.window_pages > 0 {
            notes.push(format!("below {} these are lower bounds", human_size(self.told_bytes)));
        }
        if let Some(inferred) = rows.inferred {
            notes.push(inferred.into());
        }
        notes.push("pages that are loaded for reading and then written with the same bytes count as clean".into());
        notes
    }

    /// The whole answer as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain data has a JSON form")
    }

    /// The advised settings, as `coldframe run -c` reads them; `None`: no size is advised, or the pager has not
    /// recorded the program.
    pub fn config(&self) -> Option<String> {
        let ram = self.ram_bytes.filter(|_| self.rung == Rung::Recorder)?;
        let (kib, policy, read_ahead) = (ram / 1024, &self.policy, self.read_ahead);
        Some(format!(
            "# Advised by coldframe {} for {}.\nram = \"{kib}KiB\"\npolicy = \"{policy}\"\nhandler = \"parallel\"\n\n[machine]\n\
             read_ahead = {read_ahead}\n",
            self.version,
            self.command.as_deref().unwrap_or(&self.program).replace('\n', " "),
        ))
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
