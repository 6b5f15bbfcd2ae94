//! The answer of `advise`: the number first, then its price, the curve, what costs most, and how sure.

use std::fmt::Write;

use coldframe_core::Bytes;
use coldframe_device::quantity::show_bytes;

use crate::advise::json::{Answer, Costly, Priced};
use crate::html::chart::{Chart, Line, Point};
use crate::html::words::{count, range, section, size, table, text, time, Row};
use crate::plot::escape;

/// The first section of the page; `number`: the answer's on the page.
pub fn answer(number: usize, advice: &Answer) -> String {
    let mut out = headline(advice);
    let trace = &advice.trace;
    let _ = write!(
        out,
        "<p class=\"soft\">{}, {} references, {}</p>",
        escape(&trace.path),
        count(trace.references),
        text(&trace.fidelity)
    );
    advice.binds.iter().for_each(|bind| _ = write!(out, "<p>{}</p>", escape(bind)));
    out += &prices(number, advice);
    out += &front(number, advice);
    let regions: Vec<Row> = advice.regions.iter().map(region).collect();
    if !regions.is_empty() {
        out += &section("What costs most", &table(&["region", "faults", "time", "of all"], &regions));
    }
    out + &sure(advice)
}

fn headline(advice: &Answer) -> String {
    match &advice.best {
        Some(best) => format!(
            "<h1 id=\"answer\" data-ram=\"{}\">{} of RAM do instead of {}.</h1>",
            best.ram_bytes,
            size(best.ram_bytes),
            size(advice.footprint_bytes)
        ),
        None => "<h1 id=\"answer\">No configuration meets the limits.</h1>".into(),
    }
}

fn prices(number: usize, advice: &Answer) -> String {
    let (best, less) = (advice.best.as_ref(), advice.next_smaller.as_ref());
    let rows: Vec<Row> = [("advised", "best", best), ("less", "next_smaller", less)]
        .into_iter()
        .filter_map(|(name, key, one)| Some(price(name, &format!(" data-at=\"/advice/{number}/{key}\""), one?)))
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
        time(c.p99_ps),
        range(c.energy_joules, 1e3, "mJ"),
        life,
    ];
    (at.into(), cells)
}

/// No life is given and none is said to lack a price: nothing wears the device.
fn lives_on(candidate: &Priced) -> bool {
    candidate.page_writes == 0 && candidate.not_priced.is_empty()
}

fn region(region: &Costly) -> Row {
    let share = format!("{:.0} %", 100.0 * region.share);
    (String::new(), vec![region.name.clone(), count(region.faults), time(region.time_ps), share])
}

/// The Pareto front: the best configuration of each size.
fn front(number: usize, advice: &Answer) -> String {
    let point = |at: String, c: &Priced| {
        let (x, y) = (c.ram_bytes as f64 / 1024.0, c.slowdown_percent?.high);
        let settings = c.in_force().unwrap_or_default();
        let said = format!("{}, {}", text(&settings.policy), text(&settings.handler));
        Some(Point { x, y, at: format!(" data-at=\"{at}\""), said })
    };
    let all = advice.front.iter().enumerate();
    let points = all.filter_map(|(i, c)| point(format!("/advice/{number}/front/{i}"), c)).collect();
    let mut lines = vec![Line { name: "least slowdown".into(), points, bound: false }];
    let best = advice.best.as_ref().and_then(|best| point(format!("/advice/{number}/best"), best));
    lines.extend(best.map(|best| Line { name: "advised".into(), points: vec![best], bound: false }));
    let chart = Chart { x: "RAM, KiB", y: "% of the program's own time", lines, log_y: true };
    match chart.html() {
        html if html.is_empty() => html,
        html => section("Slowdown by RAM, the best configuration of each size (Pareto front)", &html),
    }
}

fn sure(advice: &Answer) -> String {
    let bound = advice.search.opt_bound_bytes.filter(|bytes| *bytes > 0);
    let bound = bound
        .map(|bytes| format!("With {} or less no policy whatever meets the slowdown (OPT).", show_bytes(Bytes(bytes))));
    let lines: String =
        bound.iter().chain(&advice.assumptions).map(|line| format!("<li>{}</li>", escape(line))).collect();
    section("How sure", &format!("<ul>{lines}</ul>"))
}
