//! What `sim` says of simulated runs: the trace, the table, and what the table cannot show.

use std::path::Path;

use coldframe_experiment::drive::Outcomes;
use coldframe_experiment::RunResult;
use coldframe_lane::LaneResult;
use coldframe_sheet::quantity::{human_count, human_size};
use coldframe_show::html::words::text;

use crate::tasks_table::failures;
use crate::{results_plot, results_table, swap_table, tasks_table};

/// The results in words. `plot`: with plots or bars below the table.
pub fn words(trace: &Path, outcomes: &Outcomes, plot: bool) -> String {
    let path = trace.display();
    match outcomes {
        Outcomes::String(results) => of_string(trace, results, plot),
        Outcomes::Tasks(outcomes) => tasks_table::table(trace, outcomes),
        Outcomes::SwapTrace(outcomes) => {
            let pictures = if plot { format!("\n{}", swap_table::pictures(outcomes)) } else { String::new() };
            let notes = outcomes.first().map(|o| o.notes.join("\n")).unwrap_or_default();
            let notes = if notes.is_empty() { notes } else { format!(": {notes}") };
            format!("{path}: a swap trace{notes}\n{}{pictures}", swap_table::table(outcomes))
        }
    }
}

fn of_string(trace: &Path, results: &[RunResult], plot: bool) -> String {
    let first = &results[0];
    let mut out = format!(
        "{}: {} {}, {} pages of {} touched, {}\n",
        trace.display(),
        human_count(if first.has_icache { first.front_end.instructions } else { first.references() }),
        if first.has_icache { "instructions" } else { "page references" },
        human_count(first.pages as u64),
        human_size(first.page.0),
        text(&first.trace.fidelity),
    );
    if let Some(caveat) = &first.trace.caveat {
        out += &format!("{caveat}\n");
    }
    first.estimated().iter().for_each(|note| out += &format!("{note}\n"));
    if first.has_icache {
        let f = first.front_end;
        out += &format!(
            "instruction cache: {} look-ups, {} misses (hit ratio {:.6}); miss ratio below is page misses per \
                instruction\n",
            human_count(f.icache_lookups),
            human_count(f.icache_misses),
            1.0 - f.icache_misses as f64 / f.icache_lookups.max(1) as f64
        );
    }
    out += &format!("{}\n", results_table::results(results));
    if results.iter().any(|r| r.timed().is_some_and(|l| l.writes_unpriced)) {
        out += "The device's sheet gives no program time: latencies leave out the programming of dirty pages (set \
            time.program).\n";
    }
    let failed = |lane: &LaneResult| failures(lane.counts.failures, u64::from(lane.halted.is_some()));
    out.extend(results.iter().filter_map(RunResult::lane).map(failed));
    for (r, swap) in results.iter().filter_map(|r| Some((r, r.lane()?.swap.as_ref()?))) {
        let c = swap.counts;
        out += &format!(
            "Swap area, {} with {}{}: {} pages programmed, {} copied, {} blocks erased, {} times full.\n",
            r.policy,
            human_size(r.ram().0),
            collector(r),
            human_count(c.programs),
            human_count(c.copies),
            human_count(c.erases),
            human_count(c.areas_full)
        );
    }
    if plot {
        results_plot::plots(results).iter().for_each(|plot| out += &format!("\n{}", plot.text(64, 17)));
    }
    out
}

/// The collector of a run's swap area, behind a comma.
fn collector(r: &RunResult) -> String {
    r.config.swap.log.collector.as_ref().map(|name| format!(", {name}")).unwrap_or_default()
}
