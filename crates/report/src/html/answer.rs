//! The answer of `advise`: the number first, then its price, the curve, what costs most, and how sure.

use std::fmt::Write;

use coldframe_core::Bytes;
use coldframe_device::quantity::show_bytes;
use serde_json::Value;

use crate::html::chart::{Chart, Line, Point};
use crate::html::words::{count, range, section, size, table, time, words, Row};
use crate::plot::escape;

/// The first section of the page; `number`: the answer's on the page.
pub fn answer(number: usize, advice: &Value) -> String {
    let mut out = headline(advice);
    let trace = &advice["trace"];
    let _ = write!(
        out,
        "<p class=\"soft\">{}, {} references, {}</p>",
        escape(&words(&trace["path"])),
        count(&trace["references"]),
        words(&trace["fidelity"])
    );
    let binds = advice["binds"].as_array().into_iter().flatten();
    binds.for_each(|bind| _ = write!(out, "<p>{}</p>", escape(&words(bind))));
    out += &prices(number, advice);
    out += &front(number, advice);
    let regions: Vec<Row> = advice["regions"].as_array().into_iter().flatten().map(region).collect();
    if !regions.is_empty() {
        out += &section("What costs most", &table(&["region", "faults", "time", "of all"], &regions));
    }
    out + &sure(advice)
}

fn headline(advice: &Value) -> String {
    match advice["met"].as_bool() {
        Some(true) => format!(
            "<h1 id=\"answer\" data-ram=\"{}\">{} of RAM do instead of {}.</h1>",
            advice["best"]["ram_bytes"],
            size(&advice["best"]["ram_bytes"]),
            size(&advice["footprint_bytes"])
        ),
        _ => "<h1 id=\"answer\">No configuration meets the limits.</h1>".into(),
    }
}

fn prices(number: usize, advice: &Value) -> String {
    let candidates = [("advised", "best"), ("less", "next_smaller")].map(|(name, key)| (name, key, &advice[key]));
    let rows: Vec<Row> = candidates
        .iter()
        .filter(|(_, _, candidate)| candidate.is_object())
        .map(|(name, key, candidate)| price(name, &format!(" data-at=\"/advice/{number}/{key}\""), candidate))
        .collect();
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => table(&["", "RAM", "slowdown", "p99 of a fault", "energy of paging", "life"], &rows),
    };
    advice["next_smaller"]["misses"].as_array().into_iter().flatten().for_each(|miss| {
        let _ = write!(out, "<p>With less: {}</p>", escape(&words(miss)));
    });
    advice["best"]["not_priced"].as_array().into_iter().flatten().for_each(|reason| {
        let _ = write!(out, "<p class=\"soft\">Not priced: {}</p>", escape(&words(reason)));
    });
    out
}

fn price(name: &str, at: &str, c: &Value) -> Row {
    let life = match c.get("life_years") {
        Some(Value::Null) if !c["slowdown_percent"].is_null() && lives_on(c) => "nothing is written".into(),
        life => range(life.unwrap_or(&Value::Null), 1.0, "years"),
    };
    let cells = vec![
        name.into(),
        size(&c["ram_bytes"]),
        range(&c["slowdown_percent"], 1.0, "%"),
        time(&c["p99_ps"]),
        range(&c["energy_joules"], 1e3, "mJ"),
        life,
    ];
    (at.into(), cells)
}

/// No life is given and none is said to lack a price: nothing wears the device.
fn lives_on(candidate: &Value) -> bool {
    candidate["page_writes"] == 0 && candidate["not_priced"].as_array().is_some_and(Vec::is_empty)
}

fn region(region: &Value) -> Row {
    let share = format!("{:.0} %", 100.0 * region["share"].as_f64().unwrap_or(0.0));
    (String::new(), vec![words(&region["name"]), count(&region["faults"]), time(&region["time_ps"]), share])
}

/// The Pareto front: the best configuration of each size.
fn front(number: usize, advice: &Value) -> String {
    let point = |at: String, c: &Value| {
        let (x, y) = (c["ram_bytes"].as_f64()? / 1024.0, c["slowdown_percent"]["high"].as_f64()?);
        let of = |key: &str| words(&c["config"][key]);
        Some(Point { x, y, at: format!(" data-at=\"{at}\""), said: format!("{}, {}", of("policy"), of("handler")) })
    };
    let all = advice["front"].as_array().into_iter().flatten().enumerate();
    let points = all.filter_map(|(i, c)| point(format!("/advice/{number}/front/{i}"), c)).collect();
    let mut lines = vec![Line { name: "least slowdown".into(), points, bound: false }];
    let best = point(format!("/advice/{number}/best"), &advice["best"]);
    lines.extend(best.map(|best| Line { name: "advised".into(), points: vec![best], bound: false }));
    let chart = Chart { x: "RAM, KiB", y: "% of the program's own time", lines, log_y: true };
    match chart.html() {
        html if html.is_empty() => html,
        html => section("Slowdown by RAM, the best configuration of each size (Pareto front)", &html),
    }
}

fn sure(advice: &Value) -> String {
    let bound = advice["search"]["opt_bound_bytes"].as_u64().filter(|bytes| *bytes > 0);
    let bound = bound
        .map(|bytes| format!("With {} or less no policy whatever meets the slowdown (OPT).", show_bytes(Bytes(bytes))));
    let assumptions = advice["assumptions"].as_array().into_iter().flatten().map(words);
    let lines: String =
        bound.into_iter().chain(assumptions).map(|line| format!("<li>{}</li>", escape(&line))).collect();
    section("How sure", &format!("<ul>{lines}</ul>"))
}
