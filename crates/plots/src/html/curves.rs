//! Curves by RAM: misses by policy with OPT as the bound, and latencies.

use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_size, human_time};

use crate::html::run::Run;
use coldframe_experiment::sim_result::Distribution;
use coldframe_search::json::Answer;
use coldframe_show::html::chart::{charts, Chart, Line, Mark, Point};
use coldframe_show::html::words::{folded, note, section, Unit};

/// A time of a distribution, in picoseconds.
type Of = fn(&Distribution) -> u64;

const LATENCIES: [(&str, Of); 3] = [
    ("Median latency of a true fault", |l| l.p50),
    ("99th percentile of a true fault", |l| l.p99),
    ("Longest true fault", |l| l.max),
];

/// True faults by RAM: what a page of runs shows first. Empty for one size of RAM.
pub fn misses(runs: &[Run<'_>]) -> String {
    let chart = misses_of(runs);
    if !chart.says_something() {
        return String::new();
    }
    section("Miss ratio by RAM", &(charts(&[chart]) + &note("Miss ratio: true faults per reference.")))
}

fn misses_of(runs: &[Run<'_>]) -> Chart<'static> {
    let point = |run: &Run<'_>| {
        let (ram, ratio, faults) = (run.ram()?, run.miss_ratio()?, run.string()?.counts.true_faults?);
        Some(at(run, ram, ratio, &format!("{} true faults", human_count(faults))))
    };
    by_ram("Miss ratio", Unit::Number, lines(runs, &point), true)
}

/// Latencies by RAM, folded: one legend for all of them.
pub fn latencies(runs: &[Run<'_>]) -> String {
    let of = |(title, of): (&'static str, Of)| {
        let point = |run: &Run<'_>| {
            let ps = of(run.string()?.true_latency()?);
            Some(at(run, run.ram()?, ps as f64 / 1e12, &human_time(Ps(ps))))
        };
        by_ram(title, Unit::Seconds, lines(runs, &point), false)
    };
    let all = LATENCIES.map(of);
    match all.iter().any(Chart::says_something) {
        true => folded("Latency by RAM", &charts(&all)),
        false => String::new(),
    }
}

fn by_ram(title: &'static str, unit: Unit, lines: Vec<Line>, log_y: bool) -> Chart<'static> {
    Chart { title, x: "RAM", unit, lines, log_y, zone: None, advised: None }
}

fn at(run: &Run<'_>, ram: u64, y: f64, value: &str) -> Point {
    let label = format!("{}, {}: {value}", run.name(), human_size(ram));
    Point { x: ram as f64, y, span: None, at: format!("/runs/{}", run.number), label }
}

fn lines(runs: &[Run<'_>], point: &dyn Fn(&Run<'_>) -> Option<Point>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        if let Some(point) = point(run) {
            let bound = run.settings().policy.as_deref() == Some("opt");
            put(&mut lines, run.name(), point, if bound { Mark::Bound } else { Mark::Line });
        }
    }
    sorted(lines)
}

/// The misses of all that `advise` has tried, the fewest of each policy at each size.
pub fn searched(advice: &Answer) -> Chart<'static> {
    let references = (advice.trace.references.unwrap_or(0) as f64).max(1.0);
    let mut lines: Vec<Line> = Vec::new();
    for curve in &advice.curves {
        let mark = if curve.policy == "opt" { Mark::Bound } else { Mark::Line };
        for (ram, faults, _) in &curve.points {
            let (size, faults_text) = (human_size(*ram), human_count(*faults));
            let label = format!("{}, {size}: {faults_text} true faults", curve.policy);
            let (x, y) = (*ram as f64, *faults as f64 / references);
            put(&mut lines, curve.policy.clone(), Point { x, y, span: None, at: String::new(), label }, mark);
        }
    }
    by_ram("Miss ratio of every policy that was tried", Unit::Number, sorted(lines), true)
}

fn put(lines: &mut Vec<Line>, name: String, point: Point, mark: Mark) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { name, points: vec![point], mark }),
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
