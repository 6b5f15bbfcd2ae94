//! Results of several tasks, under a scheduler or in the foreground in turn, as a table.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_drivers::tasks::TaskResult;
use coldframe_experiment::systems::backing;
use coldframe_experiment::tasks::{share, OnPhone, TasksOutcome};
use coldframe_sheet::quantity::{human_count, human_size, human_time};

use crate::columns::{columns, Column};
use coldframe_show::html::words::text;

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

pub fn count_of(tasks: usize) -> String {
    if tasks == 1 {
        "1 task".into()
    } else {
        format!("{tasks} tasks")
    }
}

/// A line for all tasks of a configuration. Below, if there is only one configuration of a scheduler, one for each
/// task; in the foreground, what the columns mean.
pub fn table(path: &Path, outcomes: &[TasksOutcome]) -> String {
    let phones: Option<Vec<_>> = outcomes.iter().map(|outcome| Some((outcome, outcome.on_phone.as_ref()?))).collect();
    if let Some(phones) = phones.filter(|phones| !phones.is_empty()) {
        return on_phone(path, &phones);
    }
    let tasks = outcomes.first().map_or(0, |outcome| outcome.names.len());
    let pages = outcomes.first().map_or(0, |outcome| outcome.pages);
    let mut text = format!("{}: {}, {} pages touched\n", path.display(), count_of(tasks), human_count(pages as u64));
    text += &outcomes
        .first()
        .and_then(|outcome| outcome.trace.caveat.as_ref())
        .map(|label| format!("{label}\n"))
        .unwrap_or_default();
    text += &format!("{}\n", columns(&COLUMNS, 2, outcomes).keys(3));
    outcomes.iter().for_each(|outcome| text += &failures(outcome.result.counts.failures, outcome.result.halted));
    if tasks == 1 {
        text += "There is only one task, so there is no next task to prefetch for; `coldframe-lab trace mix` makes a \
                 trace of several.\n";
    }
    if let [one] = outcomes {
        let tasks = one.names.iter().zip(&one.result.tasks).map(|(name, task)| (name, task, one.result.time));
        text += &format!("\n{}\n", columns(&task_columns(), 1, &tasks.collect::<Vec<_>>()));
    }
    text
}

const COLUMNS: [Column<TasksOutcome>; 10] = [
    ("scheduler", |o| text(&o.config.settings.tasks.scheduler).into()),
    ("prefetch", |o| text(&o.config.settings.tasks.prefetch).into()),
    ("frames", |o| human_count(o.frames as u64)),
    ("major", |o| human_count(o.result.major())),
    ("minor", |o| human_count(o.result.faults() - o.result.major())),
    ("in flight", |o| human_count(o.result.tasks.iter().map(|task| task.in_flight).sum())),
    ("prefetched", |o| human_count(o.result.prefetched().loads)),
    ("useless", |o| human_count(o.result.prefetched().useless)),
    ("predicted", |o| {
        let next = &o.result.prefetch;
        format!("{}/{}", next.predicted, next.predicted + next.mispredicted)
    }),
    ("time", |o| human_time(o.result.time)),
];

/// A task's number and name, its result, and the time of the whole run.
type One<'a> = (&'a (u32, String), &'a TaskResult, Ps);

fn task_columns<'a>() -> [Column<One<'a>>; 10] {
    [
        ("task", |((id, name), ..)| format!("{id} {name}").trim_end().to_string()),
        ("major", |(_, task, _)| human_count(task.major)),
        ("minor", |(_, task, _)| human_count(task.minor)),
        ("in flight", |(_, task, _)| human_count(task.in_flight)),
        ("prefetched", |(_, task, _)| human_count(task.prefetched.loads)),
        ("used", |(_, task, _)| human_count(task.prefetched.used)),
        ("useless", |(_, task, _)| human_count(task.prefetched.useless)),
        ("fault mean", |(_, task, _)| task.stall.mean().map_or("-".into(), human_time)),
        ("wait p99", |(_, task, _)| task.wait.quantile(0.99).map_or("-".into(), human_time)),
        ("share", |(_, task, time)| format!("{:.1} %", share(task, *time))),
    ]
}

fn phone_columns<'a>() -> [Column<(&'a TasksOutcome, &'a OnPhone)>; 12] {
    [
        ("backing", |(_, phone)| {
            let area = &phone.area;
            // The device too, if it is not the backing's own.
            let own = backing::all().any(|b| b.name == area.name && b.sheet.unwrap_or_default() == area.device);
            if own {
                area.name.into()
            } else {
                format!("{}, {}", area.name, area.device)
            }
        }),
        ("policy", |(_, phone)| phone.policy.clone()),
        ("swap", |(_, phone)| if phone.area.size.0 == 0 { "-".into() } else { human_size(phone.area.size.0) }),
        ("RAM", |(outcome, _)| human_size(outcome.frames as u64 * outcome.page)),
        ("swap-ins", |(outcome, _)| human_count(outcome.result.counts.swap_ins)),
        ("direct reads", |(outcome, _)| human_count(outcome.result.counts.direct_reads)),
        ("swap-outs", |(outcome, _)| human_count(outcome.result.counts.swap_outs)),
        ("ended", |(outcome, _)| human_count(outcome.result.counts.kills)),
        ("card I/O", |(outcome, _)| human_count(outcome.result.device_reads + outcome.result.device_writes)),
        ("switch back", |(outcome, _)| {
            human_time(outcome.result.foreground.as_ref().map_or(Ps::ZERO, |turns| turns.switch_delay(None)))
        }),
        ("energy", |(_, phone)| format!("{:.3} J", phone.energy.total().0 as f64 / 1e12)),
        ("life", |(_, phone)| phone.life_years.map_or_else(|| "-".into(), |years| format!("{years:.1} years"))),
    ]
}

fn on_phone(path: &Path, outcomes: &[(&TasksOutcome, &OnPhone)]) -> String {
    let (first, phone) = outcomes[0];
    let (tasks, pages) = (count_of(first.names.len()), human_count(first.pages as u64));
    let mut out = format!("{}: {tasks}, {pages} pages of 4 KiB touched\n", path.display());
    out += &format!("{}\n", columns(&phone_columns(), 2, outcomes).keys(4));
    out += "ended: tasks that the low memory killer took. switch back: mean fault handling until the task answers, \
            from each task's second visit on.\n\
         energy: of the swap area by DR.Swap's equations 1 to 14; its terms and every switch are in --format json. \
         life: the same load without a pause.\n";
    out += &first.trace.caveat.as_ref().map(|caveat| format!("{caveat}\n")).unwrap_or_default();
    let homeless: u64 = outcomes.iter().map(|(outcome, _)| outcome.result.counts.homeless).sum();
    if homeless > 0 {
        let pages = human_count(homeless);
        out += &format!(
            "{pages} anonymous pages found no place, and no task was left to end. Such rows have too little memory.\n"
        );
    }
    outcomes.iter().for_each(|(outcome, _)| out += &failures(outcome.result.counts.failures, outcome.result.halted));
    if phone.untimed {
        out += "The trace has no times: each reference took front_end.reference (1ns unless set).\n";
    }
    if first.names.len() < 2 {
        out += "There is only one task: no switch, and no task to end. `coldframe-lab trace mix` and `coldframe-lab \
                generate phone` make several.\n";
    }
    out
}
