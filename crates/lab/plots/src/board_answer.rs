//! The answer as text: the number first, then the curve, the reasons, what to do, and how sure it is.

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::shorten::WINDOW;
use coldframe_sheet::quantity::{human_count, human_size, human_time};

use coldframe_search::cost::{Cost, Range};
use coldframe_search::{Advice, Candidate};
use coldframe_show::html::words::text;
use coldframe_show::plot::{short, Plot, Series};
use coldframe_show::table::styled;

/// A size for people. The configuration has it in the form of the command line.
pub fn ram(size: Bytes) -> String {
    human_size(size.0)
}

/// One line: the smallest RAM and its cost, or the limits that bind.
pub fn sentence(advice: &Advice) -> String {
    let footprint = ram(advice.footprint);
    match &advice.best {
        Some(best) => format!(
            "{}: {} of RAM do instead of {footprint} ({:.0} %): {}\n",
            advice.trace.path,
            ram(best.point.ram()),
            100.0 * best.point.ram().0 as f64 / advice.footprint.0.max(1) as f64,
            price(&best.cost)
        ),
        None => {
            let binds = advice.binds.join("; ");
            format!("{}: no configuration meets {}: {binds}\n", advice.trace.path, advice.limits.words())
        }
    }
}

pub fn words(advice: &Advice) -> String {
    let mut out = sentence(advice);
    if let Some(best) = &advice.best {
        out += &format!("  with {}, asked: {}\n", best.point.family(), advice.limits.words());
        out += &below(advice.below.as_ref());
        out += &prices(&best.cost);
    }
    out += &format!("\n{}\n", front(advice));
    if !advice.regions.is_empty() {
        out += &format!("\nWhat costs most:\n{}\n", regions(advice));
    }
    out + "\nHow sure:\n" + &sure(advice)
}

fn price(cost: &Cost) -> String {
    let mut parts = Vec::new();
    parts.extend(cost.slowdown.as_ref().ok().map(|r| format!("{} run time", percent(*r))));
    parts.extend(cost.p99.as_ref().ok().map(|t| format!("p99 of a fault {}", human_time(*t))));
    parts.extend(cost.energy.as_ref().ok().map(|r| format!("paging {}", millijoules(*r))));
    parts.extend(cost.life.as_ref().ok().map(|life| format!("flash lives {}", years(*life))));
    parts.join(", ")
}

fn percent(range: Range) -> String {
    format!("{:+.2} % ({:.2} to {:.2})", range.high, range.low, range.high)
}

fn millijoules(range: Range) -> String {
    let [low, high] = [range.low, range.high].map(|joules| short(joules * 1e3));
    format!("{high} mJ ({low} to {high})")
}

fn years(life: Option<Range>) -> String {
    match life {
        Some(range) => {
            let [low, high] = [range.low, range.high].map(short);
            format!("{low} years ({low} to {high})")
        }
        None => "on: nothing is written".into(),
    }
}

/// The missing prices, and the reasons.
fn prices(cost: &Cost) -> String {
    let lacking = [("energy", cost.energy.as_ref().err()), ("life", cost.life.as_ref().err())];
    lacking.iter().filter_map(|(what, reason)| Some(format!("  no {what}: {}\n", (*reason)?))).collect()
}

fn below(below: Option<&Candidate>) -> String {
    match below {
        Some(c) => format!("  with {} it does not: {}\n", ram(c.point.ram()), c.misses.join("; ")),
        None => "  less was not tried\n".into(),
    }
}

/// The Pareto front as a plot. `--format json` has its points.
fn front(advice: &Advice) -> String {
    let point = |c: &Candidate| Some((c.point.ram().0 as f64 / 1024.0, c.cost.slowdown.as_ref().ok()?.high));
    let mut series = vec![Series {
        name: "least slowdown for a RAM".into(),
        points: advice.front.iter().filter_map(point).collect(),
    }];
    if let Some(best) = advice.best.as_ref().and_then(point) {
        series.insert(0, Series { name: "advised".into(), points: vec![best] });
    }
    let plot = Plot {
        title: "Slowdown by RAM, the best configuration of each size (no slowdown at all is left out)".into(),
        x: "RAM, KiB".into(),
        y: "%".into(),
        series,
        log_x: true,
        log_y: true,
    };
    plot.text(64, 17)
}

fn regions(advice: &Advice) -> String {
    let row = |r: &coldframe_search::Region| {
        vec![r.name.clone(), human_count(r.faults), human_time(Ps(r.time_ps)), format!("{:.0} %", 100.0 * r.share)]
    };
    styled(&["region", "faults", "time", "of all"], advice.regions.iter().map(row).collect(), 1).to_string()
}

fn sure(advice: &Advice) -> String {
    let s = &advice.search;
    let references = human_count(advice.trace.references.unwrap_or_default());
    let mut out = format!("  trace: {}, {references} references\n", text(&advice.trace.fidelity));
    out += &advice.trace.caveat.as_ref().map(|label| format!("  {label}\n")).unwrap_or_default();
    let kinds = human_count(s.families as u64);
    out +=
        &format!("  searched: {kinds} kinds of configuration, {} runs in full", human_count(s.configurations as u64));
    match (&s.short, s.rounds.is_empty()) {
        (Some(short), _) => {
            let families = human_count(short.families as u64);
            let part = human_count(short.references);
            out += &format!(
                "; all kinds were tried on {part} of {references} references, of each page the first and the last in \
                    a window of {WINDOW}; only the {families} that need the least there went through the whole trace, \
                    and every number here is from that\n"
            );
        }
        (None, true) => out += ", all kinds at all sizes\n",
        (None, false) => {
            let rounds: Vec<String> =
                s.rounds.iter().map(|(rows, kinds)| format!("{kinds} on {} rows", human_count(*rows))).collect();
            out += &format!("; by successive halving: {}\n", rounds.join(", "));
        }
    }
    match &s.bound {
        Ok(bound) if bound.ram == Bytes(0) => {
            out += "  bound: OPT would meet the slowdown at every smaller size that was looked at\n"
        }
        Ok(bound) => {
            out += &format!("  bound: with {} or less no policy whatever meets the slowdown (OPT)\n", ram(bound.ram))
        }
        Err(reason) => out += &format!("  bound: none, {reason}\n"),
    }
    advice.assumptions.iter().for_each(|one| out += &format!("  assumed: {one}\n"));
    out
}
