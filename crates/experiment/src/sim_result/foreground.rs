//! The result of tasks that take turns in the foreground.

use coldframe_boards::flash::wear;
use coldframe_drivers::ForegroundResult;
use serde::{Deserialize, Serialize};

use super::{Failed, Sections, SimResult, SwapArea, Terms, Trace};
use crate::foreground::{life, Outcome, Stored};
use crate::resolve::ForegroundPlan;

/// The findings for tasks that take turns in the foreground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// Pages touched.
    pub pages: usize,
    /// Address spaces that take turns.
    pub tasks: usize,
    /// Counts.
    pub counts: ForegroundCounts,
    /// Times, in picoseconds.
    pub time_ps: ForegroundTimes,
    /// Each change of the foreground.
    pub switches: Vec<Switch>,
    /// Energy of the swap area.
    pub energy_pj: AreaEnergy,
    /// Writes to its slots.
    pub slot_writes: SlotWrites,
    /// Years until its most written slot is worn out; `None`: nothing is written, or nothing wears out.
    pub life_years: Option<f64>,
    /// The swap area, if it is a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapArea>,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForegroundCounts {
    /// Faults on pages that had to be loaded.
    pub true_faults: u64,
    /// Of those, on pages never touched before.
    pub cold_faults: u64,
    /// First writes to pages mapped read-only.
    pub write_faults: u64,
    /// Pages that left a frame.
    pub evictions: u64,
    /// Of those, pages that had to be written.
    pub dirty_evictions: u64,
    /// Pages copied from slots.
    pub swap_ins: u64,
    /// Pages copied to slots.
    pub swap_outs: u64,
    /// Swapped pages mapped in their slots (direct read).
    pub direct_reads: u64,
    /// Tasks ended because memory was short.
    pub kills: u64,
    /// Pages without a slot, when no task could be ended.
    pub homeless: u64,
    /// Pages copied from slots because they were read there often.
    pub read_often: u64,
    /// References answered in slots.
    pub reads_in_slots: u64,
    /// Pages read from the card.
    pub card_reads: u64,
    /// Pages written to the card.
    pub card_writes: u64,
    /// Failures of the device, if it failed.
    #[serde(flatten)]
    pub failed: Option<Failed>,
}

/// Times, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForegroundTimes {
    /// In faults.
    pub paging: u64,
    /// Mean wait of a task that comes back to the foreground.
    pub switch_back_mean: u64,
    /// Extra time of references to slots, compared with references to DRAM.
    pub slot_reading: u64,
    /// For copies that no task waited for.
    pub beside: u64,
    /// When the last reference was answered.
    pub end: u64,
}

/// A task comes to the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// The task.
    pub task: u32,
    /// Whether it had to be started.
    pub cold: bool,
    /// Its wait, in picoseconds.
    pub delay_ps: u64,
}

/// Energy of a swap area, in picojoules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AreaEnergy {
    /// By DR.Swap's equations.
    pub terms: Terms,
    /// Their sum.
    pub total: u64,
    /// Energy of reading pages in their slots, which the equations leave out.
    pub reads_in_slots: u64,
}

/// Writes to the slots of an area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotWrites {
    /// Mean.
    pub mean: f64,
    /// To the most written.
    pub max: u32,
}

impl Stored {
    /// The result of each configuration.
    pub fn results(&self) -> impl Iterator<Item = SimResult> + '_ {
        self.outcomes.iter().map(|(plan, outcome)| {
            let trace = Trace::new(&self.trace, None);
            SimResult::new(trace, plan.shown(), Sections::Foreground(Foreground::new(self, plan, outcome)))
        })
    }
}

impl Foreground {
    fn new(stored: &Stored, plan: &ForegroundPlan, o: &Outcome) -> Foreground {
        let r = &o.result;
        let writes = wear(&o.slot_writes(plan.config.slots.slots));
        Foreground {
            pages: stored.pages,
            tasks: stored.tasks,
            counts: r.into(),
            time_ps: ForegroundTimes {
                paging: r.paging.0,
                switch_back_mean: o.switch_delay().0,
                slot_reading: r.slot_reading.0,
                beside: r.beside.0,
                end: r.end.0,
            },
            switches: r.switches.iter().map(|s| Switch { task: s.task, cold: s.cold, delay_ps: s.delay.0 }).collect(),
            energy_pj: AreaEnergy {
                terms: o.energy.terms().into_iter().map(|(name, pj)| (name.into(), pj.0)).collect(),
                total: o.energy.total().0,
                reads_in_slots: o.in_slots.0,
            },
            slot_writes: SlotWrites { mean: writes.mean, max: writes.max },
            life_years: life(plan, o),
            swap: r.swap.as_ref().map(|done| SwapArea::new(done, None)),
        }
    }
}

impl From<&ForegroundResult> for ForegroundCounts {
    fn from(r: &ForegroundResult) -> ForegroundCounts {
        let c = &r.counts;
        ForegroundCounts {
            true_faults: c.true_faults,
            cold_faults: c.cold_faults,
            write_faults: c.write_faults,
            evictions: c.evictions,
            dirty_evictions: c.dirty_evictions,
            swap_ins: c.swap_ins,
            swap_outs: c.swap_outs,
            direct_reads: c.direct_reads,
            kills: c.kills,
            homeless: c.homeless,
            read_often: c.read_often,
            reads_in_slots: r.reads_in_slots,
            card_reads: r.card_reads,
            card_writes: r.card_writes,
            failed: Failed::new(c.failures, r.halts),
        }
    }
}
