//! The run time of a recorded program for each size of RAM on this machine. `advise --device here` and `coldframe --
//! PROGRAM` ask for it.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use coldframe_answer::{answer, pager, Answer, Costs, Question};
use coldframe_costs::Extent;
use coldframe_experiment::ExperimentError;
use coldframe_live::{Options, FRAMES_MIN, PAGE};
use coldframe_sheet::here::Here;
use coldframe_sheet::quantity::human_size;
use coldframe_sheet::Sheet;
use coldframe_store::Reader;

use crate::failure::Failure;
use crate::here_sheet;
use crate::run::{default_backing, find_preload, preloads, start};
use crate::watched::swaps;

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
    pub fn known() -> Result<Machine, Failure> {
        let sheet = here_sheet::sheet_now(&default_backing(), Extent::Whole, false)?;
        Machine::of(sheet, start_seconds().unwrap_or(0.0))
    }

    /// The machine of a sheet, on which a pager takes these seconds to start and to end.
    ///
    /// # Errors
    /// The sheet lacks a cost.
    pub fn of(sheet: Sheet, start: f64) -> Result<Machine, Failure> {
        let here = Here::of(&sheet).map_err(ExperimentError::from)?;
        let evict_dirty_read = sheet.cost("live.evict_dirty_read").ok();
        Ok(Machine { costs: Costs { here, evict_dirty_read, start }, sheet })
    }

    /// Its sheet.
    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// The answer about a trace.
    ///
    /// # Errors
    /// As [`answer`]; the heap is so small that there is nothing to save.
    pub fn about(&self, trace: &Path, slowdown: Option<f64>, program_seconds: Option<f64>) -> Result<Answer, Failure> {
        let ram_least = (FRAMES_MIN * PAGE) as u64;
        if let Some(heap) = heap(trace).filter(|heap| *heap <= ram_least) {
            let (heap, least) = (human_size(heap), human_size(ram_least));
            let message = format!("its heap takes {heap}, and no --ram is less than {least}: there is nothing to save");
            return Err(Failure::Other { message, code: 1 });
        }
        self.priced(trace, slowdown, program_seconds)
    }

    /// The same for any heap.
    ///
    /// # Errors
    /// As [`answer`].
    pub fn priced(&self, trace: &Path, slowdown: Option<f64>, program_seconds: Option<f64>) -> Result<Answer, Failure> {
        let measured = self.sheet.machine.as_ref().map_or("", |machine| machine.measured.as_str());
        let question = Question {
            costs: self.costs,
            measured: format!("measured on {measured} by `coldframe calibrate`"),
            swaps: swaps(),
            pager: pager(&self.costs.here),
            slowdown: slowdown.unwrap_or(Question::SLOWDOWN),
            program_seconds,
        };
        Ok(answer(trace, &question)?)
    }
}

/// The largest amount of paged memory in RAM of the program's largest process, if the recorder has noted it.
fn heap(trace: &Path) -> Option<u64> {
    Some(Reader::open(trace).ok()?.provenance().program?.managed_bytes)
}

/// How often the start of a pager is timed; the median is used.
const STARTS: usize = 3;

/// The seconds that a pager takes to start and to end: a program that does nothing, with and without it. `None`: it
/// cannot be measured here.
fn start_seconds() -> Option<f64> {
    let program = vec![OsString::from("true")];
    let preload = preloads(&find_preload().ok()?);
    let options = Options { backing: default_backing(), max_memory: MEMORY, ..Options::new(RAM) };
    let paged = || start(&program, &preload, &options).ok()?.wait_with_signals(None).ok();
    let alone = || std::process::Command::new(&program[0]).status().ok();
    Some((median(paged)? - median(alone)?).max(0.0))
}

/// RAM and address space of a program that needs little.
const RAM: u64 = 64 << 20;
const MEMORY: u64 = 64 << 30;

fn median(run: impl Fn() -> Option<std::process::ExitStatus>) -> Option<f64> {
    let timed = || {
        let began = Instant::now();
        run().filter(|status| status.success()).map(|_| began.elapsed().as_secs_f64())
    };
    let mut all: Vec<f64> = (0..STARTS).map(|_| timed()).collect::<Option<_>>()?;
    all.sort_by(f64::total_cmp);
    Some(all[STARTS / 2])
}
