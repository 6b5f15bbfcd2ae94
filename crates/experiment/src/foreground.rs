//! Tasks that take turns in the foreground, from names to results: a multi-task trace, a swap area, and its costs in
//! time and energy.
//!
//! Resolve settings to a [`ForegroundPlan`], make a [`Session::new`] for it, feed it blocks, and call
//! [`Session::finish`]; [`simulate`] does all of this for a stored trace. Every backing is a configuration of the
//! same engine.

use std::collections::BTreeSet;

use coldframe_boards::flash::{life_years, wear};
use coldframe_boards::start_gap::levelled;
use coldframe_boards::swap_energy::{SwapCounts, SwapLedger};
use coldframe_core::{Backed, Pj, Ps};
use coldframe_drivers::foreground::Switch;
use coldframe_drivers::{Foreground, ForegroundResult};
use coldframe_store::{Block, Kind, Provenance, Reference};

use crate::error::ExperimentError;
use crate::phone;
use crate::resolve::ForegroundPlan;
use crate::swap_prices::energy;
use crate::systems::front_end::spaces;

mod stored;

pub use stored::{simulate, simulate_with_journal, Stored};

/// The result of a run.
pub struct Outcome {
    /// Counts and times.
    pub result: ForegroundResult,
    /// Energy of the swap area by term.
    pub energy: SwapLedger,
    /// Energy of reading pages in their slots, which the equations leave out.
    pub in_slots: Pj,
}

impl Outcome {
    /// Switches to tasks that were in the foreground before; first visits only start the applications.
    pub fn switches_back(&self) -> impl Iterator<Item = &Switch> {
        let mut seen = BTreeSet::new();
        self.result.switches.iter().filter(move |switch| !seen.insert(switch.task))
    }

    /// Mean wait of switches back: for fault handling, and for slots that are slower than DRAM.
    pub fn switch_delay(&self) -> Ps {
        mean_delay(self.switches_back())
    }

    /// The same for switches back to one task.
    pub fn switch_delay_of(&self, task: u32) -> Ps {
        mean_delay(self.switches_back().filter(|switch| switch.task == task))
    }

    /// Writes to each slot of an area with `slots` slots.
    pub fn slot_writes(&self, slots: usize) -> Vec<u32> {
        let mut writes = vec![0; slots];
        self.result.slot_log.iter().for_each(|slot| writes[*slot as usize] += 1);
        writes
    }
}

fn mean_delay<'a>(switches: impl Iterator<Item = &'a Switch>) -> Ps {
    let (sum, n) = switches.fold((0, 0), |(sum, n), switch| (sum + switch.delay.0, n + 1));
    Ps(sum / n.max(1))
}

/// Years until the most written slot reaches its rated writes, under this load without a pause. With start-gap, all
/// slots are written equally.
pub fn life(plan: &ForegroundPlan, o: &Outcome) -> Option<f64> {
    let worn = wear(&o.slot_writes(plan.config.slots.slots));
    let years = life_years(&worn, plan.area().cycles?, o.result.end.0 / 1_000)?;
    Some(plan.start_gap.map_or(years, |psi| years * f64::from(worn.max) / levelled(worn.mean, psi)))
}

/// The owners of addresses. Ranges of the trace that are mapped from a file and cannot be written are the file's
/// pages. Memory that the program can write is its own copy. In a trace without mappings, the first touch of a page
/// decides: code comes from a file.
pub(crate) struct Owners(Vec<(u64, u64)>, bool);

impl Owners {
    pub(crate) fn of(trace: &Provenance) -> Owners {
        let file = trace.mappings.iter().filter(|m| !m.name.starts_with('[') && !m.name.is_empty());
        let ranges = file.filter(|m| !m.protection.contains('w')).map(|m| (m.start, m.end)).collect();
        Owners(ranges, trace.mappings.is_empty())
    }

    pub(crate) fn backed(&self, row: &Reference) -> Backed {
        let in_file = self.0.iter().any(|(start, end)| (*start..*end).contains(&row.address));
        if in_file || (self.1 && row.kind == Kind::Fetch) {
            Backed::File
        } else {
            Backed::Anonymous
        }
    }
}

/// By address space: whether it belongs to a service, by its task's name ([`phone::SERVICE`]).
fn services(trace: &Provenance, spaces: usize) -> Vec<bool> {
    let mut services = vec![false; spaces];
    let named = trace.tasks.iter().filter(|task| task.name.starts_with(phone::SERVICE));
    named.for_each(|task| services[task.space as usize] = true);
    services
}

/// A run in progress.
pub struct Session<'a> {
    plan: &'a ForegroundPlan,
    run: Foreground,
    owners: Owners,
}

impl<'a> Session<'a> {
    /// For a trace of this many pages, or with this upper limit.
    ///
    /// # Errors
    /// Parameters that do not fit the frames.
    pub fn new(plan: &'a ForegroundPlan, trace: &Provenance, pages: usize) -> Result<Session<'a>, ExperimentError> {
        let spaces_max = trace.tasks.iter().map(|task| task.space as usize + 1).max().unwrap_or(1);
        let mut config = plan.config.clone();
        config.services = services(trace, spaces_max);
        let run = Foreground::new(&config, pages, spaces(trace), spaces_max);
        Ok(Session { plan, run: run.map_err(coldframe_drivers::RunError::from)?, owners: Owners::of(trace) })
    }

    /// Takes the next rows.
    pub fn feed(&mut self, rows: &Block) {
        self.run.feed(rows, &|row| self.owners.backed(row));
    }

    /// Keeps a journal from now on. Call it before the first row.
    pub fn keep_journal(&mut self) {
        self.run.keep_journal();
    }

    /// Takes the new part of the journal; empty if there is no journal.
    pub fn drain_journal(&mut self) -> Vec<u8> {
        self.run.drain_journal()
    }

    /// The result.
    pub fn finish(self) -> Outcome {
        let result = self.run.result();
        let (swap_ins, swap_outs) = (result.counts.swap_ins, result.counts.swap_outs);
        let counts = SwapCounts { swap_ins, swap_outs, up_time: result.end };
        let energy = energy(self.plan.area(), &counts);
        let in_slots = Pj(self.plan.area().line_energy().0 * result.reads_in_slots);
        Outcome { energy, in_slots, result }
    }
}
