//! Results of one string as plots: misses and latencies against RAM.

use coldframe_core::Ps;
use coldframe_experiment::result::{Certainty, RunResult};
use coldframe_lane::Latency;
use coldframe_show::plot::{Plot, Series};

/// The miss ratio, and the mean and the longest latency of a true fault where these have a price.
pub fn plots(results: &[RunResult]) -> Vec<Plot> {
    let plots = [
        miss_plot(results),
        latency_plot(results, "Mean latency of a true fault by RAM", Latency::mean),
        latency_plot(results, "Longest true fault by RAM", |l| (l.count() > 0).then(|| l.max())),
    ];
    plots.into_iter().filter(|plot| !plot.series.is_empty()).collect()
}

/// A series for each policy and handler.
fn series(results: &[RunResult], value: impl Fn(&RunResult) -> Option<f64>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for r in results {
        let Some(y) = value(r) else { continue };
        let name = format!("{}, {}", r.policy, if r.handler.is_empty() { "oracle" } else { &r.handler });
        let point = (r.ram().0 as f64 / 1024.0, y);
        match all.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series { name, points: vec![point] }),
        }
    }
    all
}

fn miss_plot(results: &[RunResult]) -> Plot {
    Plot {
        title: "Miss ratio by RAM".into(),
        x: "RAM, KiB".into(),
        y: "miss ratio".into(),
        series: series(results, |r| (!matches!(r.certainty, Certainty::Between { .. })).then(|| r.miss_ratio())),
        log_x: true,
        log_y: true,
    }
}

fn latency_plot(results: &[RunResult], title: &str, latency: impl Fn(&Latency) -> Option<Ps>) -> Plot {
    let us = |r: &RunResult| Some(latency(&r.timed()?.true_latency)?.0 as f64 / 1e6);
    Plot {
        title: title.into(),
        x: "RAM, KiB".into(),
        y: "us".into(),
        series: series(results, us),
        log_x: true,
        log_y: false,
    }
}
