//! The answer of `advise`: the number first, then its price, the curve, what costs most, and how sure.

use std::collections::BTreeMap;
use std::fmt::Write;

use coldframe_answer::THRASHES;
use coldframe_search::cost::Range;
use coldframe_search::json::{Answer, Curve, Priced};
use coldframe_search::Region;
use coldframe_show::html::chart::{charts, Chart, Line, Mark, Point};
use coldframe_show::html::words::{count, figure, folded, list, note, size, table, text, time as shown, Row, Unit};
use coldframe_show::plot::{escape, COLOURS};

/// The answer in a sentence, its chart, and its price.
pub fn answer(advice: &Answer) -> String {
    let binds: String = advice.binds.iter().map(|bind| format!("<p>{}</p>", escape(bind))).collect();
    let chart = time(advice);
    let chart = if chart.says_something() { chart } else { searched(advice) };
    let mut label =
        chart.zone.map_or("", |_| "Shaded: it takes more than twice as long as with the most RAM tried.").to_string();
    if !chart.says_something() {
        label.clear();
    }
    let drawn = charts(&[chart]) + &if label.is_empty() { label } else { note(&label) };
    headline(advice) + &what(advice) + &binds + &drawn + &prices(advice)
}

/// The regions that cost most; empty where that is not known.
pub fn regions(advice: &Answer) -> String {
    let regions: Vec<Row> = advice.regions.iter().map(region).collect();
    match regions.is_empty() {
        true => String::new(),
        false => table(&["region", "faults", "time", "of all"], &regions),
    }
}

/// The program's name, as far as the trace's file shows it.
fn program(advice: &Answer) -> String {
    let file = advice.trace.path.rsplit('/').next().unwrap_or_default();
    escape(file.strip_suffix(".parquet").unwrap_or(file))
}

fn headline(advice: &Answer) -> String {
    let (program, all) = (program(advice), size(advice.footprint_bytes));
    let Some(best) = &advice.best else {
        return format!("<h1 id=\"answer\">No configuration of {program} meets the limits.</h1>");
    };
    let longer = match best.slowdown_percent {
        Some(range) => format!(", and takes at most {} % longer", figure(range.high)),
        None => String::new(),
    };
    let (bytes, ram) = (best.ram_bytes, size(best.ram_bytes));
    format!("<h1 id=\"answer\" data-ram=\"{bytes}\">{program} needs {ram} of RAM instead of {all}{longer}.</h1>")
}

/// Of which trace, for which machine, with which settings.
fn what(advice: &Answer) -> String {
    let trace = &advice.trace;
    let settings = advice.best.as_ref().map(|best| best.config.settings.clone()).unwrap_or_default();
    let on = settings.device.as_ref().map(|device| format!(" on {}", escape(device))).unwrap_or_default();
    let with =
        settings.policy.as_ref().map(|policy| format!(", {policy}, {}", text(&settings.handler))).unwrap_or_default();
    let references = count(trace.references);
    note(&format!("Simulated{on}{with}; {}, {references} references, {}", trace.path, text(&trace.fidelity)))
}

fn prices(advice: &Answer) -> String {
    let (best, less) = (advice.best.as_ref(), advice.next_smaller.as_ref());
    let rows: Vec<Row> = [("advised", "best", best), ("less", "next_smaller", less)]
        .into_iter()
        .filter_map(|(name, key, one)| Some(price(name, &format!(" data-at=\"/advice/{key}\""), one?)))
        .collect();
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => table(&["", "RAM", "slowdown", "p99 of a fault", "energy of paging", "life"], &rows),
    };
    less.iter().flat_map(|less| &less.misses).for_each(|miss| {
        let _ = write!(out, "<p>With less: {}</p>", escape(miss));
    });
    best.iter().flat_map(|best| &best.not_priced).for_each(|reason| {
        let _ = write!(out, "<p class=\"soft\">Not priced: {}</p>", escape(reason));
    });
    out
}

fn price(name: &str, at: &str, c: &Priced) -> Row {
    let life = match c.life_years {
        None if c.slowdown_percent.is_some() && lives_on(c) => "nothing is written".into(),
        life => range(life, 1.0, "years"),
    };
    let cells = vec![
        name.into(),
        size(c.ram_bytes),
        range(c.slowdown_percent, 1.0, "%"),
        shown(c.p99_ps),
        range(c.energy_joules, 1e3, "mJ"),
        life,
    ];
    (at.into(), cells)
}

/// No life is given, and no missing price of a life is reported: nothing wears the device.
fn lives_on(candidate: &Priced) -> bool {
    candidate.page_writes == 0 && candidate.not_priced.is_empty()
}

fn region(region: &Region) -> Row {
    let share = format!("{:.0} %", 100.0 * region.share);
    (String::new(), vec![region.name.clone(), count(region.faults), shown(region.time_ps), share])
}

/// Run time by RAM: the best configuration of each size (the Pareto front). If the program's own time is not known, the
/// time of paging.
fn time(advice: &Answer) -> Chart<'static> {
    let seconds = |ps: f64| ps / 1e12;
    let own = advice.candidates().find_map(|one| one.own_time_ps);
    let point = |path: String, c: &Priced| {
        let own = c.own_time_ps.zip(c.slowdown_percent);
        let (y, span) = match own {
            Some((own, percent)) => {
                let of = |percent: f64| seconds(own as f64 * (1.0 + percent / 100.0));
                (of(percent.high), Some((of(percent.low), of(percent.high))))
            }
            None => (seconds(c.paging_ps as f64), None),
        };
        let settings = &c.config.settings;
        let longer = c.slowdown_percent.map(|r| format!(", {} to {} % longer", figure(r.low), figure(r.high)));
        let label = format!(
            "{}: {}{}; {} true faults; {}, {}",
            size(c.ram_bytes),
            Unit::Seconds.show(y),
            longer.unwrap_or_default(),
            count(c.true_faults),
            text(&settings.policy),
            text(&settings.handler)
        );
        Point { x: c.ram_bytes as f64, y, span, path, label }
    };
    let all = advice.front.iter().enumerate();
    let mut points: Vec<Point> = all.map(|(i, c)| point(format!("/advice/front/{i}"), c)).collect();
    let best = advice.best.as_ref().map(|best| point("/advice/best".into(), best));
    let advised = best.as_ref().map(|p| (p.x, p.y, format!("advised: {}", size(p.x as u64))));
    points.extend(best.filter(|best| points.iter().all(|p| p.x != best.x)));
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let zone = thrash(&points).filter(|_| own.is_some()).map(|ram| (ram, "thrashes"));
    let lines = vec![Line { name: "at most".into(), points, mark: Mark::Line }];
    let title = if own.is_some() { "Run time by RAM" } else { "Time of paging by RAM" };
    let y = if own.is_some() { "run time" } else { "time of paging" };
    Chart { title, x: "RAM", y, unit: Unit::Seconds, log_y: Chart::wide(&lines), lines, zone, advised }
}

/// The RAM below which it takes more than twice as long as with the most RAM; `None`: at no size.
fn thrash(points: &[Point]) -> Option<f64> {
    let livable = THRASHES * points.last()?.y;
    let least = points.iter().find(|point| point.y <= livable)?;
    points.first().filter(|first| first.y > livable).map(|_| least.x)
}

pub fn sure(advice: &Answer) -> String {
    let bound = advice.search.opt_bound_bytes.filter(|bytes| *bytes > 0);
    let bound = bound.map(|bytes| format!("With {} or less no policy whatever meets the slowdown (OPT).", size(bytes)));
    list(bound.iter().chain(&advice.assumptions))
}

/// Every policy that was tried, folded; empty where that says nothing.
pub fn tried(advice: &Answer) -> String {
    let chart = searched(advice);
    if !chart.says_something() {
        return String::new();
    }
    let mut label = String::new();
    if chart.lines.iter().any(|line| line.mark == Mark::Bound) {
        label += &note("OPT, which knows the future, where the bound needed it: no policy misses less.");
    }
    if advice.curves.iter().any(|curve| chart.lines.iter().all(|line| line.name != curve.policy)) {
        label += &note("Policies with more misses than these are in the JSON alone.");
    }
    folded("Misses of every policy that was tried", &(charts(&[chart]) + &label))
}

/// The misses of all that was tried: of each policy the fewest at each size, whatever its handler and read-ahead. Those
/// with most misses are left out if there are more than colours.
fn searched(advice: &Answer) -> Chart<'static> {
    let references = (advice.trace.references.unwrap_or(0) as f64).max(1.0);
    let line = |(name, faults): &(String, BTreeMap<u64, u64>)| {
        let mark = if name == OPT { Mark::Bound } else { Mark::Line };
        let point = |(ram, faults): (&u64, &u64)| {
            let label = format!("{name}, {}: {} true faults", size(*ram), count(*faults));
            Point { x: *ram as f64, y: *faults as f64 / references, span: None, path: String::new(), label }
        };
        Line { name: name.clone(), points: faults.iter().map(point).collect(), mark }
    };
    let lines = fewest(&advice.curves).iter().map(line).collect();
    let title = "Miss ratio of every policy that was tried";
    Chart { title, x: "RAM", y: "miss ratio", unit: Unit::Number, lines, log_y: true, zone: None, advised: None }
}

const OPT: &str = "opt";

/// By policy, the fewest misses at each size: the bound first, then those with fewest at their sizes.
fn fewest(curves: &[Curve]) -> Vec<(String, BTreeMap<u64, u64>)> {
    let mut policies: Vec<(String, BTreeMap<u64, u64>)> = Vec::new();
    for curve in curves {
        let place = policies.iter().position(|(name, _)| *name == curve.policy).unwrap_or_else(|| {
            policies.push((curve.policy.clone(), BTreeMap::new()));
            policies.len() - 1
        });
        for (ram, faults, _) in &curve.points {
            policies[place].1.entry(*ram).and_modify(|least| *least = *faults.min(least)).or_insert(*faults);
        }
    }
    let mean = |faults: &BTreeMap<u64, u64>| faults.values().sum::<u64>() / faults.len().max(1) as u64;
    policies.sort_by_key(|(name, faults)| (name != OPT, mean(faults)));
    policies.truncate(COLOURS.len());
    policies
}

/// Both ends of a range; where it is not known, a dash.
fn range(range: Option<Range>, scale: f64, unit: &str) -> String {
    range.map_or_else(|| "-".into(), |r| format!("{} to {} {unit}", figure(r.low * scale), figure(r.high * scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_one_line_and_there_are_no_more_than_colours() {
        let curve = |policy: &str, name: &str, faults: u64| Curve {
            policy: policy.into(),
            name: name.into(),
            points: vec![(4096, faults, None), (8192, faults / 2, None)],
        };
        let mut curves = vec![curve("fifo", "fifo, parallel", 90), curve("fifo", "fifo, sequential, 16", 80)];
        curves.extend((0..12).map(|i| curve(&format!("p{i}"), "", 100 + i)));
        curves.push(curve("opt", "opt", 50));
        let lines = fewest(&curves);
        assert_eq!(lines.len(), COLOURS.len());
        assert_eq!((lines[0].0.as_str(), lines[1].0.as_str(), lines[1].1[&4096]), ("opt", "fifo", 80));
        assert!(lines.iter().all(|(name, _)| lines.iter().filter(|(other, _)| other == name).count() == 1));
    }
}
