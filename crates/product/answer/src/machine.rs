//! This machine with its costs, which answer about a recording; or the machine of a sheet.

use coldframe_costs::Extent;
use coldframe_sheet::here::Here;
use coldframe_sheet::Sheet;

use crate::common::program as program_of;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine_sheet;
use crate::nothing::Nothing;
use crate::prices::swaps;
use crate::program::default_backing;
use crate::recorded::Recorded;
use crate::{answer, pager, Costs, Limits, Question, Reading};

/// A machine, as the answers need it.
pub struct Machine {
    sheet: Sheet,
    costs: Costs,
}

impl Machine {
    /// This machine. The costs of paging here are measured if they are not known.
    pub fn known(listener: &dyn Listener) -> Result<Machine, AnswerError> {
        let sheet = machine_sheet::sheet(&default_backing(), Extent::Whole, listener)?;
        Machine::of(sheet)
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
