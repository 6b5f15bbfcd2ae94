//! The table of all runs.

use coldframe_sheet::quantity::human_count;

use crate::html::run::Run;
use coldframe_show::html::words::{count, folded, note, plain, table, time, Row};
use coldframe_show::plot::escape;

/// The headline of a page that has only runs, as a sentence.
pub fn headline(runs: &[Run<'_>]) -> String {
    let of = match runs.first().map(|run| run.result.trace.path.as_str()) {
        Some(path) if runs.iter().all(|run| run.result.trace.path == path) => path.rsplit('/').next().unwrap_or(path),
        _ => "several traces",
    };
    let faults = |run: &&Run<'_>| run.string().and_then(|string| string.counts.true_faults);
    let practical = runs.iter().filter(|run| run.settings().handler.is_some());
    let least = practical.filter_map(|run| Some((faults(&run)?, run))).min_by_key(|(faults, run)| (*faults, run.ram()));
    let text = match least {
        Some((faults, run)) if runs.len() > 1 => {
            format!("{} runs of {of}: {} has the fewest true faults, {}.", runs.len(), run.title(), human_count(faults))
        }
        Some((faults, run)) => format!("{of} with {}: {} true faults.", run.title(), human_count(faults)),
        None => format!("{} runs of {of}.", runs.len()),
    };
    format!("<h1>{}</h1>", escape(&text))
}

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
    folded("All runs", &(note("Choose one to see all of it, two to see where they differ.") + &table(&heads, &rows)))
}
