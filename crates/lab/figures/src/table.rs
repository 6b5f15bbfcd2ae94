//! The papers' printed figures beside ours, as words, tables and Markdown.

use coldframe_show::table::styled;
use coldframe_show::text::{page, wrap};

use crate::figure::{number, percent, tally, Row};

const HEADINGS: [&str; 10] =
    ["item", "", "paper", "ours", "unit", "origin", "distance", "rounding", "reached", "trivial rule"];

fn cells(row: &Row) -> Vec<String> {
    let dash = || "-".to_string();
    let rounding = row.rounding_percent.map(|percent| format!("± {percent:.*} %", if percent < 0.1 { 3 } else { 1 }));
    let trivial = row.trivial.as_ref().map(|trivial| format!("{} {}", trivial.rule, percent(trivial.distance_percent)));
    vec![
        row.item.clone(),
        row.row.clone(),
        row.paper_value.map_or_else(dash, number),
        number(row.our_value),
        row.unit.to_string(),
        row.origin.word().into(),
        row.distance(),
        rounding.unwrap_or_else(dash),
        row.reached.map_or("-", |reached| if reached { "yes" } else { "no" }).into(),
        trivial.unwrap_or_else(dash),
    ]
}

/// Columns of the page.
fn columns() -> usize {
    page().unwrap_or(usize::MAX)
}

/// Columns below which a table with every value would not fit.
const WIDE: usize = 140;

/// Every row, and the notes below.
pub fn table(rows: &[Row]) -> String {
    let table = match columns() {
        WIDE.. => styled(&HEADINGS, rows.iter().map(cells).collect(), 2).to_string() + "\n",
        _ => lines(rows.iter().map(|row| (format!("{}: {}", row.item, row.row), row))),
    };
    let notes: String = notes(rows).iter().map(|note| format!("{note}.\n")).collect();
    format!("{table}{}.\n{notes}", tally(rows))
}

/// A line for each row, under its name. Without 78 columns, the numbers stand below the name.
fn lines<'a>(named: impl Iterator<Item = (String, &'a Row)>) -> String {
    let room = columns().min(78).saturating_sub(44);
    let room = if room < 24 { 0 } else { room };
    let line = |name: &str, [paper, ours, origin, distance]: [&str; 4]| {
        let mut names = wrap("", name, 2, if room > 0 { room } else { columns() });
        let last = if room > 0 { names.pop().unwrap_or_default() } else { String::new() };
        names.push(format!("{last:<room$} {paper:>9} {ours:>9}  {origin:<13} {distance:>8}"));
        names.join("\n") + "\n"
    };
    let row = |(name, row): (String, &Row)| {
        let paper = row.paper_value.map_or_else(|| "-".into(), number);
        let name = if row.unit.is_empty() { name } else { format!("{name}, {}", row.unit) };
        line(&name, [&paper, &number(row.our_value), row.origin.word(), &row.distance()])
    };
    let head = line("", ["paper", "ours", "origin", "distance"]);
    head.trim_start_matches('\n').to_string() + &named.map(row).collect::<String>()
}

/// A page for each paper: its main claims, how our numbers came about, and how far they are.
pub fn headlines(rows: &[Row]) -> String {
    let pages = rows.chunk_by(|a, b| a.paper == b.paper).map(headline_page);
    pages.collect::<Vec<_>>().join("\n")
}

fn headline_page(rows: &[Row]) -> String {
    let claimed: Vec<_> = rows.iter().filter_map(|row| Some((row.claim?, row))).collect();
    let mut out = format!("{}\n", rows[0].paper) + &lines(claimed.iter().map(|(claim, row)| (claim.to_string(), *row)));
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (claim, row) in &claimed {
        if let Some(trivial) = &row.trivial {
            out += &format!("{claim}: {} does as well, {}.\n", trivial.rule, percent(trivial.distance_percent));
        }
        // The first clause is the reason; counts follow.
        let why = row.note.split("; ").next().unwrap_or_default();
        match reasons.iter_mut().find(|one| one.0 == why) {
            _ if row.reached != Some(false) => {}
            Some(one) => one.1.push(claim),
            None => reasons.push((why, vec![claim])),
        }
    }
    let lines = reasons.iter().map(|(why, claims)| format!("{}: {why}.\n", claims.join("; ")));
    let lines = lines.chain(fitted(rows).into_iter().map(|line| format!("{line}.\n")));
    out + &lines.collect::<String>() + &format!("{}; --all has the other rows, and why.\n", tally(rows))
}

/// The table and the notes for a page of Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let line = |cells: Vec<String>| {
        let escaped: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", escaped.join(" | "))
    };
    let head = line(HEADINGS.map(String::from).to_vec()) + "|---|---|--:|--:|---|---|--:|--:|---|---|\n";
    let body: String = rows.iter().map(|row| line(cells(row))).collect();
    let notes: String = notes(rows).iter().map(|note| format!("- {note}.\n")).collect();
    format!("{head}{body}\n{}.\n\n{notes}", tally(rows))
}

/// What was fitted, to how many figures, and what is carried over, once for each set of free numbers.
fn fitted(rows: &[Row]) -> Vec<String> {
    let mut sets = Vec::new();
    for row in rows {
        let word = if row.origin.word() == "carried over" { "Carried over" } else { "Fitted" };
        let set = row.fitted.as_ref().map(|set| format!("{word}: {set}"));
        sets.extend(set.filter(|set| !sets.contains(set)));
    }
    sets
}

/// What was fitted, and the notes of rows. Rows of one item with the same note are joined, in the order of their first.
fn notes(rows: &[Row]) -> Vec<String> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        match groups.iter_mut().find(|group| group[0].item == row.item && group[0].note == row.note) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let note = |group: Vec<&Row>| {
        let (first, more) = (group[0], group.len() - 1);
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}, {}{others}: {}", first.item, first.row, first.note)
    };
    fitted(rows).into_iter().chain(groups.into_iter().map(note)).collect()
}
