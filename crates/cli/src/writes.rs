//! `coldframe record --via writes`: records in each interval which pages the program writes.

use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coldframe_device::quantity::human_count;
use coldframe_live::writes::{Interval, WriteWatch};
use coldframe_live::PAGE;
use coldframe_record::{native, resolve, Subject};
use coldframe_trace::{Block, Columns, Fidelity, Kind, Mapping, Provenance, Reference, Summary, Writer};
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::record::stop_by_signal;

/// The result of a recording.
pub struct Recorded {
    summary: Summary,
    interval: Duration,
    intervals: u64,
    seconds: f64,
    /// Seconds spent on scans. The process runs meanwhile, on another processor if there is one.
    scanning: f64,
    /// The longest time between two scans.
    longest: Duration,
    refused: usize,
    native_seconds: Option<f64>,
    status: Option<i32>,
}

/// Watches the subject's writes and writes the trace to `out`. With `overhead` a program runs alone once before, without input and
/// output.
pub fn record(subject: &Subject, interval: Duration, out: &Path, overhead: bool) -> Result<Recorded, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_by_signal(&stop)?;
    let writer = Writer::create(out, Columns { time: true, ..Columns::default() })?;
    let mut native_seconds = None;
    let (child, watch, pid, command, time) = match subject {
        Subject::Process(pid, time) => (None, WriteWatch::attach(*pid)?, *pid, command_of(*pid), Some(*time)),
        Subject::Program(name, arguments) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let target = resolve(name, arguments, &path)?;
            native_seconds = if overhead { Some(native(&target)?) } else { None };
            let (child, watch) = WriteWatch::start(Command::new(&target.binary).args(target.arguments.iter().skip(1)))?;
            let pid = child.id();
            let words: Vec<_> = std::iter::once(name).chain(arguments).map(|word| word.to_string_lossy()).collect();
            (Some(child), watch, pid, words.join(" "), None)
        }
    };
    let began = Instant::now();
    let mut scans = Scans { watch, pid, writer, block: Block::new(), began, mappings: Vec::new(), at: interval };
    let mut recorded = Recorded {
        summary: Summary::default(),
        interval,
        intervals: 0,
        seconds: 0.0,
        scanning: 0.0,
        longest: Duration::ZERO,
        refused: 0,
        native_seconds,
        status: None,
    };
    let mut child = child.map(Ended);
    while !stop.load(Ordering::Relaxed) && time.is_none_or(|time| began.elapsed() < time) {
        let before = began.elapsed();
        std::thread::sleep(scans.until_next(interval, time));
        let scan = Instant::now();
        if scans.scan()? == Interval::Over {
            break;
        }
        recorded.scanning += scan.elapsed().as_secs_f64();
        recorded.longest = recorded.longest.max(began.elapsed() - before);
        recorded.intervals += 1;
    }
    recorded.seconds = began.elapsed().as_secs_f64();
    recorded.refused = scans.watch.refused();
    if let Some(child) = &mut child {
        recorded.status = child.wait()?;
    }
    recorded.summary = scans.finish(command, interval)?;
    Ok(recorded)
}

/// A child that does not outlive its recording unnoticed.
struct Ended(Child);

impl Ended {
    fn wait(&mut self) -> Result<Option<i32>, Failure> {
        let status = self.0.wait();
        let status =
            status.map_err(|e| Failure::Other { message: format!("waiting for the program: {e}"), code: 5 })?;
        Ok(status.code())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // It has ended, unless the recording failed.
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn command_of(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_owned()
}

/// The watch, and the trace that it fills.
struct Scans {
    watch: WriteWatch,
    pid: u32,
    writer: Writer,
    block: Block,
    began: Instant,
    mappings: Vec<Mapping>,
    /// When the next interval ends.
    at: Duration,
}

impl Scans {
    /// Time to sleep. If a slow scan has missed intervals, they are joined with the next one.
    fn until_next(&mut self, interval: Duration, end: Option<Duration>) -> Duration {
        let now = self.began.elapsed();
        while self.at <= now {
            self.at += interval;
        }
        end.map_or(self.at, |end| self.at.min(end)).saturating_sub(now)
    }

    fn scan(&mut self) -> Result<Interval, Failure> {
        let mappings = mappings(self.pid);
        if !mappings.is_empty() {
            self.mappings = mappings;
        }
        let time = self.began.elapsed().as_nanos() as u64;
        let block = &mut self.block;
        let running = self.watch.scan(&mut |pages: Range<u64>| {
            let page = |address| Reference { time, ..Reference::new(address, PAGE as u32, Kind::Write) };
            block.extend(pages.step_by(PAGE).map(page));
        })?;
        if !self.block.is_empty() {
            self.writer.write(&self.block)?;
            self.block.clear();
        }
        Ok(running)
    }

    fn finish(self, command: String, interval: Duration) -> Result<Summary, Failure> {
        if self.writer.references() == 0 {
            return Err(Failure::Other {
                message: format!(
                    "process {}: no page was written to in a whole interval; give a shorter --interval or more time",
                    self.pid
                ),
                code: 3,
            });
        }
        let mut provenance = Provenance::new("pagemap scan, asynchronous write protection", Fidelity::Sampled);
        provenance.command = Some(command).filter(|command| !command.is_empty());
        provenance.page_size = Some(PAGE as u64);
        provenance.clock = Some("CLOCK_MONOTONIC".into());
        provenance.mappings = self.mappings;
        provenance.notes = vec![
            format!("a row is a page written to at least once in the {} ms before its time; reads are not seen", interval.as_millis()),
            "pages of a mapping that appeared in an interval count as written in it if they are there at its end".into(),
            "not seen: the last part of an interval before the program ended, forked children, and what follows an exec".into(),
        ];
        Ok(self.writer.finish(provenance)?)
    }
}

fn mappings(pid: u32) -> Vec<Mapping> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let protection = words.next()?.to_owned();
        let name = words.nth(3).unwrap_or_default().to_owned();
        Some(Mapping { name, start: number(start)?, end: number(end)?, protection })
    };
    maps.lines().filter_map(mapping).filter(|mapping| mapping.protection.contains('w')).collect()
}

impl Recorded {
    /// For people.
    pub fn words(&self, out: &Path) -> String {
        let each = self.scanning * 1e3 / self.intervals.max(1) as f64;
        let share = 100.0 * self.scanning / self.seconds.max(1e-9);
        let mut text = format!(
            "coldframe: {}: {} pages written in {} intervals of {} ms (longest {} ms), {:.2} s; scanning took {each:.2} ms each ({share:.1} % of a processor)\n",
            out.display(),
            human_count(self.summary.rows),
            human_count(self.intervals),
            self.interval.as_millis(),
            self.longest.as_millis(),
            self.seconds,
        );
        if let Some(native) = self.native_seconds {
            text += &format!("coldframe: {:.2} times the time of the program alone\n", self.seconds / native.max(1e-6));
        }
        if self.refused > 0 {
            text += &format!("coldframe: {} mappings cannot be watched, the kernel says\n", self.refused);
        }
        text
    }

    /// For `--stats`.
    pub fn json(&self, out: &Path) -> Value {
        json!({ "trace": out, "via": "writes", "pages_written": self.summary.rows, "intervals": self.intervals,
            "interval_seconds": self.interval.as_secs_f64(), "longest_interval_seconds": self.longest.as_secs_f64(),
            "seconds": self.seconds, "scanning_seconds": self.scanning, "native_seconds": self.native_seconds,
            "mappings_refused": self.refused, "status": self.status })
    }
}
