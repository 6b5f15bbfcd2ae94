//! Results of one string as CSV: a row for each configuration, and a column for each row of [`COLUMNS`].

use coldframe_experiment::result::{Certainty, RunResult};
use coldframe_experiment::sim_result::{Distribution, EngineCounts, OneString};

use crate::columns::Column;

/// A configuration, and its result as JSON has it.
struct Line<'a> {
    run: &'a RunResult,
    string: OneString,
}

impl Line<'_> {
    /// Between two bounds there is no single number.
    fn single(&self, text: String) -> String {
        if matches!(self.run.certainty, Certainty::Between { .. }) {
            String::new()
        } else {
            text
        }
    }

    fn of_engine(&self, count: fn(&EngineCounts) -> u64) -> String {
        or_empty(self.string.counts.engine.as_ref().map(count))
    }

    fn true_latency(&self, value: fn(&Distribution) -> u64) -> String {
        or_empty(self.string.true_latency().map(value))
    }

    fn true_faults(&self) -> (u64, u64) {
        self.run.certainty.range(self.run.true_faults())
    }
}

fn or_empty(n: Option<u64>) -> String {
    n.map(|n| n.to_string()).unwrap_or_default()
}

/// The columns, with their units; those of times only where times have a price.
fn columns<'a>(timed: bool) -> Vec<Column<Line<'a>>> {
    let columns: [Column<Line<'a>>; 20] = [
        ("policy", |l| format!("\"{}\"", l.run.policy)),
        ("handler", |l| l.run.handler.clone()),
        ("ram_bytes", |l| l.run.ram().0.to_string()),
        ("frames", |l| l.run.frames.to_string()),
        ("page_bytes", |l| l.run.page.0.to_string()),
        ("references", |l| l.run.references().to_string()),
        ("instructions", |l| l.run.front_end.instructions.to_string()),
        ("true_faults", |l| l.single(l.run.true_faults().to_string())),
        ("false_faults", |l| l.of_engine(|c| c.false_faults)),
        ("evictions", |l| or_empty(l.string.counts.evictions)),
        ("dirty_evictions", |l| or_empty(l.string.counts.dirty_evictions)),
        ("walk_sum", |l| l.of_engine(|c| c.walk_sum)),
        ("walk_max", |l| l.of_engine(|c| c.walk_max)),
        ("forced_evictions", |l| l.of_engine(|c| c.forced_evictions)),
        ("miss_ratio", |l| l.single(l.run.miss_ratio().to_string())),
        ("paging_ps", |l| or_empty(l.string.time_ps.map(|time| time.paging))),
        ("true_latency_mean_ps", |l| l.true_latency(|d| d.mean)),
        ("true_latency_max_ps", |l| l.true_latency(|d| d.max)),
        ("true_faults_min", |l| l.true_faults().0.to_string()),
        ("true_faults_max", |l| l.true_faults().1.to_string()),
    ];
    columns.into_iter().filter(|(heading, _)| timed || !heading.ends_with("_ps")).collect()
}

/// The results, with a line of headings.
pub fn csv(results: &[RunResult]) -> String {
    let columns = columns(results.iter().any(|run| run.priced));
    let joined = |cells: Vec<String>| cells.join(",") + "\n";
    let headings = joined(columns.iter().map(|(heading, _)| heading.to_string()).collect());
    let line = |run| {
        let line = Line { run, string: OneString::new(run) };
        joined(columns.iter().map(|(_, cell)| cell(&line)).collect())
    };
    headings + &results.iter().map(line).collect::<String>()
}
