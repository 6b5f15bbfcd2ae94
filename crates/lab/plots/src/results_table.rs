//! Results of one string as a table.

use coldframe_core::Ps;
use coldframe_experiment::result::RunResult;
use coldframe_lane::{LaneResult, Latency};
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_show::table::Grid;

use crate::columns::{columns, Column};

pub fn results(results: &[RunResult]) -> Grid {
    let mut shown: Vec<Column<RunResult>> = vec![
        ("policy", |r| r.policy.clone()),
        ("handler", |r| if r.handler.is_empty() { "oracle".into() } else { r.handler.clone() }),
        ("RAM", |r| human_size(r.ram().0)),
        ("frames", |r| r.frames.to_string()),
        ("true faults", RunResult::true_faults_text),
        ("miss ratio", RunResult::miss_ratio_text),
        ("false faults", |r| of_lane(r, |l| human_count(l.counts.false_faults))),
        ("walk max", |r| of_lane(r, |l| l.counts.walk_max.0.to_string())),
        ("fault mean", |r| latency(r, Latency::mean)),
        ("fault p99", |r| latency(r, |l| l.quantile(0.99))),
        ("fault max", |r| latency(r, |l| (l.count() > 0).then(|| l.max()))),
    ];
    if results.iter().any(|r| r.time_per_instruction().is_some()) {
        shown.push(("per instr.", |r| time(r.time_per_instruction().map(|t| Ps(t.round() as u64)))));
    }
    columns(&shown, 2, results).keys(3)
}

fn of_lane(r: &RunResult, show: impl Fn(&LaneResult) -> String) -> String {
    r.lane().map_or_else(|| "-".into(), show)
}

fn latency(r: &RunResult, of: impl Fn(&Latency) -> Option<Ps>) -> String {
    time(r.timed().and_then(|lane| of(&lane.true_latency)))
}

fn time(time: Option<Ps>) -> String {
    time.map_or_else(|| "-".into(), human_time)
}
