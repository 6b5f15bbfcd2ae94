//! Runs of several tasks: on one processor with a scheduler (`--system sap`), and in the foreground in turn (`--system drswap`).

use serde_json::Value;

use crate::html::run::Run;
use crate::html::words::{count, energy, note, section, table, time, Row};
use crate::plot::escape;

/// Runs whose tasks are shown one by one.
const SHOWN: usize = 6;

/// The sections; empty where every run is of one string of references.
pub fn tasks(runs: &[Run<'_>]) -> String {
    scheduled(runs) + &foreground(runs)
}

fn scheduled(runs: &[Run<'_>]) -> String {
    let all: Vec<&Run<'_>> = runs.iter().filter(|run| run.is_scheduled()).collect();
    if all.is_empty() {
        return String::new();
    }
    let heads = ["run", "RAM", "major", "minor", "in flight", "prefetched", "used", "useless", "predicted", "time"];
    let row = |run: &&Run<'_>| -> Row {
        let (c, p) = (&run.json["counts"], &run.json["prefetched"]);
        let next = &run.json["predictions"];
        let cells = vec![
            run.name(),
            run.ram_text(),
            count(&c["major_faults"]),
            count(&c["minor_faults"]),
            count(&c["in_flight_faults"]),
            count(&p["loads"]),
            count(&p["used"]),
            count(&p["useless"]),
            format!("{} of {}", count(&next["right"]), sum(&next["right"], &next["wrong"])),
            time(&run.json["time_ps"]["total"]),
        ];
        (format!("{} class=\"row\" data-major=\"{}\"", run.at(), c["major_faults"]), cells)
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    let few = if all.len() > SHOWN { note(&format!("{SHOWN} of {} runs.", all.len())) } else { String::new() };
    let tasks: String = all.iter().take(SHOWN).map(|run| by_task(run)).collect();
    section("Several tasks on one processor", &table(&heads, &rows)) + &section("Task by task", &(tasks + &few))
}

fn sum(a: &Value, b: &Value) -> String {
    count(&(a.as_u64().unwrap_or(0) + b.as_u64().unwrap_or(0)).into())
}

fn by_task(run: &Run<'_>) -> String {
    let heads =
        ["task", "major", "minor", "used", "useless", "mean wait for a page", "p99 from awake to running", "share"];
    let row = |task: &Value| -> Row {
        let share = task["share_percent"].as_f64().map_or_else(|| "-".into(), |percent| format!("{percent:.1} %"));
        let cells = vec![
            format!("{} {}", task["task"], task["name"].as_str().unwrap_or_default()).trim_end().to_string(),
            count(&task["major_faults"]),
            count(&task["minor_faults"]),
            count(&task["prefetched"]["used"]),
            count(&task["prefetched"]["useless"]),
            time(&task["fault_wait_ps"]["mean"]),
            time(&task["ready_wait_ps"]["p99"]),
            share,
        ];
        (String::new(), cells)
    };
    let rows: Vec<Row> = run.json["tasks"].as_array().into_iter().flatten().map(row).collect();
    format!("<div class=\"strip\"{}><b>{}</b>{}</div>", run.at(), escape(&run.title()), table(&heads, &rows))
}

fn foreground(runs: &[Run<'_>]) -> String {
    let heads =
        ["run", "RAM", "swap-ins", "direct reads", "swap-outs", "ended", "switch back", "energy of the area", "life"];
    let row = |run: &Run<'_>| -> Row {
        let c = &run.json["counts"];
        let joules = run.json["energy_pj"]["total"].as_u64().map_or_else(|| "-".into(), energy);
        let life = run.json["life_years"].as_f64().map_or_else(|| "-".into(), |years| format!("{years:.1} years"));
        let cells = vec![
            run.name(),
            run.ram_text(),
            count(&c["swap_ins"]),
            count(&c["direct_reads"]),
            count(&c["swap_outs"]),
            count(&c["kills"]),
            time(&run.json["time_ps"]["switch_back_mean"]),
            joules,
            life,
        ];
        (format!("{} class=\"row\" data-swap-ins=\"{}\"", run.at(), c["swap_ins"]), cells)
    };
    let rows: Vec<Row> = runs.iter().filter(|run| run.is_foreground()).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    section("Tasks in the foreground, by where the swap area lies", &table(&heads, &rows))
}
