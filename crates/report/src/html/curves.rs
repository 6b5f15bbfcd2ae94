//! Curves by RAM: misses by policy with OPT as the bound, and latencies.

use crate::advise::json::Answer;
use crate::html::chart::{Chart, Line, Point};
use crate::html::run::Run;
use crate::html::words::{note, section};
use crate::result::Distribution;

/// A time of a distribution, in picoseconds.
type Of = fn(&Distribution) -> u64;

/// What a run is worth in a chart.
type Worth<'a> = &'a dyn Fn(&Run<'_>) -> Option<f64>;

/// All charts over the runs; none where there is one run or no RAM.
pub fn curves(runs: &[Run<'_>]) -> String {
    let mut out = chart("Miss ratio by RAM", "true faults per reference", runs, &|run| run.miss_ratio(), true);
    let latencies: [(&str, Of); 3] = [
        ("Median latency of a true fault", |l| l.p50),
        ("99th percentile of a true fault", |l| l.p99),
        ("Longest true fault", |l| l.max),
    ];
    for (title, of) in latencies {
        out += &chart(title, "us", runs, &|run| Some(of(run.string()?.true_latency()?) as f64 / 1e6), false);
    }
    out
}

fn chart(title: &str, y: &str, runs: &[Run<'_>], worth: Worth<'_>, log_y: bool) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        let (Some(x), Some(y)) = (run.ram(), worth(run)) else { continue };
        let point = Point { x: x as f64 / 1024.0, y, at: run.at(), said: String::new() };
        put(&mut lines, run.name(), point, run.settings.policy.as_deref() == Some("opt"));
    }
    shown(title, Chart { x: "RAM, KiB", y, lines: sorted(lines), log_y }, "")
}

/// The misses of all that `advise` has tried, the fewest of each policy at each size.
pub fn searched(advice: &Answer) -> String {
    let references = (advice.trace.references.unwrap_or(0) as f64).max(1.0);
    let mut lines: Vec<Line> = Vec::new();
    for curve in &advice.curves {
        for (ram, faults, _) in &curve.points {
            let (x, y) = (*ram as f64 / 1024.0, *faults as f64 / references);
            let point = Point { x, y, at: String::new(), said: String::new() };
            put(&mut lines, curve.policy.clone(), point, curve.policy == "opt");
        }
    }
    let title = "Misses of every policy that was tried";
    let bound = lines.iter().any(|line| line.bound);
    let chart = Chart { x: "RAM, KiB", y: "true faults per reference", lines: sorted(lines), log_y: true };
    if !bound {
        return shown(title, chart, "");
    }
    shown(title, chart, "OPT, which knows the future, where the bound needed it: no policy misses less.")
}

fn put(lines: &mut Vec<Line>, name: String, point: Point, bound: bool) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { name, points: vec![point], bound }),
    }
}

/// By RAM; of equal RAM the least.
fn sorted(mut lines: Vec<Line>) -> Vec<Line> {
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        line.points.dedup_by(|next, kept| next.x == kept.x && next.at == kept.at);
    }
    lines
}

fn shown(title: &str, chart: Chart<'_>, said: &str) -> String {
    match chart.html() {
        html if html.is_empty() => html,
        html if said.is_empty() => section(title, &html),
        html => section(title, &(html + &note(said))),
    }
}
