//! The swap area of a run: its counts, the wear of its erase blocks, and whose each slot was over time.

use std::fmt::Write;

use serde_json::Value;

use crate::html::run::Run;
use crate::html::words::{count, note, section, table, Row};
use crate::plot::{escape, COLOURS};

/// Runs whose maps are shown.
const SHOWN: usize = 6;
/// Cells of a row of the wear map.
const WEAR_COLUMNS: usize = 32;

/// The sections; empty where no run has a swap area.
pub fn swap_areas(runs: &[Run<'_>]) -> String {
    let all: Vec<(&Run<'_>, &Value)> = runs.iter().filter_map(|run| Some((run, run.swap()?))).collect();
    if all.is_empty() {
        return String::new();
    }
    let rows: Vec<Row> = all.iter().map(|(run, swap)| counts(run, swap)).collect();
    let heads = ["run", "programs", "copies", "erases", "most worn block", "cost, in reads"];
    let few = if all.len() > SHOWN { note(&format!("{SHOWN} of {} runs.", all.len())) } else { String::new() };
    let maps = |of: fn(&Value) -> String| -> String {
        let map = |(run, swap): &(&Run<'_>, &Value)| strip(run, &of(swap));
        all.iter().take(SHOWN).map(map).collect::<String>() + &few
    };
    section("The swap area", &table(&heads, &rows))
        + &section("Wear: erases of each block, in the blocks' order", &maps(wear))
        + &section("Slots: whose they are, time to the right, slots upwards", &maps(slots))
}

fn strip(run: &Run<'_>, body: &str) -> String {
    format!("<div class=\"strip\"{}><b>{}</b>{body}</div>", run.at(), escape(&run.title()))
}

/// Of the engine's area, or of a swap trace's.
fn counts(run: &Run<'_>, swap: &Value) -> Row {
    let of = |key: &str| count(if swap[key].is_u64() { &swap[key] } else { &swap["counts"][key] });
    let most = if swap["erases_max"].is_u64() { &swap["erases_max"] } else { &swap["wear"]["max"] };
    (run.at(), vec![run.title(), of("programs"), of("copies"), of("erases"), count(most), count(&swap["cost"])])
}

fn wear(swap: &Value) -> String {
    let map = &swap["wear_map"];
    let cells: Vec<u64> = map["erases_max"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let (each, most) = (map["blocks_per_cell"].as_u64().unwrap_or(1), cells.iter().copied().max().unwrap_or(0));
    let rows = cells.len().div_ceil(WEAR_COLUMNS);
    let mut squares = String::new();
    for (i, erases) in cells.iter().enumerate() {
        let strength = 0.08 + 0.92 * *erases as f64 / most.max(1) as f64;
        let (x, y) = (i % WEAR_COLUMNS, i / WEAR_COLUMNS);
        let block = i as u64 * each;
        let _ = write!(
            squares,
            "<rect x=\"{x}\" y=\"{y}\" width=\".9\" height=\".9\" opacity=\"{strength:.2}\"><title>block {block}: {erases}</title></rect>"
        );
    }
    let of = if each > 1 { format!("the most worn of each {each} blocks, ") } else { String::new() };
    format!(
        "<svg class=\"wear\" viewBox=\"0 0 {WEAR_COLUMNS} {rows}\">{squares}</svg>{}",
        note(&format!("{of}0 to {most} erases; darker is more"))
    )
}

/// One path for each owner and each of three degrees of filling.
fn slots(swap: &Value) -> String {
    let texts = |key: &str| -> Vec<Vec<u8>> {
        let rows = swap["slots"][key].as_array().into_iter().flatten();
        rows.filter_map(|row| Some(row.as_str()?.as_bytes().to_vec())).collect()
    };
    let (owner, filled) = (texts("owner"), texts("filled"));
    let (rows, columns) = (owner.len(), owner.first().map_or(0, Vec::len));
    if columns == 0 {
        return note("The run was too short for a look at it.");
    }
    let names: Vec<&str> = swap["slots"]["owners"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let degree = |row: usize, column: usize| match filled[row].get(column) {
        Some(b'7'..=b'9') => 1.0,
        Some(b'4'..=b'6') => 0.65,
        _ => 0.35,
    };
    let (mut paths, mut keys) = (String::new(), String::new());
    let entries = names
        .iter()
        .copied()
        .enumerate()
        .map(|(i, name)| (b'a' + i as u8, name, COLOURS[i]))
        .chain([(b'z', "others", "#999")]);
    for (letter, name, colour) in entries {
        if !owner.iter().flatten().any(|one| *one == letter) {
            continue;
        }
        for strength in [0.35, 0.65, 1.0] {
            let of = |row: usize, column: usize| owner[row][column] == letter && degree(row, column) == strength;
            let path = super::heat::cells(rows, columns, of);
            let _ = write!(
                paths,
                "<path fill=\"{colour}\" opacity=\"{strength}\" d=\"{path}\"><title>{}</title></path>",
                escape(name)
            );
        }
        let _ = write!(keys, "<span class=\"key\"><i style=\"background:{colour}\"></i>{}</span>", escape(name));
    }
    format!(
        "<svg class=\"map\" viewBox=\"0 0 {columns} {rows}\" preserveAspectRatio=\"none\">{paths}</svg><p class=\"legend\">{keys}</p>{}",
        note("paler: few of the slots there hold a copy")
    )
}
