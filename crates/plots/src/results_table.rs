//! Results of one string as a table.

use coldframe_core::Ps;
use coldframe_experiment::result::RunResult;
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_show::table::{styled, Grid};

/// One row for each result.
pub fn results(results: &[RunResult]) -> Grid {
    let with_instructions = results.iter().any(|r| r.time_per_instruction().is_some());
    let mut headings = vec![
        "policy",
        "handler",
        "RAM",
        "frames",
        "true faults",
        "miss ratio",
        "false faults",
        "walk max",
        "fault mean",
        "fault p99",
        "fault max",
    ];
    if with_instructions {
        headings.push("per instr.");
    }
    let rows = results.iter().map(|r| {
        let dash = || "-".to_string();
        let lane = r.lane();
        let of = |time: Option<Ps>| time.map_or_else(dash, human_time);
        let mut row = vec![
            r.policy.clone(),
            if r.handler.is_empty() { "oracle".into() } else { r.handler.clone() },
            human_size(r.ram().0),
            r.frames.to_string(),
            r.true_faults_text(),
            r.miss_ratio_text(),
            lane.map_or_else(dash, |l| human_count(l.counts.false_faults)),
            lane.map_or_else(dash, |l| l.counts.walk_max.0.to_string()),
            of(lane.and_then(|l| l.true_latency.mean())),
            of(lane.and_then(|l| l.true_latency.quantile(0.99))),
            of(lane.filter(|l| l.true_latency.count() > 0).map(|l| l.true_latency.max())),
        ];
        if with_instructions {
            row.push(r.time_per_instruction().map_or_else(dash, |t| human_time(Ps(t.round() as u64))));
        }
        row
    });
    styled(&headings, rows.collect(), 2).least(&["frames", "walk max", "false faults", "fault max", "fault mean"])
}
