//! The result of several tasks, under a scheduler or in the foreground in turn.

use coldframe_core::Ps;
use coldframe_drivers::tasks::{TaskResult, TasksResult};
use coldframe_lane::Latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sections::is_zero;
use super::{Prefetched, Sections, SimResult, SwapArea, Terms, Trace};
use crate::tasks::{share, OnPhone, TasksOutcome};

/// The findings for several tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// Counts.
    pub counts: TasksCounts,
    /// Pages that were loaded ahead.
    pub prefetched: AllPrefetched,
    /// Predictions of the next task.
    pub predictions: Predictions,
    /// How often the processor switched to another task.
    pub switches: u64,
    /// Page references of all tasks.
    pub references: u64,
    /// Times, in picoseconds.
    pub time_ps: TasksTimes,
    /// Task by task.
    pub tasks: Vec<Task>,
    /// The swap area, if it is a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapArea>,
    /// What only tasks in the foreground have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
}

/// The findings that only tasks in the foreground have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Foreground {
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
}

/// Counts of events, besides those of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForegroundCounts {
    /// Faults on pages that had to be loaded.
    pub true_faults: u64,
    /// First writes to pages mapped read-only.
    pub write_faults: u64,
    /// Pages copied from slots because they were read there often.
    pub read_often: u64,
    /// Pages read from the card.
    pub card_reads: u64,
    /// Pages written to the card.
    pub card_writes: u64,
}

/// Times, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForegroundTimes {
    /// In faults.
    pub paging: u64,
    /// Mean wait of a task that comes back to the foreground.
    pub switch_back_mean: u64,
    /// Extra time of references to slots, compared with references to DRAM.
    pub slot_reading: u64,
    /// For copies that no task waited for.
    pub background_copies: u64,
    /// When the last reference was answered.
    pub end: u64,
}

/// A task comes to the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Switch {
    /// The task.
    pub task: u32,
    /// Whether it had to be started.
    pub cold: bool,
    /// Its wait, in picoseconds.
    pub delay_ps: u64,
}

/// Energy of a swap area, in picojoules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AreaEnergy {
    /// By DR.Swap's equations.
    pub terms: Terms,
    /// Their sum.
    pub total: u64,
    /// Energy of reading pages in their slots, which the equations leave out.
    pub reads_in_slots: u64,
}

/// Writes to the slots of an area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotWrites {
    /// Mean.
    pub mean: f64,
    /// To the most written.
    pub max: u32,
}

/// Counts of events of all tasks together. From `direct_reads` on, zeros are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TasksCounts {
    /// Major faults.
    pub major_faults: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Of those, on pages that were on their way.
    pub in_flight_faults: u64,
    /// Faults on pages never touched before.
    pub cold_faults: u64,
    /// Pages that left a frame.
    pub evictions: u64,
    /// Of those, pages that had to be written.
    pub dirty_evictions: u64,
    /// Swapped pages mapped in their slots.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub direct_reads: u64,
    /// References answered there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reads_in_slots: u64,
    /// References answered in the device's buffers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub xip_reads: u64,
    /// Pages copied from slots.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swap_ins: u64,
    /// Pages copied to slots.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swap_outs: u64,
    /// Tasks ended because memory was short.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kills: u64,
    /// Pages without a slot, when no task could be ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub homeless: u64,
    /// Transfers that the device refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// Tasks stopped because their page was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub halts: u64,
}

/// Pages of all tasks that were loaded ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllPrefetched {
    /// Outcome of the prefetches.
    #[serde(flatten)]
    pub pages: Prefetched,
    /// Prefetch hints for pages in RAM, which became recent.
    pub made_recent: u64,
}

/// How often the scheduler's prediction of the next task was right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predictions {
    /// Right predictions.
    pub right: u64,
    /// Wrong predictions: another task ran.
    pub wrong: u64,
}

/// Times of a run of tasks, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TasksTimes {
    /// Until the last task's end.
    pub total: u64,
    /// While no task can run.
    pub idle: u64,
    /// While the device works.
    pub device_busy: u64,
}

/// One of the tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its number in the trace.
    pub task: u32,
    /// Its name there.
    pub name: String,
    /// Major faults.
    pub major_faults: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Of those, on pages that were on their way.
    pub in_flight_faults: u64,
    /// Its pages that were loaded ahead.
    pub prefetched: Prefetched,
    /// Picoseconds on its references.
    pub useful_ps: u64,
    /// The time of its end, in picoseconds; `None`: it runs for ever.
    pub ended_ps: Option<u64>,
    /// Percent of the time until its end that it spent on its references.
    pub share_percent: f64,
    /// Waits for pages.
    pub fault_wait_ps: Waits,
    /// Waits between waking up and running.
    pub ready_wait_ps: Waits,
}

/// Waits in picoseconds; `None` if there was none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Longest.
    pub max: u64,
}

impl From<&Latency> for Waits {
    fn from(l: &Latency) -> Waits {
        let of = |time: Option<Ps>| time.map(|t| t.0);
        Waits { count: l.count(), mean: of(l.mean()), p99: of(l.quantile(0.99)), max: l.max().0 }
    }
}

impl From<&TasksOutcome> for SimResult {
    fn from(outcome: &TasksOutcome) -> SimResult {
        let r = &outcome.result;
        let (p, made_recent) = (r.prefetched(), r.counts.prefetches_present);
        let tasks = outcome.names.iter().zip(&r.tasks).map(|((id, name), task)| Task::new(*id, name, task, r.time));
        let sections = Tasks {
            counts: TasksCounts::from(r),
            prefetched: AllPrefetched { pages: p.into(), made_recent },
            predictions: Predictions { right: r.prefetch.predicted, wrong: r.prefetch.mispredicted },
            switches: r.switches,
            references: r.references,
            time_ps: TasksTimes { total: r.time.0, idle: r.idle.0, device_busy: r.device_busy.0 },
            tasks: tasks.collect(),
            swap: r.swap.as_ref().map(|done| SwapArea::new(done, None)),
            foreground: outcome.on_phone.as_ref().and_then(|phone| Foreground::new(outcome, phone)),
        };
        let trace = Trace { pages: Some(outcome.pages), ..outcome.trace.clone() };
        SimResult::new(trace, outcome.config.clone(), Sections::Tasks(Box::new(sections)))
    }
}

impl Foreground {
    fn new(outcome: &TasksOutcome, phone: &OnPhone) -> Option<Foreground> {
        let (r, turns) = (&outcome.result, outcome.result.foreground.as_ref()?);
        let c = &r.counts;
        let switch = |s: &coldframe_drivers::tasks::Switch| Switch {
            task: outcome.names[s.task].0,
            cold: s.cold,
            delay_ps: s.delay.0,
        };
        Some(Foreground {
            counts: ForegroundCounts {
                true_faults: c.true_faults,
                write_faults: c.write_faults,
                read_often: c.read_often,
                card_reads: r.device_reads,
                card_writes: r.device_writes,
            },
            time_ps: ForegroundTimes {
                paging: turns.paging.0,
                switch_back_mean: turns.switch_delay(None).0,
                slot_reading: turns.slot_reading.0,
                background_copies: turns.background_copies.0,
                end: turns.end.0,
            },
            switches: turns.switches.iter().map(switch).collect(),
            energy_pj: AreaEnergy {
                terms: phone.energy.terms().into_iter().map(|(name, pj)| (name.into(), pj.0)).collect(),
                total: phone.energy.total().0,
                reads_in_slots: phone.in_slots.0,
            },
            slot_writes: SlotWrites { mean: phone.slot_writes.mean, max: phone.slot_writes.max },
            life_years: phone.life_years,
        })
    }
}

impl From<&TasksResult> for TasksCounts {
    fn from(r: &TasksResult) -> TasksCounts {
        let c = &r.counts;
        TasksCounts {
            major_faults: r.major(),
            minor_faults: r.faults() - r.major(),
            in_flight_faults: r.tasks.iter().map(|task| task.in_flight).sum(),
            cold_faults: c.cold_faults,
            evictions: c.evictions,
            dirty_evictions: c.dirty_evictions,
            direct_reads: c.direct_reads,
            reads_in_slots: r.reads_in_slots,
            xip_reads: r.xip_reads,
            swap_ins: c.swap_ins,
            swap_outs: c.swap_outs,
            kills: c.kills,
            homeless: c.homeless,
            failures: c.failures,
            halts: c.halts,
        }
    }
}

impl Task {
    fn new(id: u32, name: &str, task: &TaskResult, time: Ps) -> Task {
        Task {
            task: id,
            name: name.into(),
            major_faults: task.major,
            minor_faults: task.minor,
            in_flight_faults: task.in_flight,
            prefetched: task.prefetched.into(),
            useful_ps: task.useful.0,
            ended_ps: task.ended.map(|at| at.0),
            share_percent: share(task, time),
            fault_wait_ps: (&task.stall).into(),
            ready_wait_ps: (&task.wait).into(),
        }
    }
}
