//! The whole distribution of a fault's latency, a strip for each run on one common axis.

use std::fmt::Write;

use coldframe_core::Ps;
use serde_json::Value;

use crate::html::run::Run;
use crate::html::words::{count, note, section, time};
use crate::plot::escape;
use crate::table::human_time;

/// Strips shown; the others' numbers are in the table of runs, and the script draws two that are chosen.
const SHOWN: usize = 40;
/// Units of a strip's width and height.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 48.0;
/// What is marked, as in the JSON.
const MARKS: [(&str, &str); 5] = [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")];

/// The common logarithmic axis in picoseconds.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(all: &[&Run<'_>]) -> Option<Axis> {
        let edges = || all.iter().flat_map(|run| bins(run.json)).flat_map(|(from, to, _)| [from, to]);
        let (low, high) = (edges().reduce(f64::min)?, edges().reduce(f64::max)?);
        Some(Axis { low: low.max(1.0), high: high.max(low * 2.0) })
    }

    /// From 0 to 1.
    fn place(self, ps: f64) -> f64 {
        ((ps.max(1.0) / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Five times, evenly spaced.
    fn ticks(self) -> String {
        let tick = |i: i32| {
            let ps = self.low * (self.high / self.low).powf(f64::from(i) / 4.0);
            format!("<span>{}</span>", human_time(Ps(ps as u64)))
        };
        format!("<div class=\"ticks\">{}</div>", (0..=4).map(tick).collect::<String>())
    }
}

fn bins(run: &Value) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let all = run["fault_latency_ps"]["true"]["bins"].as_array().into_iter().flatten();
    all.filter_map(|bin| Some((bin[0].as_f64()?, bin[1].as_f64()?, bin[2].as_f64()?)))
}

/// The section; empty where no run has a distribution.
pub fn latencies(runs: &[Run<'_>]) -> String {
    let all: Vec<&Run<'_>> = runs.iter().filter(|run| bins(run.json).next().is_some()).collect();
    let shown = &all[..all.len().min(SHOWN)];
    let Some(axis) = Axis::over(shown) else { return String::new() };
    let strips: String = shown.iter().map(|run| strip(run, axis)).collect();
    let mut said = "Bars: true faults of that latency, their height by the logarithm of their number. Lines: p50, p90, p99, p99.9, max."
        .to_string();
    if all.len() > SHOWN {
        let _ = write!(said, " {SHOWN} of {} runs; choose two others below to see theirs.", all.len());
    }
    section("How long a true fault takes", &format!("{strips}{}{}", axis.ticks(), note(&said)))
}

fn strip(run: &Run<'_>, axis: Axis) -> String {
    let latency = &run.json["fault_latency_ps"]["true"];
    let most = bins(run.json).map(|bin| bin.2).fold(1.0, f64::max);
    let mut bars = String::new();
    for (from, to, count) in bins(run.json) {
        let (left, right) = (axis.place(from) * WIDTH, axis.place(to) * WIDTH);
        let height = (HEIGHT - 4.0) * (count.ln_1p() / most.ln_1p());
        let _ = write!(bars, "M{left:.0} {HEIGHT}v-{height:.0}h{:.0}v{height:.0}z", (right - left).max(2.0));
    }
    let mut marks = String::new();
    let mut numbers = String::new();
    for (key, name) in MARKS {
        let at = axis.place(latency[key].as_f64().unwrap_or(0.0)) * WIDTH;
        let _ = write!(marks, "<path class=\"mark\" d=\"M{at:.0} 0v{HEIGHT}\"><title>{name}</title></path>");
        let _ = write!(numbers, "<span data-{key}=\"{}\">{name} {}</span> ", latency[key], time(&latency[key]));
    }
    format!(
        "<div class=\"strip\"{}><b>{}</b> <span class=\"soft\">{} true faults</span>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\"><path class=\"bars\" d=\"{bars}\"/>{marks}</svg>\
         <p class=\"numbers\">{numbers}</p></div>",
        run.at(),
        escape(&run.title()),
        count(&latency["count"]),
    )
}
