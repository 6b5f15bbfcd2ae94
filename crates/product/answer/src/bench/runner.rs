//! One program, run again and again with the same input: alone, or in less RAM. Nobody sees its output, which is
//! compared; only a run that is `shown` has the user's own streams.

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Swaps, Tree};
use coldframe_live::Options;
use coldframe_proc::Process;
use coldframe_recording::span::PAGE;
use rustix::fs::{fadvise, Advice};

use super::plan::Runner;
use super::trial::{Outcome, Refusal, Trial};
use crate::error::AnswerError;
use crate::listener::Silent;
use crate::predict::bits::file_looks::FileLooks;
use crate::run::by_kernel::ready_here;
use crate::run::child::{below_since, Care, Child, Signals, Why};
use crate::run::order::{Order, Program};
use crate::run::paged::{run, PagedRun};
use crate::run::pager::Pager;
use crate::run::program::{default_backing, is_root, pageable, plain, Executable};
use crate::run::runs::{By, Run, Way};
use crate::run::streams::{Output, Streams};

/// The time between two looks at the RAM of a program that runs alone: one takes 20 us.
const PAUSE: Duration = Duration::from_millis(5);

/// A program, and what all of its runs share.
pub struct Bench<'a> {
    /// The program and its arguments.
    pub program: &'a Executable,
    /// The folder of swap files.
    pub folder: &'a Path,
    /// Its input.
    pub streams: &'a Streams,
    /// A signal to coldframe ends the runs.
    pub signals: &'a Signals,
    /// When the question was asked.
    pub began: Instant,
    /// Whether the mapped files of the program were looked at: one run is enough to know them.
    pub files_known: bool,
}

impl Runner for Bench<'_> {
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn run(&mut self, trial: &Trial) -> Outcome {
        trial.cold.iter().for_each(|path| leave_cache(path));
        let ended = match (trial.way.by, trial.ram_bytes, trial.shown) {
            (By::Plain, _, true) => self.shown(),
            (By::Plain, _, false) | (_, None, _) => self.plain(trial.at_most),
            (_, Some(ram), _) => self.paged(&trial.way, ram, trial.at_most),
        };
        match ended {
            _ if self.signals.came() => Outcome::Signal,
            Ok(run) => Outcome::Ran(run),
            Err(error) => Outcome::Refused(Refusal::from(error)),
        }
    }
}

impl Bench<'_> {
    /// The program alone; it is ended after so many seconds.
    fn plain(&mut self, at_most: Option<f64>) -> Result<Run, AnswerError> {
        let mut command = plain(self.program);
        let output = self.streams.again(&mut command)?;
        let began = Instant::now();
        let deadline = at_most.and_then(|at_most| began.checked_add(seconds(at_most)));
        let others = below_since();
        let child = Child::start(command, &self.program[0])?;
        let (id, peak) = (child.id(), AtomicU64::new(0));
        let process = Process::of(id);
        let files = Mutex::new((!self.files_known).then(|| FileLooks::new(id)));
        let look = || {
            peak.fetch_max(process.anonymous_peak_bytes(), Relaxed);
            files.lock().unwrap().iter_mut().for_each(FileLooks::look);
        };
        let care = Care { deadline, others: &others, look: &look, pause: PAUSE, ..Care::that_ends(self.signals) };
        let program = Program::ended(child.wait(&care)?, began);
        self.files_known = true;
        let files = files.into_inner().unwrap().map(|looks| looks.files).unwrap_or_default();
        Ok(Run { peak_bytes: peak.into_inner(), files, ..self.ended(program, output()) })
    }

    /// The program alone, with the user's own streams.
    fn shown(&self) -> Result<Run, AnswerError> {
        let mut process = plain(self.program);
        self.streams.first(&mut process)?;
        let began = Instant::now();
        let child = Child::start(process, &self.program[0])?;
        let (id, peak) = (child.id(), AtomicU64::new(0));
        let look = || {
            self.streams.look(id);
            let pages = Process::of(id).pages().map_or(0, |[_, resident, _]| resident);
            peak.fetch_max(pages * PAGE, Relaxed);
        };
        let ended = child.wait(&Care { look: &look, ..Care::that_ends(self.signals) })?;
        let output = self.streams.first_output();
        Ok(Run { peak_bytes: peak.into_inner(), ..self.ended(Program::ended(ended, began), output) })
    }

    /// The program in that much RAM; it is ended after so many seconds.
    fn paged(&self, way: &Way, ram: u64, at_most: Option<f64>) -> Result<Run, AnswerError> {
        let output = RefCell::new(None);
        let streams = |command: &mut Command| {
            let end = self.streams.again(command)?;
            *output.borrow_mut() = Some(end);
            Ok(())
        };
        let max_memory = Options::MAX_MEMORY;
        // As `coldframe run` without --each.
        let options = Options { backing: self.folder.to_owned(), max_memory, one_budget: true, ..Options::new(ram) };
        let order = Order {
            by: if way.by == By::Kernel { Pager::Kernel } else { Pager::Ours },
            swap: way.swap.as_deref(),
            pass_on: false,
            patience: at_most.map(seconds),
            streams: Some(&streams),
            ..Order::new(self.program, options, self.signals)
        };
        let paged = run(&order, &Silent)?;
        let (page_reads, peak_bytes, evicted_nothing) = match &paged {
            PagedRun::Pager(run) => (run.device.bytes_read / PAGE, 0, run.stats.evictions == 0),
            PagedRun::Kernel(run) if way.in_all => (run.counts.refaults, run.memory.peak_bytes.unwrap_or(ram), false),
            PagedRun::Kernel(run) => (run.counts.swap_in_bytes / PAGE, 0, false),
        };
        let (killed, managed_bytes) = (paged.killed(), paged.memory_bytes());
        let output = output.into_inner().and_then(|end| end());
        let ended = self.ended(paged.program(), output);
        Ok(Run { killed, page_reads, peak_bytes, managed_bytes, evicted_nothing, ..ended })
    }

    fn ended(&self, program: Program, output: Option<Output>) -> Run {
        let too_long = program.why == Some(Why::Deadline);
        let Program { status, seconds, .. } = program;
        Run { seconds, status, too_long, output, input_lost: self.streams.lost().map(Into::into), ..Run::default() }
    }
}

fn seconds(count: f64) -> Duration {
    Duration::try_from_secs_f64(count.max(0.0)).unwrap_or(Duration::MAX)
}

/// A file's pages leave the cache, if nobody maps them. What was not written yet is written. A device is not opened.
fn leave_cache(path: &Path) {
    if let Some(file) = path.is_file().then(|| File::open(path).ok()).flatten() {
        let _ = file.sync_data();
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// Who can page a program here.
pub struct Ways {
    /// Our pager, or why it cannot.
    pub pager: Result<Way, String>,
    /// The kernel, or why it cannot; `Err(None)`: this user may not make the group and the swap.
    pub kernel: Result<Way, Option<String>>,
}

impl Ways {
    /// Asks this machine. `folder`: where a swap file for the runs has room.
    pub fn find(program: &Executable, folder: &Path) -> Ways {
        let pager = pageable(program).map(|()| Way::pager()).map_err(|why| why.to_string());
        let kernel = kernel_swap(folder).map(Way::kernel);
        let why = || if is_root() { ready_here(None).err().map(|why| why.to_string()) } else { None };
        Ways { pager, kernel: kernel.ok_or_else(why) }
    }
}

/// The swap for runs by the kernel: `None` if there can be no such run, `Some(None)`: that of the machine.
fn kernel_swap(folder: &Path) -> Option<Option<String>> {
    let machine = ready_here(None).is_ok();
    if machine && Swaps::read(&Tree::machine()).lasts() {
        return Some(None);
    }
    let kinds = [SwapKind::Zram, SwapKind::File(folder.join("swap"))];
    let possible = |kind: &SwapKind| kind.check(&Tree::machine()).is_ok() && ready_here(Some(kind.clone())).is_ok();
    kinds.into_iter().find(possible).map(|kind| Some(kind.to_string())).or(machine.then_some(None))
}

/// A folder for the swap files of runs, which goes with them.
///
/// # Errors
/// It cannot be made.
pub fn swap_folder() -> Result<tempfile::TempDir, AnswerError> {
    let folder = tempfile::Builder::new().prefix("coldframe-runs-").tempdir_in(default_backing());
    folder.map_err(|e| AnswerError::new(5, format!("no folder for swap files: {e}; set TMPDIR")))
}
