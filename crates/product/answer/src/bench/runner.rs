//! One program, run again and again with the same input: plain, or in less RAM. Nobody sees its output, which is
//! compared.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Swaps, Tree};
use coldframe_live::Options;
use coldframe_proc::Process;

use crate::error::AnswerError;
use crate::listener::Silent;
use crate::run::by_kernel::ready_here;
use crate::run::child::{below_since, Care, Child, Signals, Why};
use crate::run::order::{Order, Program};
use crate::run::paged::{run, Run};
use crate::run::pager::Pager;
use crate::run::program::plain;
use crate::run::runs::{By, Ran};
use crate::run::streams::{Output, Streams};

/// The time between two looks at the RAM of a program that runs alone: one takes 20 us.
const PAUSE: Duration = Duration::from_millis(5);

/// A program, and what all of its runs share.
pub struct Bench<'a> {
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// The folder of swap files.
    pub folder: &'a Path,
    /// Its input.
    pub streams: &'a Streams,
    /// A signal to coldframe ends the runs.
    pub signals: &'a Signals,
}

/// Who pages a run, and with which swap.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// Our pager, or the kernel.
    pub by: Pager,
    /// The swap that is made for it, if the kernel pages it; `None`: that of the machine.
    pub swap: Option<&'a str>,
    /// Whether the RAM is for code and mapped files, too, if the kernel pages it.
    pub in_all: bool,
}

impl From<Way<'_>> for By {
    fn from(way: Way) -> By {
        match way.by {
            Pager::Kernel => By::Kernel,
            Pager::Auto | Pager::Ours => By::Pager,
        }
    }
}

impl Bench<'_> {
    /// Runs the program alone; it is ended after this time. `each` is called with its process at each look.
    ///
    /// # Errors
    /// It cannot be started; a signal came.
    pub fn plain(&self, limit: Option<Duration>, each: &(dyn Fn(u32) + Sync)) -> Result<Ran, AnswerError> {
        let mut command = plain(self.program);
        let output = self.streams.again(&mut command)?;
        let began = Instant::now();
        let deadline = limit.and_then(|limit| began.checked_add(limit));
        let others = below_since();
        let child = Child::start(command, &self.program[0])?;
        let (id, peak) = (child.id(), AtomicU64::new(0));
        let process = Process::of(id);
        let look = || {
            peak.fetch_max(process.anonymous_peak_bytes(), Relaxed);
            each(id);
        };
        let care = Care { deadline, others: &others, look: &look, pause: PAUSE, ..Care::that_ends(self.signals) };
        let program = Program::of(child.wait(&care)?, began);
        Ok(Ran { peak_bytes: peak.into_inner(), ..self.ran(program, output(), false, 0)? })
    }

    /// Runs the program in that much RAM; it is ended after this time. Returns all that is known of the run, too.
    ///
    /// # Errors
    /// Nobody can page it so; it cannot be started; a signal came.
    pub fn paged(&self, way: Way, ram: u64, limit: Duration) -> Result<(Ran, Run), AnswerError> {
        let output = std::cell::RefCell::new(None);
        let streams = |command: &mut Command| {
            let end = self.streams.again(command)?;
            *output.borrow_mut() = Some(end);
            Ok(())
        };
        let max_memory = Options::MAX_MEMORY;
        // As `coldframe run` without --each.
        let options = Options { backing: self.folder.to_owned(), max_memory, one_budget: true, ..Options::new(ram) };
        let order = Order {
            by: way.by,
            swap: way.swap,
            in_all: way.in_all,
            pass_on: false,
            patience: Some(limit),
            streams: Some(&streams),
            ..Order::new(self.program, options, self.signals)
        };
        let run = run(&order, &Silent)?;
        let (reads, peak_bytes) = match &run {
            Run::Pager(run) => (run.device.bytes_read / coldframe_live::PAGE as u64, 0),
            Run::Kernel(run) if way.in_all => (run.counts.refaults, run.memory.peak_bytes.unwrap_or(ram)),
            Run::Kernel(run) => (run.counts.swap_in_bytes / coldframe_live::PAGE as u64, 0),
        };
        let output = output.into_inner().and_then(|end| end());
        Ok((Ran { peak_bytes, ..self.ran(run.program(), output, run.killed(), reads)? }, run))
    }

    /// What became of a run, if no signal came.
    pub(crate) fn ran(
        &self,
        program: Program,
        output: Option<Output>,
        killed: bool,
        page_reads: u64,
    ) -> Result<Ran, AnswerError> {
        if self.signals.came() {
            return Err(AnswerError::new(130, "stopped; nothing is left behind"));
        }
        let too_long = program.why == Some(Why::Deadline);
        let Program { status, seconds, .. } = program;
        Ok(Ran { seconds, status, too_long, killed, output, page_reads, peak_bytes: 0 })
    }
}

/// The swap for runs by the kernel: `None` if there can be no such run, `Some(None)`: that of the machine.
pub fn kernel_swap(folder: &Path) -> Option<Option<String>> {
    let machine = ready_here(None).is_ok();
    if machine && Swaps::read(&Tree::machine()).lasts() {
        return Some(None);
    }
    let kinds = [SwapKind::Zram, SwapKind::File(folder.join("swap"))];
    let there = |kind: &SwapKind| kind.there(&Tree::machine()).is_ok() && ready_here(Some(kind.clone())).is_ok();
    kinds.into_iter().find(there).map(|kind| Some(kind.to_string())).or(machine.then_some(None))
}
