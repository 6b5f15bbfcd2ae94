//! Runs of several tasks: on one processor with a scheduler (`--system sap`), and in the foreground in turn (`--system drswap`).

use coldframe_sheet::quantity::human_count;

use crate::html::run::Run;
use coldframe_experiment::sim_result::{Task, Tasks};
use coldframe_show::html::words::{energy, folded, note, table, time, Row};
use coldframe_show::plot::escape;

const SHOWN: usize = 6;

/// The sections; empty where every run is of one string of references.
pub fn tasks(runs: &[Run<'_>]) -> String {
    scheduled(runs) + &foreground(runs)
}

fn scheduled(runs: &[Run<'_>]) -> String {
    let all: Vec<(&Run<'_>, &Tasks)> = runs
        .iter()
        .filter_map(|run| Some((run, run.result.tasks().filter(|tasks| tasks.foreground.is_none())?)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let heads = ["run", "RAM", "major", "minor", "in flight", "prefetched", "used", "useless", "predicted", "time"];
    let row = |(run, tasks): &(&Run<'_>, &Tasks)| -> Row {
        let (c, p, next) = (&tasks.counts, tasks.prefetched.pages, tasks.predictions);
        let mut cells = vec![run.name(), run.ram_text()];
        let numbers = [c.major_faults, c.minor_faults, c.in_flight_faults, p.loads, p.used, p.useless];
        cells.extend(numbers.map(human_count));
        cells.push(format!("{} of {}", human_count(next.right), human_count(next.right + next.wrong)));
        cells.push(time(tasks.time_ps.total));
        (format!("{} class=\"row\" data-major=\"{}\"", run.at(), c.major_faults), cells)
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    let few = if all.len() > SHOWN { note(&format!("{SHOWN} of {} runs.", all.len())) } else { String::new() };
    let tasks: String = all.iter().take(SHOWN).map(|(run, tasks)| by_task(run, &tasks.tasks)).collect();
    folded("Several tasks on one processor", &table(&heads, &rows)) + &folded("Task by task", &(tasks + &few))
}

fn by_task(run: &Run<'_>, tasks: &[Task]) -> String {
    let heads =
        ["task", "major", "minor", "used", "useless", "mean wait for a page", "p99 from awake to running", "share"];
    let row = |task: &Task| -> Row {
        let cells = vec![
            format!("{} {}", task.task, task.name).trim_end().to_string(),
            human_count(task.major_faults),
            human_count(task.minor_faults),
            human_count(task.prefetched.used),
            human_count(task.prefetched.useless),
            time(task.fault_wait_ps.mean),
            time(task.ready_wait_ps.p99),
            format!("{:.1} %", task.share_percent),
        ];
        (String::new(), cells)
    };
    let rows: Vec<Row> = tasks.iter().map(row).collect();
    format!("<div class=\"strip\"{}><b>{}</b>{}</div>", run.at(), escape(&run.title()), table(&heads, &rows))
}

fn foreground(runs: &[Run<'_>]) -> String {
    let heads =
        ["run", "RAM", "swap-ins", "direct reads", "swap-outs", "ended", "switch back", "energy of the area", "life"];
    let row = |run: &Run<'_>| -> Option<Row> {
        let (tasks, foreground) = (run.result.tasks()?, run.result.foreground()?);
        let c = &tasks.counts;
        let life = foreground.life_years.map_or_else(|| "-".into(), |years| format!("{years:.1} years"));
        let mut cells = vec![run.name(), run.ram_text()];
        cells.extend([c.swap_ins, c.direct_reads, c.swap_outs, c.kills].map(human_count));
        cells.extend([time(foreground.time_ps.switch_back_mean), energy(foreground.energy_pj.total), life]);
        Some((format!("{} class=\"row\" data-swap-ins=\"{}\"", run.at(), c.swap_ins), cells))
    };
    let rows: Vec<Row> = runs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    folded("Tasks in the foreground, by where the swap area lies", &table(&heads, &rows))
}
