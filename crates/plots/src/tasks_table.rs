//! Results of several tasks, under a scheduler or in the foreground in turn, as a table.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_drivers::tasks::TaskResult;
use coldframe_experiment::systems::backing;
use coldframe_experiment::tasks::{share, OnPhone, TasksOutcome};
use coldframe_sheet::quantity::{human_count, human_size, human_time};

use coldframe_show::html::words::text;
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
    let of = &outcome.config.settings.tasks;
    let mut row = [&of.scheduler, &of.prefetch].map(|name| text(name).to_owned()).to_vec();
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

const PHONE_HEADINGS: [&str; 12] = [
    "backing",
    "swap",
    "RAM",
    "policy",
    "swap-ins",
    "direct reads",
    "swap-outs",
    "ended",
    "card I/O",
    "switch back",
    "energy",
    "life",
];

fn on_phone(path: &Path, outcomes: &[(&TasksOutcome, &OnPhone)]) -> String {
    let (first, phone) = outcomes[0];
    let (tasks, pages) = (count_of(first.names.len()), human_count(first.pages as u64));
    let rows = outcomes.iter().map(|(outcome, phone)| phone_row(outcome, phone)).collect();
    let mut out = format!("{}: {tasks}, {pages} pages of 4 KiB touched\n", path.display());
    out += &format!("{}\n", styled(&PHONE_HEADINGS, rows, 4).least(&["ended", "card I/O", "swap", "policy"]));
    out += "ended: tasks that the low memory killer took. switch back: mean fault handling until the task answers, from each task's second visit on.\n\
         energy: of the swap area by DR.Swap's equations 1 to 14; its terms and every switch are in --format json. life: the same load without a pause.\n";
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
        out += "There is only one task: no switch, and no task to end. `coldframe-lab trace mix` and `coldframe-lab generate phone` make several.\n";
    }
    out
}

fn phone_row(outcome: &TasksOutcome, phone: &OnPhone) -> Vec<String> {
    let (r, area, dash) = (&outcome.result, &phone.area, || "-".to_string());
    let c = &r.counts;
    // The device too, if it is not the backing's own.
    let own = backing::all().any(|b| b.name == area.name && b.sheet.unwrap_or_default() == area.device);
    vec![
        if own { area.name.into() } else { format!("{}, {}", area.name, area.device) },
        if area.size.0 == 0 { dash() } else { human_size(area.size.0) },
        human_size(outcome.frames as u64 * outcome.page),
        phone.policy.clone(),
        human_count(c.swap_ins),
        human_count(c.direct_reads),
        human_count(c.swap_outs),
        human_count(c.kills),
        human_count(r.device_reads + r.device_writes),
        human_time(r.foreground.as_ref().map_or(Ps::ZERO, |turns| turns.switch_delay(None))),
        format!("{:.3} J", phone.energy.total().0 as f64 / 1e12),
        phone.life_years.map_or_else(dash, |years| format!("{years:.1} years")),
    ]
}
