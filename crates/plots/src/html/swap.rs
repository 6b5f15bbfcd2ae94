//! The swap area of a run: its counts, the wear of its erase blocks, and whose each slot was over time.

use std::fmt::Write;

use coldframe_sheet::quantity::human_count;

use crate::html::run::Run;
use coldframe_experiment::sim_result::{AreaView, WearMap};
use coldframe_experiment::slots::SlotMap;
use coldframe_show::html::words::{count, folded, note, table, Row};
use coldframe_show::plot::{escape, COLOURS};

/// Runs whose maps are shown.
const SHOWN: usize = 6;
/// Cells of a row of the wear map.
const WEAR_COLUMNS: usize = 32;

/// The sections; empty where no run has a swap area.
pub fn swap_areas(runs: &[Run<'_>]) -> String {
    let all: Vec<(&Run<'_>, AreaView<'_>)> = runs.iter().filter_map(|run| Some((run, run.result.area()?))).collect();
    if all.is_empty() {
        return String::new();
    }
    let rows: Vec<Row> = all.iter().map(|(run, area)| counts(run, area)).collect();
    let heads = ["run", "programs", "copies", "erases", "most worn block", "cost, in reads"];
    let few = if all.len() > SHOWN { note(&format!("{SHOWN} of {} runs.", all.len())) } else { String::new() };
    let maps = |of: fn(&AreaView<'_>) -> String| -> String {
        let map = |(run, area): &(&Run<'_>, AreaView<'_>)| strip(run, &of(area));
        all.iter().take(SHOWN).map(map).collect::<String>() + &few
    };
    folded("The swap area", &table(&heads, &rows))
        + &folded("Wear: erases of each block, in the blocks' order", &maps(|area| wear(area.wear)))
        + &folded("Slots: whose they are, time to the right, slots upwards", &maps(|area| slots(area.slots)))
}

fn strip(run: &Run<'_>, body: &str) -> String {
    format!("<div class=\"strip\"{}><b>{}</b>{body}</div>", run.at(), escape(&run.title()))
}

fn counts(run: &Run<'_>, area: &AreaView<'_>) -> Row {
    let numbers = [area.programs, area.copies, area.erases, area.most_worn.into()].map(human_count);
    (run.at(), [run.title()].into_iter().chain(numbers).chain([count(area.cost)]).collect())
}

fn wear(map: &WearMap) -> String {
    let (cells, each) = (&map.erases_max, map.blocks_per_cell);
    let most = cells.iter().copied().max().unwrap_or(0);
    let rows = cells.len().div_ceil(WEAR_COLUMNS);
    let mut squares = String::new();
    for (i, erases) in cells.iter().enumerate() {
        let strength = 0.08 + 0.92 * f64::from(*erases) / f64::from(most.max(1));
        let (x, y) = (i % WEAR_COLUMNS, i / WEAR_COLUMNS);
        let block = i * each;
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
fn slots(map: Option<&SlotMap>) -> String {
    let (rows, columns) = map.map_or((0, 0), |map| (map.owner.len(), map.owner.first().map_or(0, String::len)));
    let Some(map) = map.filter(|_| columns > 0) else { return note("The run was too short for a look at it.") };
    let letters = |rows: &[String]| -> Vec<Vec<u8>> { rows.iter().map(|row| row.as_bytes().to_vec()).collect() };
    let (owner, filled) = (letters(&map.owner), letters(&map.filled));
    let degree = |row: usize, column: usize| match filled[row].get(column) {
        Some(b'7'..=b'9') => 1.0,
        Some(b'4'..=b'6') => 0.65,
        _ => 0.35,
    };
    let (mut paths, mut keys) = (String::new(), String::new());
    let named = map.owners.iter().zip(COLOURS).zip(b'a'..);
    let entries =
        named.map(|((name, colour), letter)| (letter, name.as_str(), colour)).chain([(b'z', "others", "#999")]);
    for (letter, name, colour) in entries {
        if !owner.iter().flatten().any(|one| *one == letter) {
            continue;
        }
        for strength in [0.35, 0.65, 1.0] {
            let of = |row: usize, column: usize| owner[row][column] == letter && degree(row, column) == strength;
            let path = coldframe_show::html::heat::cells(rows, columns, of);
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
