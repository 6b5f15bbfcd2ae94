//! What is asked about a program, and what it is asked of.

use std::path::Path;
use std::time::Duration;

use coldframe_recording::plan::{Pager, FRAMES_MIN};
use coldframe_recording::span::PAGE;
use coldframe_sheet::here::Here;
use coldframe_store::heat::{heat_of, Heat};
use coldframe_store::{Provenance, Reader};

use super::price::Costs;
use super::rows::Rows;
use crate::error::AnswerError;
use crate::machine::prices::Price;

/// The pager on this machine. A fault's whole time stands for a read of the device.
pub fn pager(here: &Here) -> Pager {
    Pager::of(&coldframe_recording::plan::Measured { read_ns: here.device_fault.mean.0 / 1000, step_ns: 1 })
}

/// A recording, whose trace is opened once.
pub struct Reading {
    /// Its path, for people.
    pub trace: String,
    /// What its recorder noted.
    pub provenance: Provenance,
    /// What was touched.
    pub rows: Rows,
    /// Where and when, if that was asked for.
    pub heat: Option<Heat>,
}

impl Reading {
    /// Reads a trace. `seconds`: the stand-alone time, if it is known better than from the trace; `map`: rows and
    /// columns of a map of touched memory.
    pub fn read(path: &Path, seconds: Option<f64>, map: Option<(usize, usize)>) -> Result<Reading, AnswerError> {
        let mut reader = Reader::open(path)?;
        let provenance = reader.provenance().clone();
        let rows = Rows::read(path, &mut reader, seconds)?;
        let heat = map.map(|(rows, columns)| heat_of(&mut reader, path, rows, columns)).transpose()?;
        Ok(Reading { trace: path.display().to_string(), provenance, rows, heat })
    }
}

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The costs of paging here.
    pub costs: Costs,
    /// The source of these costs, for `How sure`.
    pub measured: String,
    /// What a page costs that comes back from the kernel's swap, for each kind that is known.
    pub swaps: Vec<Price>,
    /// The pager.
    pub pager: Pager,
    /// What the user wants to know.
    pub limits: Limits,
}

/// What the user wants to know about a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest extra run time, as a part of the stand-alone time.
    pub slowdown: f64,
    /// A limit whose cost the answer says, too.
    pub ram: Option<u64>,
    /// The program is ended, or the watching of a process ends, after this time.
    pub time: Option<Duration>,
    /// The program runs once: all times are predicted.
    pub once: bool,
}

/// Extra seconds that are never too many: about what a pager takes to start and to end. They matter for programs of
/// less than a tenth of a second.
pub const UNNOTICED: f64 = 0.01;

impl Default for Limits {
    fn default() -> Limits {
        Limits { slowdown: 0.1, ram: None, time: None, once: false }
    }
}

impl Limits {
    /// The longest good run of a program that takes so many seconds alone.
    pub(crate) fn longest(&self, alone: f64) -> f64 {
        alone + (self.slowdown * alone).max(UNNOTICED)
    }

    /// The same about the heap of a program that has so much other memory: the size that was given is a limit.
    pub(crate) fn for_heap(self, rest: u64) -> Limits {
        let least = FRAMES_MIN as u64 * PAGE;
        Limits { ram: self.ram.map(|limit| limit.saturating_sub(rest).max(least)), ..self }
    }

    /// With this slowdown, if there is one.
    #[must_use]
    pub fn slower(slowdown: Option<f64>) -> Limits {
        let own = Limits::default();
        Limits { slowdown: slowdown.unwrap_or(own.slowdown), ..own }
    }
}
