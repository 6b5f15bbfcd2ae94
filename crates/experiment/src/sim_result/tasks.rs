//! The result of tasks under a scheduler.

use coldframe_core::Ps;
use coldframe_drivers::tasks::{TaskResult, TasksResult};
use coldframe_lane::Latency;
use serde::{Deserialize, Serialize};

use super::sections::is_zero;
use super::{Prefetched, Sections, SimResult, SwapArea, Trace};
use crate::tasks::{share, TasksOutcome};

/// The findings for tasks under a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// Counts of events of all tasks together. From `direct_reads` on, zeros are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllPrefetched {
    /// Outcome of the prefetches.
    #[serde(flatten)]
    pub pages: Prefetched,
    /// Prefetch hints for pages in RAM, which became recent.
    pub made_recent: u64,
}

/// How often the scheduler's prediction of the next task was right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// Right predictions.
    pub right: u64,
    /// Wrong predictions: another task ran.
    pub wrong: u64,
}

/// Times of a run of tasks, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TasksTimes {
    /// Until the last task's end.
    pub total: u64,
    /// While no task can run.
    pub idle: u64,
    /// While the device works.
    pub device_busy: u64,
}

/// One of the tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
        };
        let trace = Trace::new(&outcome.trace, Some(outcome.pages));
        SimResult::new(trace, outcome.config.clone(), Sections::Tasks(sections))
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
