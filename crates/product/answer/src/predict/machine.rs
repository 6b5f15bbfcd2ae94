//! This machine with its costs, which answer about a recording; or the machine of a sheet.

use std::path::Path;

use crate::machine::costs::Extent;
use coldframe_sheet::here::Here;
use coldframe_sheet::Sheet;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::prices::swaps;
use crate::machine::sheet;
use crate::nothing::Nothing;
use crate::predict::common::program as program_of;
use crate::predict::curve::Curve;
use crate::predict::memory_use::MemoryUse;
use crate::predict::price::Costs;
use crate::predict::question::{pager, Limits, Question, Reading};
use crate::predict::recorded::Recorded;
use crate::run::program::default_backing;

/// A machine, as the answers need it.
pub struct Machine {
    sheet: Sheet,
    costs: Costs,
}

impl Machine {
    /// This machine. The costs of paging here are measured if they are not known.
    pub fn known(listener: &dyn Listener) -> Result<Machine, AnswerError> {
        let sheet = sheet::sheet(&default_backing(), Extent::Whole, listener)?;
        Machine::of(sheet)
    }

    /// This machine, if it was measured before.
    pub(crate) fn measured_before() -> Option<Machine> {
        sheet::known(&default_backing()).and_then(|sheet| Machine::of(sheet).ok())
    }

    /// The machine of a sheet.
    pub fn of(sheet: Sheet) -> Result<Machine, AnswerError> {
        let here = Here::of(&sheet)?;
        let evict_dirty_read = sheet.cost("live.evict_dirty_read").ok();
        Ok(Machine { costs: Costs { here, evict_dirty_read }, sheet })
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
            let command = reading.provenance.command.as_deref().unwrap_or_default();
            Nothing::refuse(program_of(Some(command)), facts.exit, facts.managed_bytes)?;
        }
        self.priced(reading, limits)
    }

    /// The answer about a recording with a heap of any size.
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

/// The answer about the recording in this file, for this machine.
///
/// # Errors
/// As [`Reading::read`], [`Machine::known`] and [`Machine::about`].
pub fn recorded(trace: &Path, limits: &Limits, listener: &dyn Listener) -> Result<Recorded, AnswerError> {
    let reading = Reading::read(trace, None, None)?;
    Machine::known(listener)?.about(&reading, limits)
}

/// The run time of a recorded program, by RAM.
pub fn answer(reading: &Reading, question: &Question) -> Result<Recorded, AnswerError> {
    let rows = &reading.rows;
    let limits = question.limits.for_heap(rows.facts.not_paged_bytes);
    let question = &Question { limits, ..question.clone() };
    let curve = Curve::find(rows, question)?;
    let mut answer = Recorded::new(reading.trace.clone(), rows, question, &curve);
    let ram = answer.common.ram_bytes.unwrap_or(answer.common.needed_bytes / 2);
    answer.memory_use = Some(MemoryUse::of(rows, &question.pager, ram)?);
    answer.in_one_budget(rows);
    Ok(answer.into_limits())
}
