//! Address by time: what memory is touched when.

use std::fmt::Write;

use coldframe_trace::heat::Heat;

use crate::html::words::{note, section};

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

/// The section.
pub fn map(heat: &Heat) -> String {
    let most = heat.reads.iter().zip(&heat.writes).map(|(r, w)| r + w).max().unwrap_or(1).max(1) as f64;
    let degree = |at: usize| {
        let touched = (heat.reads[at] + heat.writes[at]) as f64;
        let of = touched.ln_1p() / most.ln_1p() * DEGREES.len() as f64;
        (touched > 0.0).then(|| (of.ceil() as usize).clamp(1, DEGREES.len()) - 1)
    };
    let mut paths = String::new();
    for (written, colour) in [(false, "#1b6ca8"), (true, "#d1495b")] {
        for (i, strength) in DEGREES.iter().enumerate() {
            let path = cells(heat.rows, heat.columns, |row, column| {
                let at = row * heat.columns + column;
                degree(at) == Some(i) && (heat.writes[at] > heat.reads[at]) == written
            });
            let _ = write!(paths, "<path fill=\"{colour}\" opacity=\"{strength}\" d=\"{path}\"/>");
        }
    }
    let svg = format!(
        "<svg class=\"map\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">{paths}</svg>",
        heat.columns, heat.rows
    );
    let low = heat.addresses.first().copied().unwrap_or(0);
    let high = heat.addresses.last().copied().unwrap_or(0);
    let said = format!(
        "Touched memory only, from {low:#x} below to {high:#x} above; time to the right; darker is more, red is mostly written."
    );
    section("What memory is touched when", &(svg + &note(&said)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn neighbours_are_one_piece_and_the_first_row_is_the_lowest() {
        let set = [[true, true, false], [false, false, true]];
        assert_eq!(super::cells(2, 3, |row, column| set[row][column]), "M0 1h2v1h-2zM2 0h1v1h-1z");
    }
}
