//! Address by time: which memory is touched when.

use std::fmt::Write;

use coldframe_sheet::quantity::human_seconds;
use coldframe_store::heat::Heat;
use serde_json::json;

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

/// The touched cells: blue where they are mostly read, red where mostly written, darker with more touches.
fn touched(heat: &Heat) -> String {
    let (rows, columns) = (heat.rows, heat.columns);
    let highest = heat.reads.iter().zip(&heat.writes).map(|(r, w)| r + w).max().unwrap_or(1).max(1) as f64;
    let degree = |cell: usize| {
        let touched = (heat.reads[cell] + heat.writes[cell]) as f64;
        let degree = touched.ln_1p() / highest.ln_1p() * DEGREES.len() as f64;
        (touched > 0.0).then(|| (degree.ceil() as usize).clamp(1, DEGREES.len()) - 1)
    };
    let mut paths = String::new();
    for (written, class) in [(false, "read"), (true, "written")] {
        for (i, strength) in DEGREES.iter().enumerate() {
            let path = cells(rows, columns, |row, column| {
                let cell = row * columns + column;
                degree(cell) == Some(i) && (heat.writes[cell] > heat.reads[cell]) == written
            });
            let _ = write!(paths, "<path class=\"{class}\" opacity=\"{strength}\" d=\"{path}\"/>");
        }
    }
    paths
}

/// The map, with its axes, and the working set below it. The script says what is under the pointer or in a marked part.
/// `seconds`: how long it took, if that is known.
pub fn map(heat: &Heat, seconds: Option<f64>) -> String {
    let (rows, columns, paths) = (heat.rows, heat.columns, touched(heat));
    let low = heat.addresses.first().copied().unwrap_or(0);
    let high = heat.addresses.last().copied().unwrap_or(0);
    let cells = json!({ "rows": rows, "columns": columns, "addresses": heat.addresses, "reads": heat.reads,
        "writes": heat.writes, "seconds": seconds });
    let [from, middle, to] = times(seconds);
    format!(
        "<h3>Memory touched over the run</h3><div class=\"heat\"><p \
         class=\"ends\"><span>{high:#x}</span><span>{low:#x}</span></p>\
         <svg class=\"map\" tabindex=\"0\" viewBox=\"0 0 {columns} {rows}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"memory touched, address upwards, time to the right\">{paths}<rect class=\"marked\"/></svg>\
         <script type=\"application/json\" class=\"cells\">{cells}</script>{}\
         <p class=\"ticks\"><span>{from}</span><span>{middle}</span><span>{to}</span></p></div>\
         <p class=\"readout\" aria-live=\"polite\">Point at the map, or mark a part of it.</p>\
         <p class=\"legend\"><span class=\"key\"><i class=\"read\"></i>mostly read</span><span class=\"key\"><i \
         class=\"written\"></i>mostly written</span>\
         <span class=\"key\">darker: touched more often; memory never touched is left out</span></p>",
        working_set(heat),
    )
}

/// Begin, middle and end of the time axis.
fn times(seconds: Option<f64>) -> [String; 3] {
    match seconds {
        Some(seconds) => ["0 s".into(), human_seconds(seconds / 2.0), human_seconds(seconds)],
        None => ["start", "middle of the run", "end"].map(String::from),
    }
}

/// The map as a picture of its own.
pub fn picture(heat: &Heat) -> String {
    let (rows, columns, cells) = (heat.rows, heat.columns, touched(heat));
    let (low, high) = (heat.addresses.first().unwrap_or(&0), heat.addresses.last().unwrap_or(&0));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 400\" font-family=\"sans-serif\" \
         font-size=\"12\">\n\
         <style>.read{{fill:#1b6ca8}}.written{{fill:#d1495b}}</style><rect width=\"800\" height=\"400\" \
         fill=\"white\"/>\n\
         <text x=\"134\" y=\"30\" text-anchor=\"end\">{high:#x}</text><text x=\"134\" y=\"340\" \
         text-anchor=\"end\">{low:#x}</text>\
         <text x=\"140\" y=\"358\">start</text><text x=\"780\" y=\"358\" text-anchor=\"end\">end of the trace</text>\
         <text x=\"140\" y=\"385\">blue: mostly read, red: mostly written, darker: more often; memory never touched \
         is left out</text>\n\
         <svg x=\"140\" y=\"20\" width=\"640\" height=\"320\" viewBox=\"0 0 {columns} {rows}\" \
         preserveAspectRatio=\"none\">{cells}</svg>\
         <rect x=\"140\" y=\"20\" width=\"640\" height=\"320\" fill=\"none\" stroke=\"#888\"/>\n</svg>\n"
    )
}

/// Memory touched in each stretch of the run; empty where there are too few stretches.
fn working_set(heat: &Heat) -> String {
    let maximum = heat.working_set.iter().copied().max().unwrap_or(0);
    if maximum == 0 || heat.working_set.len() < 2 {
        return String::new();
    }
    let mut bars = String::new();
    for (column, pages) in heat.working_set.iter().enumerate() {
        let height = 100.0 * *pages as f64 / maximum as f64;
        let _ = write!(bars, "M{column} 100v-{height:.1}h1v{height:.1}z");
    }
    let columns = heat.working_set.len();
    format!(
        "<p class=\"ends\"><span>most</span><span>0</span></p><svg class=\"set\" viewBox=\"0 0 {columns} 100\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory touched in each stretch of the run, on a scale \
         from 0 to the most\"><path class=\"read\" d=\"{bars}\">\
         <title>memory touched in each {columns}th of the run, from 0 to the most</title></path></svg>"
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
