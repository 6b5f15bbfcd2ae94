//! The whole distribution of a fault's latency, a strip for each run on one common axis.

use std::fmt::Write;

use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_time};

use crate::html::run::Run;
use coldframe_experiment::sim_result::Distribution;
use coldframe_show::html::words::{folded, note, time};
use coldframe_show::plot::escape;

/// Strips shown; the others' numbers are in the table of runs, and the script draws two that are chosen.
const SHOWN: usize = 40;
/// Units of a strip's width and height.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 48.0;
/// The marked percentiles: for the script, and for readers.
const MARKS: [(&str, &str); 5] = [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max")];

/// A run with true faults, how many, and how long they took.
type Timed<'a> = (&'a Run<'a>, u64, &'a Distribution);

/// The common logarithmic axis in picoseconds.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(all: &[Timed<'_>]) -> Option<Axis> {
        let edges = || all.iter().flat_map(|(.., l)| &l.bins).flat_map(|(from, to, _)| [*from as f64, *to as f64]);
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

/// The section; empty where no run has a distribution.
pub fn latencies(runs: &[Run<'_>]) -> String {
    let timed = |run| {
        let latencies = &Run::string(run)?.fault_latency_ps.as_ref()?.true_faults;
        Some((run, latencies.count, latencies.distribution.as_ref()?))
    };
    let all: Vec<Timed<'_>> = runs.iter().filter_map(timed).collect();
    let shown = &all[..all.len().min(SHOWN)];
    let Some(axis) = Axis::over(shown) else { return String::new() };
    if let Some(alike) = alike(&all) {
        return folded("How long a true fault takes", &alike);
    }
    let strips: String = shown.iter().map(|one| strip(*one, axis)).collect();
    let mut label = "Bars: true faults of that latency, their height by the logarithm of their number. Lines: p50, p90, p99, p99.9, max."
        .to_string();
    if all.len() > SHOWN {
        let _ = write!(label, " {SHOWN} of {} runs; choose two others below to see theirs.", all.len());
    }
    folded("How long a true fault takes", &format!("{strips}{}{}", axis.ticks(), note(&label)))
}

/// Where every true fault takes the same, a sentence.
fn alike(all: &[Timed<'_>]) -> Option<String> {
    let (_, _, first) = all.first()?;
    let same = all.iter().all(|(.., latency)| latency.max == first.max && latency.p50 == first.max);
    same.then(|| format!("<p>Every true fault takes {}.</p>", time(first.max)))
}

fn strip((run, faults, latency): Timed<'_>, axis: Axis) -> String {
    let most = latency.bins.iter().map(|bin| bin.2).max().unwrap_or(1) as f64;
    let mut bars = String::new();
    for (from, to, count) in &latency.bins {
        let (left, right) = (axis.place(*from as f64) * WIDTH, axis.place(*to as f64) * WIDTH);
        let height = (HEIGHT - 4.0) * ((*count as f64).ln_1p() / most.ln_1p());
        let _ = write!(bars, "M{left:.0} {HEIGHT}v-{height:.0}h{:.0}v{height:.0}z", (right - left).max(2.0));
    }
    let mut marks = String::new();
    let mut numbers = String::new();
    let marked = [latency.p50, latency.p90, latency.p99, latency.p999, latency.max];
    for ((key, name), ps) in MARKS.into_iter().zip(marked) {
        let at = axis.place(ps as f64) * WIDTH;
        let _ = write!(marks, "<path class=\"mark\" d=\"M{at:.0} 0v{HEIGHT}\"><title>{name}</title></path>");
        let _ = write!(numbers, "<span data-{key}=\"{ps}\">{name} {}</span> ", time(ps));
    }
    format!(
        "<div class=\"strip\"{}><b>{}</b> <span class=\"soft\">{} true faults</span>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\"><path class=\"bars\" d=\"{bars}\"/>{marks}</svg>\
         <p class=\"numbers\">{numbers}</p></div>",
        run.at(),
        escape(&run.title()),
        human_count(faults),
    )
}
