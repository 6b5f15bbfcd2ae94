//! Address by time: which memory is touched when.

use std::fmt::Write;

use coldframe_answer::{MemoryOwner, Touched};
use coldframe_sheet::quantity::{human_seconds, human_size};
use coldframe_store::heat::{Heat, PAGE};
use serde_json::json;

use crate::html::words::{table, Row};
use crate::plot::escape;

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
/// `even`: as dark as there are touches; else each degree is some times as many.
fn touched(heat: &Heat, even: bool) -> String {
    let (rows, columns) = (heat.rows, heat.columns);
    let highest = heat.reads.iter().zip(&heat.writes).map(|(r, w)| r + w).max().unwrap_or(1).max(1) as f64;
    let degree = |cell: usize| {
        let touched = (heat.reads[cell] + heat.writes[cell]) as f64;
        let part = if even { touched / highest } else { touched.ln_1p() / highest.ln_1p() };
        let degree = part * DEGREES.len() as f64;
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

/// The map, with its axes, the working set below it, and who owns the memory. The script says what is under the pointer
/// or in a marked part. `alone`: seconds that the program takes alone.
pub fn map(map: &Touched, alone: f64) -> String {
    let heat = &map.heat;
    let (rows, columns, paths) = (heat.rows, heat.columns, touched(heat, map.bits));
    let seconds = map.bits.then_some(map.seconds);
    let cells = json!({ "rows": rows, "columns": columns, "names": map.names, "reads": heat.reads,
        "writes": heat.writes, "seconds": seconds, "bits": map.bits });
    let [from, middle, to] = times(map);
    let (axis, key) = (axis(map, alone), key(map.bits));
    format!(
        "<h3>Memory touched over the run</h3><p class=\"soft\">Upwards: memory by its owner. To the right: {axis}</p>\
         <div class=\"heat\">{}<svg class=\"map\" tabindex=\"0\" viewBox=\"0 0 {columns} {rows}\" \
         preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"memory touched, by its owner upwards, time to the right\">{paths}<rect class=\"marked\"/></svg>\
         <script type=\"application/json\" class=\"cells\">{}</script>{}\
         <p class=\"ticks\"><span>{from}</span><span>{middle}</span><span>{to}</span></p></div>\
         <p class=\"readout\" aria-live=\"polite\">Point at the map, or mark a part of it.</p>\
         <p class=\"legend\">{key}</p>{}",
        bands(&map.names),
        cells.to_string().replace("</", "<\\/"),
        working_set(heat),
        owners(map),
    )
}

/// What the time axis shows. A recording takes longer than the program alone.
fn axis(map: &Touched, alone: f64) -> String {
    let (recorded, alone) = (human_seconds(map.seconds), human_seconds(alone));
    match (map.bits, recorded == alone) {
        (true, true) => format!("time, {recorded} in all."),
        (true, false) => format!("time as it was watched, {recorded}; the program alone takes {alone}."),
        (false, _) => format!("its touches in order, as recorded in {recorded}; the program alone takes {alone}."),
    }
}

/// What the colours mean.
fn key(bits: bool) -> &'static str {
    match bits {
        true => {
            "<span class=\"key\"><i class=\"read\"></i>referenced: darker, more bytes</span><span class=\"key\">from \
             referenced bits: how much of a mapping, not which part of it; blank: not referenced, or not watched</span>"
        }
        false => {
            "<span class=\"key\"><i class=\"read\"></i>mostly read</span><span class=\"key\"><i \
             class=\"written\"></i>mostly written</span><span class=\"key\">darker: touched more often; memory never \
             touched is left out</span>"
        }
    }
}

/// Rows that a name needs: a row has 16 rem / 40.
const NAME_ROWS: usize = 3;

/// Rows with one owner, from the top: how many, and the name if there is room for it.
fn named(names: &[String]) -> Vec<(usize, &str)> {
    let mut bands: Vec<(usize, &str)> = Vec::new();
    for name in names.iter().rev() {
        match bands.last_mut().filter(|(_, last)| *last == name) {
            Some((rows, _)) => *rows += 1,
            None => bands.push((1, name)),
        }
    }
    let rows = names.len();
    bands.iter().map(|(n, name)| (*n, if n * 40 >= NAME_ROWS * rows { *name } else { "" })).collect()
}

/// The names beside the map.
fn bands(names: &[String]) -> String {
    let band = |(rows, name): &(usize, &str)| {
        format!("<span style=\"flex:{rows} 0 0\" title=\"{0}\">{0}</span>", escape(name))
    };
    format!("<p class=\"ends bands\">{}</p>", named(names).iter().map(band).collect::<String>())
}

/// Owners that are listed.
const OWNERS: usize = 8;

/// Who owns the memory.
fn owners(map: &Touched) -> String {
    let all = map.owners.iter().map(|owner| owner.bytes).sum::<u64>().max(1) as f64;
    let row = |owner: &MemoryOwner| {
        let percent = |percent: f64| format!("{percent:.0} %");
        let cells = [owner.name.clone(), percent(100.0 * owner.bytes as f64 / all), percent(owner.touches_percent)];
        (String::new(), cells.to_vec())
    };
    // Rounded, it has something.
    let shown = |owner: &&MemoryOwner| 200.0 * owner.bytes as f64 >= all || owner.touches_percent >= 0.5;
    let rows: Vec<Row> = map.owners.iter().filter(shown).take(OWNERS).map(row).collect();
    let heads = match map.bits {
        true => ["who", "of its RAM", "of references"],
        false => ["who", "of its memory", "of touches"],
    };
    if rows.is_empty() {
        return String::new();
    }
    format!("<h3>Who owns the memory</h3>{}", table(&heads, &rows))
}

/// Begin, middle and end of the time axis.
fn times(map: &Touched) -> [String; 3] {
    match map.bits {
        true => ["0 s".into(), human_seconds(map.seconds / 2.0), human_seconds(map.seconds)],
        false => ["first touch", "half of them", "last touch"].map(String::from),
    }
}

/// The map as a picture of its own.
pub fn picture(heat: &Heat) -> String {
    let (rows, columns, cells) = (heat.rows, heat.columns, touched(heat, false));
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
        "<p class=\"ends\"><span>{}</span><span>touched: 0</span></p><svg class=\"set\" viewBox=\"0 0 {columns} 100\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory touched in each stretch of the run, on a scale \
         from 0 to the most\"><path class=\"read\" d=\"{bars}\">\
         <title>memory touched in each {columns}th of the run, from 0 to the most</title></path></svg>",
        human_size(maximum * PAGE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_piece_and_the_first_row_is_the_lowest() {
        let set = [[true, true, false], [false, false, true]];
        assert_eq!(super::cells(2, 3, |row, column| set[row][column]), "M0 1h2v1h-2zM2 0h1v1h-1z");
    }

    #[test]
    fn a_band_is_named_from_the_top_if_it_has_room_for_a_name() {
        let names: Vec<String> =
            [vec!["low"; 20], vec!["thin"], vec!["high"; 19]].concat().into_iter().map(String::from).collect();
        assert_eq!(named(&names), [(19, "high"), (1, ""), (20, "low")]);
    }

    #[test]
    fn the_time_of_a_recording_is_said_beside_the_program_s() {
        let recorded = Touched { seconds: 5.02, ..Touched::default() };
        let bits = Touched { bits: true, ..recorded.clone() };
        for (map, alone, words) in [
            (&recorded, 2.81, "recorded in 5.02 s; the program alone takes 2.81 s."),
            (&bits, 2.81, "as it was watched, 5.02 s; the program alone takes 2.81 s."),
            (&bits, 5.02, "time, 5.02 s in all."),
        ] {
            assert!(axis(map, alone).ends_with(words), "{}", axis(map, alone));
        }
        // Touches have an order, not a time.
        assert!(times(&recorded).iter().all(|tick| !tick.ends_with(" s")) && times(&bits)[2] == "5.02 s");
    }
}
