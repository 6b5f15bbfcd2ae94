//! Results of several tasks, as a table and as JSON.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_device::quantity::show_time;
use coldframe_sim::tasks::{TaskResult, TasksResult};
use coldframe_sim::Latency;
use serde_json::{json, Value};

use super::TasksOutcome;
use crate::certainty::caveat;
use crate::result::{swap_json, SCHEMA_VERSION};
use crate::table::{human_count, styled};

/// One object for each outcome.
pub fn json(outcomes: &[TasksOutcome]) -> Value {
    let one = |outcome: &TasksOutcome| {
        let r = &outcome.result;
        let p = r.prefetched();
        let tasks = outcome.names.iter().zip(&r.tasks).map(|((id, name), task)| of_task(*id, name, task, r.time));
        let mut object = json!({
            "schema_version": SCHEMA_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
            "trace": outcome.trace.json(Some(outcome.pages)),
            "config": outcome.config,
            "counts": r.counts_json(),
            "prefetched": { "loads": p.loads, "used": p.used, "useless": p.useless, "made_recent": r.counts.prefetches_present },
            "predictions": { "right": r.prefetch.predicted, "wrong": r.prefetch.mispredicted },
            "switches": r.switches,
            "references": r.references,
            "time_ps": { "total": r.time.0, "idle": r.idle.0, "device_busy": r.device_busy.0 },
            "tasks": tasks.collect::<Vec<_>>(),
        });
        put_area(&mut object, r);
        object
    };
    Value::Array(outcomes.iter().map(one).collect())
}

/// What only a swap area, a buffer that is read in place, or a failing device adds.
fn put_area(object: &mut Value, r: &TasksResult) {
    let c = &r.counts;
    for (key, count) in [
        ("direct_reads", c.direct_reads),
        ("reads_in_slots", r.reads_in_slots),
        ("xip_reads", r.xip_reads),
        ("swap_ins", c.swap_ins),
        ("swap_outs", c.swap_outs),
        ("kills", c.kills),
        ("homeless", c.homeless),
        ("failures", c.failures),
        ("halts", c.halts),
    ] {
        if count > 0 {
            object["counts"][key] = count.into();
        }
    }
    if let Some(swap) = &r.swap {
        object["swap"] = swap_json(swap);
    }
}

/// What a failing device came to, as a line; nothing if it did not fail.
pub(crate) fn failures(failures: u64, halted: u64) -> String {
    match (failures, halted) {
        (0, _) => String::new(),
        (n, 0) => format!("The device failed {} times; nothing was lost.\n", human_count(n)),
        (n, tasks) => format!(
            "The device failed {} times; {} times a page was lost and its task stopped.\n",
            human_count(n),
            human_count(tasks)
        ),
    }
}

/// The sums that a reader looks for first.
trait Counted {
    fn counts_json(&self) -> Value;
}

impl Counted for TasksResult {
    fn counts_json(&self) -> Value {
        json!({
            "major_faults": self.major(),
            "minor_faults": self.faults() - self.major(),
            "in_flight_faults": self.tasks.iter().map(|task| task.in_flight).sum::<u64>(),
            "cold_faults": self.counts.cold_faults,
            "evictions": self.counts.evictions,
            "dirty_evictions": self.counts.dirty_evictions,
        })
    }
}

fn of_task(id: u32, name: &str, task: &TaskResult, time: Ps) -> Value {
    let p = task.prefetched;
    json!({
        "task": id,
        "name": name,
        "major_faults": task.major,
        "minor_faults": task.minor,
        "in_flight_faults": task.in_flight,
        "prefetched": { "loads": p.loads, "used": p.used, "useless": p.useless },
        "useful_ps": task.useful.0,
        "ended_ps": task.ended.map(|at| at.0),
        "share_percent": share(task, time),
        "fault_wait_ps": latency(&task.stall),
        "ready_wait_ps": latency(&task.wait),
    })
}

fn latency(l: &Latency) -> Value {
    json!({ "count": l.count(), "mean": l.mean().map(|t| t.0), "p99": l.quantile(0.99).map(|t| t.0), "max": l.max().0 })
}

/// Of the time until the task's end, what it spent on its references.
fn share(task: &TaskResult, time: Ps) -> f64 {
    100.0 * task.useful.0 as f64 / task.ended.unwrap_or(time).0.max(1) as f64
}

/// A line for all tasks of a configuration, and one for each task if there is only one configuration.
pub fn table(path: &Path, outcomes: &[TasksOutcome]) -> String {
    let tasks = outcomes.first().map_or(0, |outcome| outcome.names.len());
    let pages = outcomes.first().map_or(0, |outcome| outcome.pages);
    let mut text = format!("{}: {tasks} tasks, {} pages touched\n", path.display(), human_count(pages as u64));
    text += &outcomes.first().and_then(|outcome| caveat(&outcome.trace)).map(|said| said + "\n").unwrap_or_default();
    text += &format!("{}\n", styled(&HEADINGS, outcomes.iter().map(sums).collect(), 2));
    outcomes.iter().for_each(|outcome| text += &failures(outcome.result.counts.failures, outcome.result.halted));
    if tasks == 1 {
        text += "One task has nobody before it, for whom could be prefetched; `coldframe mix` makes several of recorded ones.\n";
    }
    if let [one] = outcomes {
        let rows = one.names.iter().zip(&one.result.tasks).map(|(name, task)| task_row(name, task, one.result.time));
        text += &format!("\n{}\n", styled(&TASK_HEADINGS, rows.collect(), 1));
    }
    text
}

const HEADINGS: [&str; 10] =
    ["scheduler", "prefetch", "frames", "major", "minor", "in flight", "prefetched", "useless", "predicted", "time"];

const TASK_HEADINGS: [&str; 10] =
    ["task", "major", "minor", "in flight", "prefetched", "used", "useless", "fault mean", "wait p99", "share"];

fn sums(outcome: &TasksOutcome) -> Vec<String> {
    let (r, config) = (&outcome.result, &outcome.config);
    let word = |path: &str| config.pointer(path).and_then(Value::as_str).unwrap_or_default().to_string();
    let p = r.prefetched();
    let in_flight: u64 = r.tasks.iter().map(|task| task.in_flight).sum();
    let mut row = vec![word("/tasks/scheduler"), word("/tasks/prefetch")];
    let frames = config["frames"].as_u64().unwrap_or_default();
    row.extend([frames, r.major(), r.faults() - r.major(), in_flight, p.loads, p.useless].map(human_count));
    row.push(format!("{}/{}", r.prefetch.predicted, r.prefetch.predicted + r.prefetch.mispredicted));
    row.push(show_time(round(r.time)));
    row
}

fn task_row((id, name): &(u32, String), task: &TaskResult, time: Ps) -> Vec<String> {
    let p = task.prefetched;
    let shown = |time: Option<Ps>| time.map_or("-".into(), |time| show_time(round(time)));
    let mut row = vec![format!("{id} {name}").trim_end().to_string()];
    row.extend([task.major, task.minor, task.in_flight, p.loads, p.used, p.useless].map(human_count));
    row.extend([shown(task.stall.mean()), shown(task.wait.quantile(0.99)), format!("{:.1} %", share(task, time))]);
    row
}

/// To four digits and no more, for people.
fn round(time: Ps) -> Ps {
    let unit = 10u64.pow(time.0.max(1).ilog10().saturating_sub(3));
    Ps(time.0.div_ceil(unit) * unit)
}
