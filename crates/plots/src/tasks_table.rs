//! Results of several tasks, as a table.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_drivers::tasks::TaskResult;
use coldframe_experiment::result::caveat;
use coldframe_experiment::tasks::{share, TasksOutcome};
use coldframe_sheet::quantity::{human_count, human_time};

use coldframe_show::table::styled;

/// The failures of a failing device, as a line; empty if there were none.
pub fn failures(failures: u64, halted: u64) -> String {
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

/// So many tasks.
pub fn count_of(tasks: usize) -> String {
    if tasks == 1 {
        "1 task".into()
    } else {
        format!("{tasks} tasks")
    }
}

/// A line for all tasks of a configuration, and one for each task if there is only one configuration.
pub fn table(path: &Path, outcomes: &[TasksOutcome]) -> String {
    let tasks = outcomes.first().map_or(0, |outcome| outcome.names.len());
    let pages = outcomes.first().map_or(0, |outcome| outcome.pages);
    let mut text = format!("{}: {}, {} pages touched\n", path.display(), count_of(tasks), human_count(pages as u64));
    text += &outcomes.first().and_then(|outcome| caveat(&outcome.trace)).map(|label| label + "\n").unwrap_or_default();
    text += &format!(
        "{}\n",
        styled(&HEADINGS, outcomes.iter().map(sums).collect(), 2).least(&["frames", "in flight", "useless"])
    );
    outcomes.iter().for_each(|outcome| text += &failures(outcome.result.counts.failures, outcome.result.halted));
    if tasks == 1 {
        text += "There is only one task, so there is no next task to prefetch for; `coldframe-lab trace mix` makes a trace of several.\n";
    }
    if let [one] = outcomes {
        let rows = one.names.iter().zip(&one.result.tasks).map(|(name, task)| task_row(name, task, one.result.time));
        text += &format!("\n{}\n", styled(&TASK_HEADINGS, rows.collect(), 1).least(&["in flight", "used", "useless"]));
    }
    text
}

const HEADINGS: [&str; 10] =
    ["scheduler", "prefetch", "frames", "major", "minor", "in flight", "prefetched", "useless", "predicted", "time"];

const TASK_HEADINGS: [&str; 10] =
    ["task", "major", "minor", "in flight", "prefetched", "used", "useless", "fault mean", "wait p99", "share"];

fn sums(outcome: &TasksOutcome) -> Vec<String> {
    let r = &outcome.result;
    let p = r.prefetched();
    let in_flight: u64 = r.tasks.iter().map(|task| task.in_flight).sum();
    let mut row = vec![outcome.scheduler.into(), outcome.prefetch.clone()];
    row.extend(
        [outcome.frames as u64, r.major(), r.faults() - r.major(), in_flight, p.loads, p.useless].map(human_count),
    );
    row.push(format!("{}/{}", r.prefetch.predicted, r.prefetch.predicted + r.prefetch.mispredicted));
    row.push(human_time(r.time));
    row
}

fn task_row((id, name): &(u32, String), task: &TaskResult, time: Ps) -> Vec<String> {
    let p = task.prefetched;
    let shown = |time: Option<Ps>| time.map_or("-".into(), human_time);
    let mut row = vec![format!("{id} {name}").trim_end().to_string()];
    row.extend([task.major, task.minor, task.in_flight, p.loads, p.used, p.useless].map(human_count));
    row.extend([shown(task.stall.mean()), shown(task.wait.quantile(0.99)), format!("{:.1} %", share(task, time))]);
    row
}
