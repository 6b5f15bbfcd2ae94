//! The default recorder: the program runs with all of its memory in RAM and a window of mapped pages. Each page that
//! enters the window is a row of the trace. The trace is complete when the program ends, when a time is up, and when
//! the user presses Ctrl-C.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::File;

use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::run::rights::file_system;
use coldframe_live::{Options, Recorder, StatsFile, FRAMES_MIN};
use coldframe_proc::{Rest, Tree};
use coldframe_recording::entries::{Word, LEN};
use coldframe_recording::span;
use coldframe_sheet::quantity::human_size;
use coldframe_store::window::{window, Recorded as Process};
use coldframe_store::{Noise, ProgramFacts, TraceError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::not_paged::NotPaged;
use crate::predict::simulate::threads;
use crate::predict::stand_alone::stand_alone;
use crate::run::awake;
use crate::run::child::{Care, Child, Ended, Why};
use crate::run::program::{self, default_backing, line, pageable, with_pager, Executable};
use crate::run::signals::Signals;
use crate::run::streams::Streams;

/// The result of a recording.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recording {
    /// The trace.
    pub trace: PathBuf,
    /// `faults`: by the pager.
    pub via: &'static str,
    /// Nanoseconds from a fault to its handler and back, on average.
    #[serde(rename = "way_ns")]
    pub round_trip_ns: u64,
    /// Rows of the trace.
    pub rows: u64,
    /// Faults of the program.
    pub faults: u64,
    /// Programs and forked children.
    pub processes: u32,
    /// Its run time while it was recorded.
    pub seconds: f64,
    /// Time that its faults took in handlers.
    pub handling_seconds: f64,
    /// The stand-alone time.
    pub program_seconds: f64,
    /// ProcessorTimes of all processes together.
    pub processor_seconds: ProcessorTimes,
    /// A run without recording, if one was asked for.
    pub native_seconds: Option<f64>,
    /// Pages that were filled with zeros.
    pub zero_fills: u64,
    /// The most managed memory at a time.
    pub managed_bytes: u64,
    /// The most memory that is not paged.
    pub not_paged_bytes: u64,
    /// Its exit code; null: a signal ended it.
    pub status: Option<i32>,
    /// Why the recording ended before the program did.
    pub limit: Option<&'static str>,
    /// Recorded processes that continue.
    pub processes_left: Vec<u32>,
    /// The disk became full.
    pub disk_full: bool,
    /// The kinds of memory that is not paged, of the largest process; `None`: it was too short to look at it.
    #[serde(skip)]
    pub not_paged: Option<NotPaged>,
    /// Bytes of the trace.
    #[serde(skip)]
    pub bytes_written: u64,
    /// The signal that ended it.
    #[serde(skip)]
    pub signal: Option<i32>,
}

/// ProcessorTimes of all processes together, in seconds.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ProcessorTimes {
    /// Processor time of the program.
    pub program: f64,
    /// Processor time of handlers.
    pub handlers: f64,
    /// The recorder's start.
    pub starting: f64,
}

/// What to record, and how.
pub struct RecordOrder<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// A window of this many pages, without sampling; `None`: both adapt to the program.
    pub pages: Option<usize>,
    /// Nanoseconds of the user's patience that recording may take in addition.
    pub patience: u64,
    /// The program runs alone once before, without input and output.
    pub overhead: bool,
    /// The program is ended after this time.
    pub max_time: Option<Duration>,
    /// The streams of other runs, if there are some.
    pub streams: Option<&'a Streams>,
    /// Who hears how far it is.
    pub listener: Option<&'a dyn Listener>,
}

impl<'a> RecordOrder<'a> {
    /// The program, in the way that adapts to it.
    pub fn new(command: &'a Executable) -> RecordOrder<'a> {
        let (pages, patience, max_time) = (None, 0, None);
        let (streams, listener) = (None, None);
        RecordOrder { command, pages, patience, overhead: false, max_time, streams, listener }
    }
}

/// The patience of a user who waits for an answer, in nanoseconds. Most programs take a small part of it
/// (`coldframe_live`, `record/recorder.rs`).
pub const PATIENCE: u64 = 10_000_000_000;
/// The same where further runs decide: they need the time more.
pub const PATIENCE_WITH_RUNS: u64 = PATIENCE / 4;

/// Code and libraries of a program that the pager serves take less than this times its heap, if the heap is worth a
/// question.
const ELSEWHERE: u64 = 4;

/// Bytes that a folder must have free: the recorder takes 4 MiB at a time, and the trace needs room, too.
const ROOM: u64 = 8 << 20;

/// A program that has ended, and its recordings.
struct RecordedRun {
    folder: tempfile::TempDir,
    seconds: f64,
    native_seconds: Option<f64>,
    /// Seconds of work of all processors in the meantime.
    worked: Option<f64>,
    ended: Ended,
    /// What each process had in RAM besides its heap.
    not_paged_kinds: BTreeMap<u32, Rest>,
}

/// What other programs did while these processes ran.
fn noise(worked: Option<f64>, processes: &[Process], seconds: f64) -> Option<Noise> {
    let ours = |process: &Process| process.word(Word::Program) + process.word(Word::Handled);
    let ours = processes.iter().map(ours).sum::<u64>() as f64 / 1e9;
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let others = ((worked? - ours) / seconds).clamp(0.0, f64::from(processors));
    Some(Noise { others, processors })
}

/// Runs the program; its recordings are beside `out`.
fn ran(order: &RecordOrder, out: &Path) -> Result<RecordedRun, AnswerError> {
    let (command, pages) = (order.command, order.pages);
    if let Some(pages) = pages.filter(|pages| *pages < FRAMES_MIN) {
        return Err(AnswerError::usage(format!("--window: {pages} pages are too few; give at least {FRAMES_MIN}")));
    }
    pageable(command)?;
    threads()?;
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
    // A fault takes 20 us of the program's processor time where the processor has slept, instead of 5.
    let _awake = awake::hold();
    let (started, before) = (Instant::now(), Tree::machine().busy_seconds());
    let others = || alive(folder.path());
    let deadline = order.max_time.and_then(|time| Instant::now().checked_add(time));
    let mut process = with_pager(command, &options)?;
    order.streams.map_or(Ok(()), |streams| streams.shown_once(&mut process))?;
    let child = Child::start(process, &command[0])?;
    let (id, watch) = (child.id(), ProcessWatch { folder: folder.path(), memory: Mutex::default() });
    let look = || {
        watch.note(started);
        order.streams.iter().for_each(|streams| streams.look(id));
        let Some(listener) = order.listener else { return };
        // An interactive program has the terminal for itself.
        match order.streams.is_some_and(Streams::is_interactive) {
            true => listener.finish(),
            false => listener.progress(0, None, "recording it"),
        }
    };
    let ended = child.wait(&Care { deadline, others: &others, look: &look, ..Care::that_ends(&signals) })?;
    let worked = Tree::machine().busy_seconds().zip(before).map(|(after, before)| after - before);
    let seconds = ended.ended_at.duration_since(started).as_secs_f64();
    order.listener.iter().for_each(|listener| listener.progress(0, None, "reading the recording"));
    let not_paged_kinds = watch.memory.into_inner().unwrap_or_default().not_paged_kinds;
    Ok(RecordedRun { seconds, folder, native_seconds, worked, ended, not_paged_kinds })
}

/// Runs the program and writes the trace to `out`.
///
/// # Errors
/// The program cannot be recorded in this way, which is reported before it runs; nothing was recorded; the folder of
/// the trace is full.
pub fn record(order: &RecordOrder, out: &Path) -> Result<Recording, AnswerError> {
    let RecordedRun { folder, seconds, native_seconds, worked, ended, not_paged_kinds } = ran(order, out)?;
    let (status, processes_left) = (ended.status, alive(folder.path()));
    let processes = read(folder.path(), status).map_err(|error| ended_early(error, ended.why, order.max_time))?;
    let disk_full = processes.iter().any(Process::is_cut_short);
    let sum = |word| processes.iter().map(|process| process.word(word)).sum::<u64>();
    let seconds_of = |word| sum(word) as f64 / 1e9;
    let (faults, handling_seconds) = (sum(Word::Faults), seconds_of(Word::Handling));
    let round_trip_ns = sum(Word::Ways) / faults.max(1);
    let processor_seconds = ProcessorTimes {
        program: seconds_of(Word::Program),
        handlers: seconds_of(Word::Handled),
        starting: seconds_of(Word::Starting),
    };
    let noise = noise(worked, &processes, seconds);
    let largest = processes.iter().max_by_key(|process| process.word(Word::Managed));
    let rest = largest.and_then(|process| not_paged_kinds.get(&(process.word(Word::Process) as u32)));
    // `new` of C++ calls malloc for the program.
    let passes_on = |name: &str| name.starts_with("libstdc++");
    let text = |caller: &u64| rest?.texts.iter().find(|(start, end, _)| (start..end).contains(&caller));
    let name = |caller: u64| text(&caller).map(|(_, _, name)| name.clone()).filter(|name| !passes_on(name));
    let mappings = largest.map(|process| process.mappings(name).collect()).unwrap_or_default();
    let facts = ProgramFacts {
        seconds: stand_alone(&processes, seconds),
        recorded_seconds: seconds,
        exit: status.code(),
        noise,
        threads: processes.iter().map(|process| process.word(Word::Threads)).sum::<u64>() as u32,
        ..ProgramFacts::default()
    };
    let (summary, facts) = window(processes, &line(order.command), facts, mappings, out)?;
    let limit = ended.why.map(|why| match why {
        Why::Signal => "a signal",
        Why::Deadline => "--for",
    });
    Ok(Recording {
        trace: out.to_owned(),
        via: "faults",
        round_trip_ns,
        rows: summary.rows,
        faults,
        processes: facts.processes,
        seconds: facts.recorded_seconds,
        handling_seconds,
        program_seconds: facts.seconds,
        processor_seconds,
        native_seconds,
        zero_fills: facts.zero_fills,
        managed_bytes: facts.managed_bytes,
        not_paged_bytes: facts.not_paged_bytes,
        status: status.code(),
        limit,
        processes_left,
        disk_full,
        not_paged: rest.and_then(|rest| NotPaged::of(rest, facts.not_paged_bytes)),
        bytes_written: summary.bytes_written,
        signal: status.signal(),
    })
}

/// Of a program that coldframe has ended, its own end says nothing.
fn ended_early(error: AnswerError, why: Option<Why>, time: Option<Duration>) -> AnswerError {
    let (how, remedy) = match (&error, why) {
        (AnswerError::Failed(_) | AnswerError::Unserved(_), Some(Why::Deadline)) => {
            (format!(" after {:?}", time.unwrap_or_default()), "; give a longer --for")
        }
        (AnswerError::Failed(_) | AnswerError::Unserved(_), Some(Why::Signal)) => (" at a signal".into(), ""),
        _ => return error,
    };
    let what = "nothing was recorded: coldframe ended the program";
    AnswerError::new(3, format!("{what}{how}, and it had touched no heap by then{remedy}"))
}

/// Records the program. The inner error: why our pager does not serve its memory, or most of it.
pub fn served(order: &RecordOrder, out: &Path) -> Result<Result<Recording, String>, AnswerError> {
    match record(order, out) {
        Err(AnswerError::Unserved(why)) => Ok(Err(why)),
        // A virtual machine with a heap of its own, or a shell with static children.
        Ok(Recording { managed_bytes: heap, not_paged_bytes: rest, .. }) if rest > ELSEWHERE * heap => {
            let all = human_size(heap + rest);
            Ok(Err(format!("our pager serves {} of its {all}", human_size(heap))))
        }
        recorded => recorded.map(Ok),
    }
}

/// A folder beside the trace for the recordings; it is deleted when dropped.
fn folder_for(out: &Path) -> Result<tempfile::TempDir, AnswerError> {
    if out.is_dir() {
        let message = format!("{}: is a folder; name a file with -o", out.display());
        return Err(AnswerError::new(5, message));
    }
    let place = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = std::path::absolute(place).unwrap_or(place.to_owned());
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(&place);
    let folder = folder.map_err(|e| refused(&place, &e))?;
    let (_, free) = file_system(&place);
    if free < ROOM {
        let (shown, free, room) = (place.display(), free >> 20, ROOM >> 20);
        let message = format!(
            "{shown}: {free} MiB free, and a recording takes {room} MiB and more; make room, or go to another folder"
        );
        return Err(AnswerError::new(5, message));
    }
    Ok(folder)
}

fn refused(path: &Path, error: &std::io::Error) -> AnswerError {
    let elsewhere = "go to a folder that you may write to";
    AnswerError::new(5, format!("{}: cannot be written: {error}; {elsewhere}", path.display()))
}

/// The seconds that the program takes alone, without input and with its output discarded.
fn alone(command: &[OsString]) -> Result<f64, AnswerError> {
    let began = Instant::now();
    let status = program::plain(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.map_err(|e| AnswerError::new(5, format!("cannot run {}: {e}", command[0].display())))?;
    Ok(began.elapsed().as_secs_f64())
}

/// Processes that record into this folder now. A file is named after its process, which has it mapped.
fn alive(folder: &Path) -> Vec<u32> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let process = |name: OsString| name.to_str()?.split('.').next()?.parse::<u32>().ok();
    let mut all: Vec<u32> = files.flatten().filter_map(|file| process(file.file_name())).collect();
    all.sort_unstable();
    all.dedup();
    let shown = folder.to_string_lossy();
    all.retain(|process| coldframe_proc::Process::of(*process).maps().contains(&*shown));
    all
}

/// Watches recorded processes from outside.
struct ProcessWatch<'a> {
    folder: &'a Path,
    memory: Mutex<ProcessMemory>,
}

#[derive(Default)]
struct ProcessMemory {
    /// Files whose processes are not there any more.
    gone: HashSet<OsString>,
    not_paged_kinds: BTreeMap<u32, Rest>,
    /// When memory besides the heap is looked at the next time: each time after a quarter more.
    next_look: Duration,
}

impl ProcessWatch<'_> {
    /// Notes in the file of each process that it is there: one that is killed, or becomes another program, cannot note
    /// its end.
    fn note(&self, started: Instant) {
        let (Ok(files), Ok(mut memory)) = (std::fs::read_dir(self.folder), self.memory.lock()) else { return };
        let elapsed = started.elapsed();
        let is_due = elapsed >= memory.next_look;
        for file in files.flatten().map(|file| file.path()) {
            let name = file.file_name().unwrap_or_default();
            if memory.gone.contains(name) {
                continue;
            }
            match ProcessWatch::is_there(&file) {
                None => _ = memory.gone.insert(name.to_owned()),
                Some(process) if is_due => {
                    let rest = Rest::of(&[process], &OURS);
                    let largest = memory.not_paged_kinds.entry(process).or_default();
                    if rest.sum() > largest.sum() {
                        *largest = rest;
                    }
                    memory.next_look = elapsed + elapsed / 4;
                }
                Some(_) => {}
            }
        }
    }

    /// The process that has this file mapped, after the time was noted there.
    fn is_there(path: &Path) -> Option<u32> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        let word = |word: Word| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, 8 * word as u64).ok().map(|()| u64::from_ne_bytes(bytes))
        };
        let (process, place) = (word(Word::Process)? as u32, word(Word::Place)?);
        let mapping = format!("map_files/{place:x}-{:x}", place + LEN as u64);
        // A process that has just begun has no place yet.
        let there = place == 0 || coldframe_proc::Process::of(process).file(&mapping).symlink_metadata().is_ok();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let noted = there.then(|| file.write_all_at(&now.to_ne_bytes(), 8 * Word::Gone as u64));
        noted.map(|_| process)
    }
}

/// In the paths of files that only a recorded program has.
const OURS: [&str; 2] = [FOLDER, "coldframe_preload"];
/// How folders of recordings begin.
const FOLDER: &str = ".coldframe-window";

/// What each process has recorded.
fn read(folder: &Path, status: ExitStatus) -> Result<Vec<Process>, AnswerError> {
    let io = |e: std::io::Error| refused(folder, &e);
    let files: Result<Vec<PathBuf>, _> = std::fs::read_dir(folder).map_err(io)?.map(|e| e.map(|e| e.path())).collect();
    let files = files.map_err(io)?;
    let without_room = files.iter().filter(|file| std::fs::metadata(file).is_ok_and(|meta| meta.blocks() == 0)).count();
    if without_room > 0 {
        let place = folder.parent().unwrap_or(folder).display();
        let message = format!(
            "{place}: the disk is full, and {without_room} of its processes were not recorded; make room, or go to \
             another folder"
        );
        return Err(AnswerError::new(5, message));
    }
    let processes: Result<Vec<Process>, TraceError> = files.iter().map(|file| Process::read(file)).collect();
    let processes = processes?;
    if processes.iter().map(|process| process.word(Word::Entries)).sum::<u64>() == 0 {
        return match (processes.is_empty(), status.success()) {
            (true, _) => Err(AnswerError::Unserved(format!("our pager did not start in the program ({status})"))),
            (false, true) => Err(AnswerError::Unserved("our pager serves none of its memory".into())),
            (false, false) => Err(AnswerError::Failed(status)),
        };
    }
    Ok(processes)
}

impl Recording {
    /// Its exit code as a shell reports it; 0: coldframe ended it.
    pub fn shell_code(&self) -> u8 {
        let ended = self.status.unwrap_or(128 + self.signal.unwrap_or(0));
        if self.limit.is_some() {
            0
        } else {
            ended as u8
        }
    }

    /// Why the trace has less than the program did, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        match (self.limit, self.signal) {
            (Some(limit), _) => all.push(format!("ended by {limit}: this is about what it did until then")),
            (None, Some(signal)) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                all.push(format!("ended by {name} (signal {signal}): this is about what it did until then"));
            }
            (None, None) => {}
        }
        if !self.processes_left.is_empty() {
            let list: Vec<_> = self.processes_left.iter().map(u32::to_string).collect();
            let list = list.join(", ");
            all.push(format!(
                "it has gone to the background (process {list}), recorded until now; keep it in the foreground, and \
                 kill {list}"
            ));
        }
        if self.disk_full {
            all.push("the disk became full, and the recording ends there; make room and record again".into());
        }
        all
    }
}
