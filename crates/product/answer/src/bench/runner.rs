//! One program, run again and again with the same input: alone, or in less RAM. Nobody sees its output, which is
//! compared; only a run that is `shown` has the user's own streams.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_kernel::{Group, SwapKind, Swaps, Tree};
use coldframe_live::Options;
use coldframe_proc::{field, text, Process};
use coldframe_recording::span::PAGE;
use rustix::fs::{fadvise, Advice};
use rustix::process::Signal;

use super::plan::Runner;
use super::trial::{Outcome, Refusal, Trial};
use crate::error::AnswerError;
use crate::listener::Silent;
use crate::predict::bits::file_looks::FileLooks;
use crate::run::by_kernel::ready_here;
use crate::run::child::{below_since, send, Care, Child, Why, GRACE};
use crate::run::looks::group::GroupLooks;
use crate::run::order::{Order, Program, NO_LIMIT};
use crate::run::paged::{run, PagedRun};
use crate::run::pager::Pager;
use crate::run::program::{default_backing, is_root, pageable, plain, Executable};
use crate::run::runs::{By, Run, Way};
use crate::run::signals::Signals;
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
    /// Whether runs alone are in a memory group, too, and reports of it are wanted.
    pub in_group: bool,
    /// Files that the program maps, as far as its runs alone in a group have shown them.
    pub mapped: Mutex<BTreeSet<PathBuf>>,
}

impl Runner for Bench<'_> {
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn run(&mut self, trial: &Trial) -> Outcome {
        trial.cold.iter().for_each(|path| leave_cache(path));
        let ended = match (trial.way.by, trial.ram_bytes) {
            (By::Plain, _) | (_, None) if self.in_group => {
                self.paged(&Trial { way: Way::limit(), ..trial.clone() }, NO_LIMIT)
            }
            (By::Plain, _) if trial.shown => self.seen(true),
            (By::Plain, _) | (_, None) => self.plain(trial.at_most),
            (_, Some(ram)) => self.paged(trial, ram),
        };
        match ended {
            _ if self.signals.came() => Outcome::Signal,
            Ok(run) => Outcome::Ran(run),
            Err(error) => Outcome::Refused(Refusal::from(error)),
        }
    }
}

impl<'a> Bench<'a> {
    /// For a question that is asked now.
    pub fn new(
        program: &'a Executable,
        folder: &'a Path,
        streams: &'a Streams,
        signals: &'a Signals,
        in_group: bool,
    ) -> Bench<'a> {
        Bench { program, folder, streams, signals, began: Instant::now(), in_group, mapped: Mutex::default() }
    }

    /// The files that the program maps, as far as runs alone in a group have shown them.
    pub fn mapped_files(&self) -> Rc<[PathBuf]> {
        let files = self.mapped.lock().map(|files| files.iter().filter(|file| file.is_file()).cloned().collect());
        files.unwrap_or_default()
    }

    /// The program alone; it is ended after so many seconds.
    fn plain(&self, at_most: Option<f64>) -> Result<Run, AnswerError> {
        let mut command = plain(self.program);
        let output = self.streams.again(&mut command)?;
        let began = Instant::now();
        let deadline = at_most.and_then(|at_most| began.checked_add(seconds(at_most)));
        let others = below_since();
        let child = Child::start(command, &self.program[0])?;
        let (process, peak) = (Process::of(child.id()), AtomicU64::new(0));
        let files = Mutex::new(FileLooks::new(child.id()));
        let look = || {
            peak.fetch_max(process.anonymous_peak_bytes(), Relaxed);
            files.lock().iter_mut().for_each(|files| files.look());
        };
        let care = Care { deadline, others: &others, look: &look, pause: PAUSE, ..Care::that_ends(self.signals) };
        let program = Program::ended(child.wait(&care)?, began);
        let files = files.into_inner().map(|looks| looks.files).unwrap_or_default();
        Ok(Run { peak_bytes: peak.into_inner(), files, ..self.ended(program, output()) })
    }

    /// The program alone, whose RAM is looked at: shares of all that it starts. `shown`: with the user's own streams.
    pub fn seen(&self, shown: bool) -> Result<Run, AnswerError> {
        let mut process = plain(self.program);
        let output = match shown {
            true => self.streams.shown_once(&mut process).map(|()| None)?,
            false => Some(self.streams.again(&mut process)?),
        };
        let (began, others) = (Instant::now(), below_since());
        let child = Child::start(process, &self.program[0])?;
        let (id, peak) = (child.id(), AtomicU64::new(0));
        let look = || {
            if shown {
                self.streams.look(id);
            }
            let share = |id: u32| field(&text(&Process::of(id).file("smaps_rollup")), "Pss").unwrap_or(0);
            peak.fetch_max(others().into_iter().map(share).sum(), Relaxed);
        };
        let ended = child.wait(&Care { look: &look, others: &others, ..Care::that_ends(self.signals) })?;
        let output = output.map_or_else(|| self.streams.first_output(), |output| output());
        Ok(Run { peak_bytes: peak.into_inner(), ..self.ended(Program::ended(ended, began), output) })
    }

    /// The program in that much RAM.
    fn paged(&self, trial: &Trial, ram: u64) -> Result<Run, AnswerError> {
        let (way, shown, output) = (&trial.way, trial.shown, RefCell::new(None));
        let redirected = |command: &mut Command| match shown {
            true => self.streams.shown_once(command),
            false => {
                *output.borrow_mut() = Some(self.streams.again(command)?);
                Ok(())
            }
        };
        let streams = |command: &mut Command| {
            way.setting.iter().for_each(|setting| _ = command.env(setting.name, setting.joined()));
            redirected(command)
        };
        let max_memory = Options::MAX_MEMORY;
        // As `coldframe run` without --each.
        let options = Options {
            backing: self.folder.to_owned(),
            max_memory,
            one_budget: true,
            in_all: true,
            ..Options::new(ram)
        };
        let looks = GroupLooks::new((shown || ram == NO_LIMIT).then_some(&self.mapped));
        let ends_if_killed = trial.jobs.is_some();
        let look = |group: &Group, process: u32| {
            if looks.look(group) && ends_if_killed {
                // Its parent may wait for it forever.
                group.processes().into_iter().for_each(|process| send(process, Signal::KILL));
            }
            if shown {
                self.streams.look(process);
            }
        };
        let order = Order {
            by: if way.by == By::Kernel { Pager::Kernel } else { Pager::Ours },
            swap: way.swap.as_deref(),
            pass_on: false,
            patience: trial.at_most.map(seconds),
            // Nobody needs what a run leaves that is ended.
            grace: if shown { GRACE } else { HIDDEN_GRACE },
            streams: Some(&streams),
            group_look: Some(&look),
            ..Order::new(self.program, options, self.signals)
        };
        let paged = run(&order, &Silent)?;
        let (page_reads, evicted_nothing, peak_bytes) = match &paged {
            PagedRun::Pager(run) => {
                let all = run.all_memory.map_or(0, |memory| memory.most_bytes);
                (run.device.bytes_read / PAGE, run.stats.evictions == 0, all)
            }
            PagedRun::Kernel(run) => {
                (run.counts.refaults + run.counts.file_refaults, false, run.memory.peak_bytes.unwrap_or(0))
            }
        };
        let group = looks.end(peak_bytes).filter(|_| way.by == By::Kernel);
        let (killed, managed_bytes) = (paged.killed(), paged.memory_bytes());
        let output = if shown { self.streams.first_output() } else { output.into_inner().and_then(|end| end()) };
        let ended = self.ended(paged.program(), output);
        let over_limit = way.by == By::Pager && peak_bytes > ram + ram / OVER + OVER_BYTES;
        Ok(Run { killed, over_limit, page_reads, peak_bytes, managed_bytes, evicted_nothing, group, ..ended })
    }

    fn ended(&self, program: Program, output: Option<Output>) -> Run {
        let too_long = program.why == Some(Why::Deadline);
        let Program { status, seconds, .. } = program;
        Run { seconds, status, too_long, output, input_lost: self.streams.lost().map(Into::into), ..Run::default() }
    }
}

/// A run by our pager may take a part of its limit more than that, and so many bytes: it is looked at now and then.
const OVER: u64 = 20;
const OVER_BYTES: u64 = 1 << 20;
/// How long a run that nobody sees may take to end, when it took too long.
const HIDDEN_GRACE: Duration = Duration::from_millis(300);

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
