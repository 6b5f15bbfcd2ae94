//! Address by time: which memory is touched when.

use std::fmt::Write;

use coldframe_sheet::quantity::{human_count, human_size};
use coldframe_store::heat::{Heat, PAGE};

/// Degrees of darkness.
const DEGREES: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

/// The cells for which `is` holds, as one path; row 0 at the bottom, neighbours in a row as one.
pub fn cells(rows: usize, columns: usize, is: impl Fn(usize, usize) -> bool) -> String {
    let mut path = String::new();
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let end = (column..columns).find(|c| !is(row, *c)).unwrap_or(columns);
            if end > column {
                let n = end - column;
                let _ = write!(path, "M{column} {}h{n}v1h-{n}z", rows - 1 - row);
            }
            column = end.max(column + 1);
        }
    }
    path
}

/// The map, with its axes, and the working set below it.
/// `whole`: every reference is in the trace, so that bytes touched can be told.
pub fn map(heat: &Heat, whole: bool) -> String {
    let (rows, columns) = (heat.rows, heat.columns);
    let most = heat.reads.iter().zip(&heat.writes).map(|(r, w)| r + w).max().unwrap_or(1).max(1) as f64;
    let degree = |at: usize| {
        let touched = (heat.reads[at] + heat.writes[at]) as f64;
        let of = touched.ln_1p() / most.ln_1p() * DEGREES.len() as f64;
        (touched > 0.0).then(|| (of.ceil() as usize).clamp(1, DEGREES.len()) - 1)
    };
    let mut paths = String::new();
    for (written, class) in [(false, "read"), (true, "written")] {
        for (i, strength) in DEGREES.iter().enumerate() {
            let path = cells(rows, columns, |row, column| {
                let at = row * columns + column;
                degree(at) == Some(i) && (heat.writes[at] > heat.reads[at]) == written
            });
            let _ = write!(paths, "<path class=\"{class}\" opacity=\"{strength}\" d=\"{path}\"/>");
        }
    }
    let caption: String = (0..rows).map(|row| stretch(heat, row)).collect();
    let low = heat.addresses.first().copied().unwrap_or(0);
    let high = heat.addresses.last().copied().unwrap_or(0);
    format!(
        "<h3>Memory touched over the run</h3><div class=\"heat\"><p class=\"ends\"><span>{high:#x}</span><span>{low:#x}</span></p>\
         <svg class=\"map\" viewBox=\"0 0 {columns} {rows}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"memory touched, address upwards, time to the right\">{paths}{caption}</svg>{}{TIME}</div>\
         <p class=\"legend\"><span class=\"key\"><i class=\"read\"></i>mostly read</span><span class=\"key\"><i class=\"written\"></i>mostly written</span>\
         <span class=\"key\">darker: touched more often; memory never touched is left out</span></p>",
        working_set(heat, whole),
    )
}

const TIME: &str = "<p class=\"ticks\"><span>start</span><span>middle of the run</span><span>end</span></p>";

/// The text about a row of the map.
fn stretch(heat: &Heat, row: usize) -> String {
    let of = |all: &[u64]| human_count(all.iter().skip(row * heat.columns).take(heat.columns).sum());
    let (from, y) = (heat.addresses.get(row).copied().unwrap_or(0), heat.rows - 1 - row);
    let (reads, writes) = (of(&heat.reads), of(&heat.writes));
    let title = format!("from {from:#x}: {reads} reads, {writes} writes");
    format!("<rect class=\"row\" y=\"{y}\" width=\"{}\" height=\"1\"><title>{title}</title></rect>", heat.columns)
}

/// Memory touched in each stretch of the run; empty where there are too few stretches.
fn working_set(heat: &Heat, whole: bool) -> String {
    let most = heat.working_set.iter().copied().max().unwrap_or(0);
    if most == 0 || heat.working_set.len() < 2 {
        return String::new();
    }
    let mut bars = String::new();
    for (column, pages) in heat.working_set.iter().enumerate() {
        let height = 100.0 * *pages as f64 / most as f64;
        let _ = write!(bars, "M{column} 100v-{height:.1}h1v{height:.1}z");
    }
    let columns = heat.working_set.len();
    let most = if whole { human_size(most * PAGE) } else { "most".into() };
    format!(
        "<p class=\"ends\"><span>{most}</span><span>0</span></p><svg class=\"set\" viewBox=\"0 0 {columns} 100\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"memory touched in each stretch of the run, on a scale from 0 to {most}\"><path class=\"read\" d=\"{bars}\">\
         <title>memory touched in each {columns}th of the run, from 0 to {most}</title></path></svg>"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn neighbours_are_one_piece_and_the_first_row_is_the_lowest() {
        let set = [[true, true, false], [false, false, true]];
        assert_eq!(super::cells(2, 3, |row, column| set[row][column]), "M0 1h2v1h-2zM2 0h1v1h-1z");
    }
}
