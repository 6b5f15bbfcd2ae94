//! The answer about this machine: run time by RAM.

use std::fmt::Write;

use crate::here::words::{exact, human_seconds, human_size};
use crate::here::{Answer, Point as Size};
use crate::html::chart::{Chart, Line, Point};
use crate::html::words::{count, section, table, Row};
use crate::plot::escape;

/// The section of one answer.
pub fn answer(answer: &Answer) -> String {
    let mut out = headline(answer);
    let _ = write!(out, "<p class=\"soft\">{}</p>", escape(answer.command.as_deref().unwrap_or(&answer.program)));
    let charted = chart(answer).html();
    if !charted.is_empty() {
        out += &section("Run time by RAM on this machine", &charted);
    }
    let rows: Vec<Row> = answer.curve.iter().map(|size| (String::new(), cells(answer, size))).collect();
    let headings =
        ["--ram", "in all", "run time", "from", "to", "pages from the device", "pages written", "first touches"];
    out += &section("Sizes", &table(&headings, &rows));
    let notes: String =
        answer.how_sure.iter().chain(&answer.notes).map(|note| format!("<li>{}</li>", escape(note))).collect();
    out + &section("How sure", &format!("<ul>{notes}</ul>"))
}

fn headline(answer: &Answer) -> String {
    let own = human_seconds(answer.program_seconds);
    let whole = human_size(answer.managed_bytes + answer.not_paged_bytes);
    let program = escape(&answer.program);
    match answer.ram_bytes.and_then(|ram| answer.at(ram)) {
        Some(size) => format!(
            "<h1 id=\"answer\" data-ram=\"{}\">{program} takes {own} with {whole}, and {} with --ram {}.</h1>",
            size.ram_bytes,
            human_seconds(size.seconds),
            exact(size.ram_bytes)
        ),
        None => format!("<h1 id=\"answer\">{program} takes {own} with {whole}; no size meets the limit.</h1>"),
    }
}

fn chart(answer: &Answer) -> Chart<'static> {
    let line = |name: &str, bound: bool, of: fn(&Size) -> f64| {
        let point = |size: &Size| Point {
            x: size.ram_bytes as f64 / 1_048_576.0,
            y: of(size),
            at: String::new(),
            said: String::new(),
        };
        Line {
            name: name.into(),
            points: answer.curve.iter().rev().map(point).filter(|point| point.y.is_finite()).collect(),
            bound,
        }
    };
    let lines = vec![
        line("run time", false, |size| size.seconds),
        line("at best", true, |size| size.seconds_low),
        line("at worst", true, Size::worst),
    ];
    Chart { x: "RAM for what is paged, MiB", y: "seconds", lines, log_y: true }
}

fn cells(answer: &Answer, size: &Size) -> Vec<String> {
    vec![
        exact(size.ram_bytes),
        human_size(size.ram_bytes + answer.not_paged_bytes),
        human_seconds(size.seconds),
        human_seconds(size.seconds_low),
        size.seconds_high.map_or("not known".into(), human_seconds),
        count(size.device_reads),
        count(size.dirty_evictions),
        count(size.zero_fills),
    ]
}
