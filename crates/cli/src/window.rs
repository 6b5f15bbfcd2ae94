//! `coldframe record --via faults`: a program in a small window of mapped pages; each page that enters it is a row.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use coldframe_live::{span, Faults, Options, Snapshot, StatsFile, Times, FRAMES_MIN, PAGE};
use coldframe_record::{native, resolve};
use coldframe_report::table::human_count;
use coldframe_trace::window::{window, Watched};
use coldframe_trace::{merge, Order, Summary, TraceError};
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::run::{allowed, default_backing, find_preload, manageable, preloads, program, start};

/// What came of a recording.
pub struct Recorded {
    summary: Summary,
    stats: Snapshot,
    status: ExitStatus,
    pages: usize,
    /// Programs recorded: the one that was started, and those that it started.
    programs: usize,
    seconds: f64,
    native_seconds: Option<f64>,
}

/// Runs the program in a window of `pages` pages and writes the trace to `out`. With `overhead` it runs alone once before, without
/// input and output.
pub fn record(command: &[OsString], pages: usize, out: &Path, overhead: bool) -> Result<Recorded, Failure> {
    if pages < FRAMES_MIN {
        return Err(Failure::usage(format!("--window: {pages} pages are too few; give at least {FRAMES_MIN}")));
    }
    manageable(&program(command)?)?;
    let preload = preloads(&find_preload()?);
    let place = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".coldframe-window").tempdir_in(place);
    let folder = folder.map_err(|e| refused(place, &e))?;
    let stats = StatsFile::create()?;
    let options = Options { stats_fd: Some(stats.fd()), ..options(pages, folder.path()) };
    allowed(&options.backing)?;
    let native_seconds = if overhead { Some(alone(command)?) } else { None };
    let started = Instant::now();
    let status = start(command, &preload, &options, None)?.wait_with_signals()?;
    let seconds = started.elapsed().as_secs_f64();
    let (summary, programs) = trace(command, folder.path(), out)?;
    Ok(Recorded { summary, stats: stats.snapshot(), status, pages, programs, seconds, native_seconds })
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other {
        message: format!("{}: cannot be written: {error}; check its permissions", path.display()),
        code: 5,
    }
}

/// First in first out, one page at a time, nothing ahead of a fault: what the bounds of a window trace rest on.
fn options(pages: usize, journals: &Path) -> Options {
    Options {
        policy: Some("fifo".into()),
        backing: default_backing(),
        faults: Faults::Handlers(1),
        journal: Some(std::path::absolute(journals).unwrap_or(journals.to_owned())),
        observe: true,
        read_ahead: 0,
        evict_batch: Some(1),
        base: Some(span::BASE_RECORDED),
        ..Options::new((pages * PAGE) as u64)
    }
}

fn alone(command: &[OsString]) -> Result<f64, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let target = resolve(&command[0], &command[1..], &path)?;
    Ok(native(&target)?)
}

/// The journals of all programs as one trace; and of how many it is.
fn trace(command: &[OsString], folder: &Path, out: &Path) -> Result<(Summary, usize), Failure> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let io = |e: std::io::Error| refused(folder, &e);
    let journals: Result<Vec<PathBuf>, _> =
        std::fs::read_dir(folder).map_err(io)?.map(|e| e.map(|e| e.path())).collect();
    let mut journals = journals.map_err(io)?;
    journals.sort();
    let (mut parts, mut empty) = (Vec::new(), None);
    for journal in journals {
        let to = journal.with_extension(format!("{}.parquet", parts.len()));
        let watched = Watched { journal, base: span::BASE_RECORDED, page: PAGE as u64, command: Some(words.join(" ")) };
        match window(&watched, &to) {
            Ok(summary) => parts.push((to, summary)),
            // A program that touched no managed page.
            Err(error @ TraceError::Empty { .. }) => empty = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match (parts.pop(), empty) {
        (Some((part, summary)), _) if parts.is_empty() => {
            // The folder lies beside the trace.
            std::fs::rename(&part, out).map_err(|e| refused(out, &e))?;
            Ok((summary, 1))
        }
        (Some(last), _) => {
            parts.push(last);
            let paths: Vec<PathBuf> = parts.into_iter().map(|(path, _)| path).collect();
            Ok((merge(&paths, Order::Time, out)?, paths.len()))
        }
        (None, Some(error)) => Err(error.into()),
        (None, None) => {
            let message = "the program ended before its heap was managed; see its own message".to_owned();
            Err(Failure::Other { message, code: 3 })
        }
    }
}

impl Recorded {
    /// Seconds in the handler, of all faults.
    fn handling(&self) -> f64 {
        let sum = |times: Times| (times.mean_ns * times.count) as f64 / 1e9;
        [self.stats.device_fault, self.stats.memory_fault, self.stats.false_fault, self.stats.write_fault]
            .map(sum)
            .iter()
            .sum()
    }

    /// For people.
    pub fn words(&self, out: &Path) -> String {
        let (rows, faults) = (self.summary.rows, self.stats.true_faults + self.stats.write_faults);
        let mut text = format!(
            "coldframe: {}: {} entries into a window of {} pages in {:.2} s; {:.2} s of it in {} faults ({:.1} us each), {} bytes\n",
            out.display(),
            human_count(rows),
            human_count(self.pages as u64),
            self.seconds,
            self.handling(),
            human_count(faults),
            self.handling() * 1e6 / faults.max(1) as f64,
            human_count(self.summary.bytes_written),
        );
        if let Some(native) = self.native_seconds {
            text += &format!("coldframe: {:.1} times slower than the program alone\n", self.seconds / native.max(1e-6));
        }
        if self.programs > 1 {
            text += &format!("coldframe: {} programs, merged by time\n", self.programs);
        }
        if self.stats.forks > 0 {
            text += &format!(
                "coldframe: {} forks: what a child touched before it started a program of its own is not recorded\n",
                self.stats.forks
            );
        }
        if !self.status.success() {
            text += &format!("coldframe: the program ended with {}\n", self.status);
        }
        text
    }

    /// For `--stats`.
    pub fn json(&self, out: &Path) -> Value {
        json!({ "trace": out, "via": "faults", "window": self.pages, "entries": self.summary.rows, "programs": self.programs,
            "seconds": self.seconds, "handling_seconds": self.handling(), "native_seconds": self.native_seconds,
            "true_faults": self.stats.true_faults, "write_faults": self.stats.write_faults, "forks": self.stats.forks,
            "status": self.status.code() })
    }
}
