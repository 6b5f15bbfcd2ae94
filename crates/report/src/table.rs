//! Results as a table for a person.

use coldframe_core::Ps;
use coldframe_sim::TierDone;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};

use crate::result::RunResult;

/// A time with three or four digits and its unit.
pub fn human_time(time: Ps) -> String {
    let ps = time.0 as f64;
    let (value, unit) = match time.0 {
        0 => return "0".into(),
        1..=999 => (ps, "ps"),
        1_000..=999_999 => (ps / 1e3, "ns"),
        1_000_000..=999_999_999 => (ps / 1e6, "us"),
        1_000_000_000..=999_999_999_999 => (ps / 1e9, "ms"),
        _ => (ps / 1e12, "s"),
    };
    let decimals = if value >= 100.0 { 1 } else { 2 };
    format!("{value:.decimals$} {unit}")
}

/// A count with blanks between thousands.
pub fn human_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A table in the house style: headings, rows, numbers to the right from column `text` on.
pub fn styled(headings: &[&str], rows: Vec<Vec<String>>, text: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(headings.to_vec());
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table.add_rows(rows);
    for i in text..headings.len() {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The same table in so many columns, words going on in the next line.
pub fn wrapped(mut table: Table, width: u16) -> Table {
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table
}

/// One row for each result.
pub fn results(results: &[RunResult]) -> Table {
    let with_instructions = results.iter().any(|r| r.time_per_instruction().is_some());
    let mut headings = vec![
        "policy",
        "handler",
        "RAM",
        "frames",
        "true faults",
        "miss ratio",
        "false faults",
        "walk max",
        "fault mean",
        "fault p99",
        "fault max",
    ];
    let with_tier = results.iter().any(|r| r.lane().is_some_and(|lane| lane.tier.is_some()));
    if with_tier {
        headings.extend(["from tier", "dev. reads", "dev. writes"]);
    }
    if with_instructions {
        headings.push("per instr.");
    }
    let rows = results.iter().map(|r| {
        let dash = || "-".to_string();
        let lane = r.lane();
        let of = |time: Option<Ps>| time.map_or_else(dash, human_time);
        let mut row = vec![
            r.policy.clone(),
            if r.handler.is_empty() { "oracle".into() } else { r.handler.clone() },
            r.ram_text(),
            r.frames.to_string(),
            r.true_faults_text(),
            r.miss_ratio_text(),
            lane.map_or_else(dash, |l| human_count(l.counts.false_faults)),
            lane.map_or_else(dash, |l| l.counts.walk_max.0.to_string()),
            of(lane.and_then(|l| l.true_latency.mean())),
            of(lane.and_then(|l| l.true_latency.quantile(0.99))),
            of(lane.filter(|l| l.true_latency.count() > 0).map(|l| l.true_latency.max())),
        ];
        if with_tier {
            let tier = lane.and_then(|l| l.tier);
            let of = |n: fn(&TierDone) -> u64| tier.as_ref().map_or_else(dash, |tier| human_count(n(tier)));
            row.extend([of(|t| t.counts.unpacked), of(|t| t.reads), of(|t| t.writes)]);
        }
        if with_instructions {
            row.push(r.time_per_instruction().map_or_else(dash, |t| human_time(Ps(t.round() as u64))));
        }
        row
    });
    styled(&headings, rows.collect(), 2)
}
