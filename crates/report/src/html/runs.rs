//! The table of all runs.

use crate::html::run::Run;
use crate::html::words::{count, note, plain, section, table, time, Row};

/// The section; a row can be chosen.
pub fn runs(runs: &[Run<'_>]) -> String {
    let row = |run: &Run<'_>| -> Option<Row> {
        let string = run.string()?;
        let faults = string.counts.true_faults;
        let latency = string.true_latency();
        let cells = vec![
            run.name(),
            run.ram_text(),
            count(faults),
            run.miss_ratio().map_or_else(|| "-".into(), |ratio| format!("{ratio:.6}")),
            time(latency.map(|l| l.p99)),
            time(latency.map(|l| l.max)),
            time(string.time_ps.map(|t| t.paging)),
        ];
        Some((format!("{} class=\"row\" data-faults=\"{}\"", run.at(), plain(faults)), cells))
    };
    let rows: Vec<Row> = runs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["run", "RAM", "true faults", "miss ratio", "p99", "longest", "in faults"];
    section("All runs", &(note("Choose one to see all of it, two to see where they differ.") + &table(&heads, &rows)))
}
