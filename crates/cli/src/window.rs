//! `coldframe record --via faults`: the program in a window of mapped pages, with all of its memory in RAM; each page that enters the window
//! is a row.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use coldframe_live::{span, Options, Recorder, StatsFile, FRAMES_MIN};
use coldframe_record::{native, resolve};
use coldframe_report::table::human_count;
use coldframe_trace::entries::{taken, worked, Word, TAKES};
use coldframe_trace::window::{window, Recorded as Process};
use coldframe_trace::{ProgramFacts, Summary, TraceError};
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::run::{default_backing, find_preload, manageable, preloads, program, start};

/// What came of a recording.
pub struct Recorded {
    summary: Summary,
    /// What is known of the program.
    pub facts: ProgramFacts,
    faults: u64,
    way: u64,
    handling: f64,
    status: ExitStatus,
    native_seconds: Option<f64>,
}

/// Nanoseconds that a recording may take a program besides, for an answer while one waits.
pub const PATIENCE: u64 = 500_000_000;

/// Runs the program and writes the trace to `out`. `pages`: a window of so many, and no sampling; else both fit the program. With `overhead`
/// it runs alone once before, without input and output.
pub fn record(
    command: &[OsString],
    pages: Option<usize>,
    patience: u64,
    out: &Path,
    overhead: bool,
) -> Result<Recorded, Failure> {
    if let Some(pages) = pages.filter(|pages| *pages < FRAMES_MIN) {
        return Err(Failure::usage(format!("--window: {pages} pages are too few; give at least {FRAMES_MIN}")));
    }
    manageable(&program(command)?)?;
    let preload = preloads(&find_preload()?);
    let place = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".coldframe-window").tempdir_in(place);
    let folder = folder.map_err(|e| refused(place, &e))?;
    let stats = StatsFile::create()?;
    let files = std::path::absolute(folder.path()).unwrap_or(folder.path().to_owned());
    let options = Options {
        backing: default_backing(),
        max_memory: Options::MAX_MEMORY,
        record: Some(Recorder { folder: files, window: pages, patience }),
        base: Some(span::BASE_RECORDED),
        stats_fd: Some(stats.fd()),
        ..Options::new(1 << 30)
    };
    let native_seconds = if overhead { Some(alone(command)?) } else { None };
    let started = Instant::now();
    let status = start(command, &preload, &options, None)?.wait_with_signals()?;
    let seconds = started.elapsed().as_secs_f64();
    let processes = read(folder.path())?;
    let sum = |word| processes.iter().map(|process| process.word(word)).sum::<u64>();
    let way = processes.iter().max_by_key(|p| p.word(Word::Faults)).map_or(0, |p| p.word(Word::Way));
    let (faults, handling) = (sum(Word::Faults), sum(Word::Handling) as f64 / 1e9);
    let facts = ProgramFacts {
        seconds: alone_of(&processes, seconds),
        recorded_seconds: seconds,
        exit: status.code(),
        threads: sum(Word::Threads) as u32,
        ..ProgramFacts::default()
    };
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let (summary, facts) = window(processes, &words.join(" "), facts, out)?;
    Ok(Recorded { summary, facts, way, faults, handling, status, native_seconds })
}

/// What the program takes alone, if its recording took `seconds`: less what the recorder took, and less what handlers and threads waited
/// for a processor; but no less than its threads worked. Processes that run beside each other are taken for one after the other.
fn alone_of(processes: &[Process], seconds: f64) -> f64 {
    let sum = |of: &dyn Fn(&Process) -> f64| processes.iter().map(of).sum::<f64>() / 1e9;
    let overhead = sum(&|p| TAKES * taken(|word| p.word(word)) + p.word(Word::Starting) as f64);
    let delayed = sum(&|p| p.word(Word::Delayed) as f64);
    let threads = |p: &Process| p.word(Word::Threads).max(1) as f64;
    let worked = sum(&|p| worked(TAKES, |word| p.word(word)).unwrap_or(0.0) / threads(p));
    (seconds - overhead - delayed).max(worked.min(seconds - overhead)).max(seconds / LEAST)
}

/// A program takes no smaller part of its recording than one in so many: what the estimate is then made of is noise.
const LEAST: f64 = 100.0;

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other {
        message: format!("{}: cannot be written: {error}; check its permissions", path.display()),
        code: 5,
    }
}

fn alone(command: &[OsString]) -> Result<f64, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let target = resolve(&command[0], &command[1..], &path)?;
    Ok(native(&target)?)
}

/// What each process has recorded.
fn read(folder: &Path) -> Result<Vec<Process>, Failure> {
    let io = |e: std::io::Error| refused(folder, &e);
    let files: Result<Vec<PathBuf>, _> = std::fs::read_dir(folder).map_err(io)?.map(|e| e.map(|e| e.path())).collect();
    let processes: Result<Vec<Process>, TraceError> =
        files.map_err(io)?.iter().map(|file| Process::read(file)).collect();
    let processes = processes?;
    if processes.is_empty() {
        let message = "the program ended before its heap was managed; see its own message".to_owned();
        return Err(Failure::Other { message, code: 3 });
    }
    Ok(processes)
}

impl Recorded {
    /// For people.
    pub fn words(&self, out: &Path) -> String {
        let faults = self.faults;
        let mut text = format!(
            "coldframe: {}: {} rows in {:.2} s, {} bytes\ncoldframe: {} faults took {:.2} s in handlers ({:.1} us each); the program alone takes about {:.2} s\n",
            out.display(),
            human_count(self.summary.rows),
            self.facts.recorded_seconds,
            human_count(self.summary.bytes_written),
            human_count(faults),
            self.handling,
            self.handling * 1e6 / faults.max(1) as f64,
            self.facts.seconds,
        );
        if let Some(native) = self.native_seconds {
            let slower = self.facts.recorded_seconds / native.max(1e-6);
            text += &format!("coldframe: {slower:.1} times slower than the program alone\n");
        }
        if self.facts.processes > 1 {
            text += &format!("coldframe: {} programs and forked children\n", self.facts.processes);
        }
        if !self.status.success() {
            text += &format!("coldframe: the program ended with {}\n", self.status);
        }
        text
    }

    /// For `--stats`.
    pub fn json(&self, out: &Path) -> Value {
        json!({ "trace": out, "via": "faults", "way_ns": self.way, "rows": self.summary.rows, "faults": self.faults, "processes": self.facts.processes,
            "seconds": self.facts.recorded_seconds, "handling_seconds": self.handling, "program_seconds": self.facts.seconds,
            "native_seconds": self.native_seconds, "zero_fills": self.facts.zero_fills,
            "managed_bytes": self.facts.managed_bytes, "not_paged_bytes": self.facts.not_paged_bytes, "status": self.status.code() })
    }
}
