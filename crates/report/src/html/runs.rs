//! The table of all runs.

use crate::html::run::Run;
use crate::html::words::{count, note, section, table, time, Row};

/// The section; a row can be chosen.
pub fn runs(runs: &[Run<'_>]) -> String {
    let row = |run: &Run<'_>| -> Row {
        let latency = &run.json["fault_latency_ps"]["true"];
        let cells = vec![
            run.name(),
            run.ram_text(),
            count(&run.json["counts"]["true_faults"]),
            run.miss_ratio().map_or_else(|| "-".into(), |ratio| format!("{ratio:.6}")),
            time(&latency["p99"]),
            time(&latency["max"]),
            time(&run.json["time_ps"]["paging"]),
        ];
        (format!("{} class=\"row\" data-faults=\"{}\"", run.at(), run.json["counts"]["true_faults"]), cells)
    };
    let rows: Vec<Row> = runs.iter().filter(|run| run.is_one_string()).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["run", "RAM", "true faults", "miss ratio", "p99", "longest", "in faults"];
    section("All runs", &(note("Choose one to see all of it, two to see where they differ.") + &table(&heads, &rows)))
}
