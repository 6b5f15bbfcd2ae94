//! This machine with its costs, which answer about a recording; or the machine of a sheet.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use coldframe_costs::Extent;
use coldframe_live::Options;
use coldframe_sheet::here::Here;
use coldframe_sheet::Sheet;

use crate::child::{Care, Child, Signals};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine_sheet;
use crate::prices::swaps;
use crate::program::{default_backing, plain, with_pager};
use crate::recorded::Recorded;
use crate::watch::nothing_to_save;
use crate::{answer, pager, Costs, Limits, Question, Reading};

/// A machine, as the answers need it.
pub struct Machine {
    sheet: Sheet,
    costs: Costs,
}

impl Machine {
    /// This machine. The costs of paging here are measured if they are not known.
    ///
    /// # Errors
    /// This machine cannot page.
    pub fn known(listener: &dyn Listener) -> Result<Machine, AnswerError> {
        let sheet = machine_sheet::sheet(&default_backing(), Extent::Whole, listener)?;
        Machine::of(sheet, start_seconds().unwrap_or(0.0))
    }

    /// The machine of a sheet, on which a pager takes these seconds to start and to end.
    ///
    /// # Errors
    /// The sheet lacks a cost.
    pub fn of(sheet: Sheet, start: f64) -> Result<Machine, AnswerError> {
        let here = Here::of(&sheet)?;
        let evict_dirty_read = sheet.cost("live.evict_dirty_read").ok();
        Ok(Machine { costs: Costs { here, evict_dirty_read, start }, sheet })
    }

    /// Its sheet.
    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// The answer about a recording.
    ///
    /// # Errors
    /// As [`answer`]; the heap is so small that there is nothing to save.
    pub fn about(&self, reading: &Reading, limits: &Limits) -> Result<Recorded, AnswerError> {
        if let Some(facts) = &reading.provenance.program {
            nothing_to_save(facts.managed_bytes)?;
        }
        self.priced(reading, limits)
    }

    /// The answer about a recording with a heap of any size.
    ///
    /// # Errors
    /// As [`answer`].
    pub fn priced(&self, reading: &Reading, limits: &Limits) -> Result<Recorded, AnswerError> {
        let measured = self.sheet.machine.as_ref().map_or("", |machine| machine.measured.as_str());
        let question = Question {
            costs: self.costs,
            measured: format!("measured on {measured} by `coldframe doctor --calibrate`"),
            swaps: swaps(),
            pager: pager(&self.costs.here),
            limits: *limits,
        };
        answer(reading, &question)
    }
}

/// How often the start of a pager is timed; the median is used.
const STARTS: usize = 3;

/// The seconds that a pager takes to start and to end: a program that does nothing, with and without it. `None`: it
/// cannot be measured here.
fn start_seconds() -> Option<f64> {
    let program = vec![OsString::from("true")];
    let options = Options { backing: default_backing(), max_memory: MEMORY, ..Options::new(RAM) };
    let signals = Signals::catch().ok()?;
    let paged = || {
        let mut process = with_pager(&program, &options).ok()?;
        // What it says, the program will say, too.
        process.stderr(Stdio::null());
        let child = Child::start(process, &program[0]).ok()?;
        child.wait(&Care::of(&signals)).ok().map(|ended| ended.status)
    };
    let alone = || plain(&program).status().ok();
    Some((median(paged)? - median(alone)?).max(0.0))
}

/// RAM and address space of a program that needs little.
const RAM: u64 = 64 << 20;
const MEMORY: u64 = 64 << 30;

fn median(run: impl Fn() -> Option<ExitStatus>) -> Option<f64> {
    let timed = || {
        let began = Instant::now();
        run().filter(|status| status.success()).map(|_| began.elapsed().as_secs_f64())
    };
    let mut all: Vec<f64> = (0..STARTS).map(|_| timed()).collect::<Option<_>>()?;
    all.sort_by(f64::total_cmp);
    Some(all[STARTS / 2])
}
