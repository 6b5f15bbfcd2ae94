//! `coldframe record --via faults`: runs the program with all of its memory in RAM and a window of mapped pages. Each
//! page that enters the window is a row.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use coldframe_costs::doctor::file_system;
use coldframe_live::{Options, Recorder, StatsFile, FRAMES_MIN};
use coldframe_record::{native, resolve};
use coldframe_recording::entries::{delayed, own, Word};
use coldframe_recording::span;
use coldframe_sheet::quantity::human_count;
use coldframe_store::window::{window, Recorded as Process};
use coldframe_store::{Noise, ProgramFacts, Summary, TraceError};
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::pick_recorder::pageable;
use crate::raw;
use crate::recording_end::{self, Ended, Signals};
use crate::run::{default_backing, find_preload, preloads, start};

/// The result of a recording.
pub struct Recorded {
    summary: Summary,
    /// The measurements of the program.
    pub facts: ProgramFacts,
    faults: u64,
    way: u64,
    handling: f64,
    times: Value,
    status: ExitStatus,
    native_seconds: Option<f64>,
    limit: Option<&'static str>,
    left: Vec<u32>,
    lost: bool,
}

/// What to record, and how.
#[derive(Default)]
pub struct Order<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// A window of this many pages, without sampling; `None`: both adapt to the program.
    pub pages: Option<usize>,
    /// Nanoseconds of the user's patience that recording may take in addition.
    pub patience: u64,
    /// The program runs alone once before, without input and output.
    pub overhead: bool,
    /// The program is ended after this time.
    pub max_time: Option<Duration>,
}

/// The patience of a user who waits for an answer, in nanoseconds. Most programs take a small part of it
/// (`coldframe_live`, `record/recorder.rs`).
pub const PATIENCE: u64 = 10_000_000_000;
/// The patience of a check: more, since its number must be the same each time.
pub const PATIENCE_OF_CHECK: u64 = 4 * PATIENCE;

/// Bytes that a folder must have free: the recorder takes 4 MiB at a time, and the trace needs room, too.
const ROOM: u64 = 8 << 20;

/// Keeps the processors from sleeping until it is dropped: `Documentation/power/pm_qos_interface.rst`. A program that
/// is recorded sleeps at each fault for some microseconds, and a processor that halts meanwhile, above all a virtual
/// one, has cold caches afterwards: the fault then takes 20 us of the program's processor time instead of 5
/// (`docs/accuracy-log.md`). `None`: only root may, and other recordings take longer.
fn awake() -> Option<File> {
    let mut latency = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    latency.write_all(&0i32.to_ne_bytes()).ok().map(|()| latency)
}

/// A program that has ended, and its recordings.
struct Ran {
    folder: tempfile::TempDir,
    seconds: f64,
    native_seconds: Option<f64>,
    /// Seconds of work of all processors meanwhile.
    worked: Option<f64>,
    ended: Ended,
}

/// Seconds of work of all processors since the machine started: `/proc/stat`, in ticks of a hundredth.
fn worked() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> = text.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // Without idle and iowait, and without guests, who are in `user`, too.
    Some(ticks.iter().enumerate().filter(|(i, _)| matches!(i, 0..=2 | 5..=7)).map(|(_, n)| n / 100.0).sum())
}

/// What other programs did while these processes ran.
fn noise(worked: Option<f64>, processes: &[Process], seconds: f64) -> Option<Noise> {
    let ours = |process: &Process| process.word(Word::Program) + process.word(Word::Handled);
    let ours = processes.iter().map(ours).sum::<u64>() as f64 / 1e9;
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let others = ((worked? - ours) / seconds).clamp(0.0, f64::from(processors));
    Some(Noise { others, processors })
}

/// Runs the program; its recordings lie beside `out`.
fn ran(order: &Order, out: &Path) -> Result<Ran, Failure> {
    let (command, pages) = (order.command, order.pages);
    if let Some(pages) = pages.filter(|pages| *pages < FRAMES_MIN) {
        return Err(Failure::usage(format!("--window: {pages} pages are too few; give at least {FRAMES_MIN}")));
    }
    pageable(command)?;
    let preload = preloads(&find_preload()?);
    let folder = folder_for(out)?;
    let stats = StatsFile::create()?;
    let files = folder.path().to_owned();
    let patience = order.patience;
    let options = Options {
        backing: default_backing(),
        max_memory: Options::MAX_MEMORY,
        record: Some(Recorder { folder: files, window: pages, patience }),
        base: Some(span::BASE_RECORDED),
        stats_fd: Some(stats.fd()),
        ..Options::new(1 << 30)
    };
    let native_seconds = if order.overhead { Some(alone(command)?) } else { None };
    let signals = Signals::catch()?;
    let _awake = awake();
    let (started, before) = (Instant::now(), worked());
    let child = start(command, &preload, &options)?.child();
    let ended = recording_end::wait(child, folder.path(), &signals, order.max_time)?;
    let worked = worked().zip(before).map(|(after, before)| after - before);
    Ok(Ran { seconds: started.elapsed().as_secs_f64(), folder, native_seconds, worked, ended })
}

/// Runs the program and writes the trace to `out`.
///
/// # Errors
/// The program cannot be recorded in this way, which is reported before it runs; nothing was recorded; the folder of
/// the trace is full.
pub fn record(order: &Order, out: &Path) -> Result<Recorded, Failure> {
    let Ran { folder, seconds, native_seconds, worked, ended } = ran(order, out)?;
    let Ended { status, limit, left } = ended;
    let processes = read(folder.path(), status)?;
    let lost = processes.iter().any(Process::is_cut_short);
    let sum = |word| processes.iter().map(|process| process.word(word)).sum::<u64>();
    let (faults, handling) = (sum(Word::Faults), sum(Word::Handling) as f64 / 1e9);
    let way = sum(Word::Ways) / faults.max(1);
    let seconds_of = |word| sum(word) as f64 / 1e9;
    let times = json!({ "program": seconds_of(Word::Program), "idle": seconds_of(Word::Idle),
        "delayed": seconds_of(Word::Delayed), "handlers": seconds_of(Word::Handled), "starting": seconds_of(Word::Starting) });
    let noise = noise(worked, &processes, seconds);
    let (summary, facts) = traced(processes, &line(order.command), seconds, status.code(), noise, out)?;
    Ok(Recorded { summary, facts, way, faults, handling, times, status, native_seconds, limit, left, lost })
}

/// Runs the program and writes its recordings to `out` as they are (`raw.rs`). Returns how it ended, and the bytes.
///
/// # Errors
/// As [`record`].
pub fn record_raw(order: &Order, out: &Path) -> Result<(ExitStatus, u64), Failure> {
    let Ran { folder, seconds, ended, .. } = ran(order, out)?;
    read(folder.path(), ended.status)?;
    let bytes = raw::write(folder.path(), &line(order.command), seconds, ended.status.code(), out)?;
    Ok((ended.status, bytes))
}

/// The command line.
fn line(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| words.join(" "))
}

/// Writes the recordings of a command, which took `seconds` and ended with the code `exit` beside other programs, as a
/// trace.
///
/// # Errors
/// Nothing was recorded; the trace cannot be written.
pub fn traced(
    processes: Vec<Process>,
    line: &str,
    seconds: f64,
    exit: Option<i32>,
    noise: Option<Noise>,
    out: &Path,
) -> Result<(Summary, ProgramFacts), Failure> {
    let facts = ProgramFacts {
        seconds: alone_of(&processes, seconds),
        recorded_seconds: seconds,
        exit,
        noise,
        threads: processes.iter().map(|process| process.word(Word::Threads)).sum::<u64>() as u32,
        ..ProgramFacts::default()
    };
    Ok(window(processes, line, facts, out)?)
}

/// A folder beside the trace for the recordings; it is deleted when dropped.
fn folder_for(out: &Path) -> Result<tempfile::TempDir, Failure> {
    if out.is_dir() {
        let message = format!("{}: is a folder; name a file with -o", out.display());
        return Err(Failure::Other { message, code: 5 });
    }
    let place = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = std::path::absolute(place).unwrap_or(place.to_owned());
    let folder = tempfile::Builder::new().prefix(".coldframe-window").tempdir_in(&place);
    let folder = folder.map_err(|e| refused(&place, &e))?;
    let (_, free) = file_system(&place);
    if free < ROOM {
        let (shown, free, room) = (place.display(), free >> 20, ROOM >> 20);
        let message = format!(
            "{shown}: {free} MiB free, and a recording takes {room} MiB and more; make room, or go to another folder"
        );
        return Err(Failure::Other { message, code: 5 });
    }
    Ok(folder)
}

/// The program's own time, if its recording took `seconds`: without the time that the recorder took from each
/// process, and without the time that its threads waited for a processor.
fn alone_of(processes: &[Process], seconds: f64) -> f64 {
    let of = |process: &Process| {
        let word = |word| process.word(word) as f64;
        let taken = word(Word::Ended) - word(Word::Started) - own(|word| process.word(word));
        Took {
            start: word(Word::Started) - word(Word::Starting),
            end: word(Word::Ended),
            taken: taken + word(Word::Starting),
            idle: (word(Word::Idle) - delayed(|word| process.word(word))).max(0.0),
        }
    };
    let taken = together(&processes.iter().map(of).collect::<Vec<_>>()) / 1e9;
    (seconds - taken).max(seconds / LEAST)
}

/// The start and end of a process, the time that was taken from it, evenly spread, and the time that it waited, in
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Took {
    start: f64,
    end: f64,
    taken: f64,
    idle: f64,
}

/// The time that recording took from several processes together. Processes that run at the same time wait for the one
/// from which most was taken. In its idle time, that process has also waited for the time taken from the others.
fn together(processes: &[Took]) -> f64 {
    let mut marks: Vec<f64> = processes.iter().flat_map(|process| [process.start, process.end]).collect();
    marks.sort_by(f64::total_cmp);
    let share = |from: f64, to: f64| {
        let beside = processes.iter().filter(|one| one.start <= from && to <= one.end && one.start < one.end);
        let rates = beside.map(|one| (one.taken / (one.end - one.start), one.idle / (one.end - one.start)));
        let (mut most, mut idle, mut all) = (0.0, 0.0, 0.0);
        for (taken, waited) in rates {
            all += taken;
            if taken > most {
                (most, idle) = (taken, waited);
            }
        }
        most + idle.min(all - most)
    };
    marks.windows(2).map(|mark| (mark[1] - mark[0]) * share(mark[0], mark[1])).sum()
}

/// The program's own time is at least the recording's time divided by this: a smaller estimate would be noise.
const LEAST: f64 = 100.0;

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Other {
        message: format!("{}: cannot be written: {error}; go to a folder that you may write to", path.display()),
        code: 5,
    }
}

fn alone(command: &[OsString]) -> Result<f64, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let target = resolve(&command[0], &command[1..], &path)?;
    Ok(native(&target)?)
}

/// What each process has recorded.
fn read(folder: &Path, status: ExitStatus) -> Result<Vec<Process>, Failure> {
    let io = |e: std::io::Error| refused(folder, &e);
    let files: Result<Vec<PathBuf>, _> = std::fs::read_dir(folder).map_err(io)?.map(|e| e.map(|e| e.path())).collect();
    let files = files.map_err(io)?;
    let without_room = files.iter().filter(|file| std::fs::metadata(file).is_ok_and(|meta| meta.blocks() == 0)).count();
    if without_room > 0 {
        let place = folder.parent().unwrap_or(folder).display();
        let message = format!(
            "{place}: the disk is full, and {without_room} processes are not recorded; make room, or go to another folder"
        );
        return Err(Failure::Other { message, code: 5 });
    }
    let processes: Result<Vec<Process>, TraceError> = files.iter().map(|file| Process::read(file)).collect();
    let processes = processes?;
    if processes.iter().map(|process| process.word(Word::Entries)).sum::<u64>() == 0 {
        let message = format!(
            "nothing was recorded: the program ended ({status}) before it touched any memory that can be paged: it needs no RAM for a heap; \
             give a program that works on data, or record its code and stack with --level page"
        );
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
        if let Some(code) = self.status.code().filter(|code| *code != 0) {
            text += &format!("coldframe: the program ended with exit code {code}\n");
        }
        for remark in self.remarks() {
            text += &format!("coldframe: {remark}\n");
        }
        text
    }

    /// Why the trace has less than the program did, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        match (self.limit, self.status.signal()) {
            (Some(limit), _) => all.push(format!("ended by {limit}: this is about what it did until then")),
            (None, Some(signal)) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                all.push(format!("ended by {name} (signal {signal}): this is about what it did until then"));
            }
            (None, None) => {}
        }
        if !self.left.is_empty() {
            let list: Vec<_> = self.left.iter().map(u32::to_string).collect();
            let list = list.join(", ");
            all.push(format!(
                "it has gone to the background (process {list}), recorded until now; keep it in the foreground, and kill {list}"
            ));
        }
        if self.lost {
            all.push("the disk became full, and the recording ends there; make room and record again".into());
        }
        all
    }

    /// For `--stats`.
    pub fn json(&self, out: &Path) -> Value {
        json!({ "trace": out, "via": "faults", "way_ns": self.way, "rows": self.summary.rows, "faults": self.faults, "processes": self.facts.processes,
            "seconds": self.facts.recorded_seconds, "handling_seconds": self.handling, "program_seconds": self.facts.seconds,
            "processor_seconds": self.times, "native_seconds": self.native_seconds, "zero_fills": self.facts.zero_fills,
            "managed_bytes": self.facts.managed_bytes, "not_paged_bytes": self.facts.not_paged_bytes, "status": self.status.code(),
            "limit": self.limit, "processes_left": self.left, "disk_full": self.lost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_one_after_the_other_are_added_up_and_those_beside_each_other_are_not() {
        let took = |start, end, taken| Took { start, end, taken, idle: 0.0 };
        let after = together(&[took(0.0, 4.0, 2.0), took(4.0, 8.0, 1.0)]);
        let beside = together(&[took(0.0, 4.0, 2.0), took(0.0, 4.0, 1.0)]);
        let waits = together(&[took(0.0, 8.0, 0.0), took(2.0, 4.0, 1.0)]);
        assert_eq!([after, beside, waits, together(&[took(3.0, 3.0, 0.0)]), together(&[])], [3.0, 2.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn processes_that_wait_for_each_other_are_added_up_as_far_as_they_wait() {
        // A server that lost 2 s and waited for 3 s, and its client, which lost 1.5 s meanwhile.
        let server = Took { start: 0.0, end: 8.0, taken: 2.0, idle: 3.0 };
        let client = Took { taken: 1.5, idle: 2.5, ..server };
        assert_eq!(together(&[server, client]), 3.5);
        assert_eq!(together(&[Took { idle: 0.5, ..server }, client]), 2.5);
    }
}
