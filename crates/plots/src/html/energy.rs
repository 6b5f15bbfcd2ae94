//! The energy of paging as a waterfall: each term begins where the one before ends.

use std::fmt::Write;

use crate::html::run::Run;
use coldframe_show::html::words::{energy, folded, note};
use coldframe_show::plot::{escape, COLOURS};

const SHOWN: usize = 12;
/// The names of the terms: in the equations, and for readers.
const NAMES: [(&str, &str); 10] = [
    ("page_load", "page loads"),
    ("page_move", "page moves"),
    ("page_move_dual", "page moves beside a load"),
    ("main_read", "reads from main memory"),
    ("xip_read", "reads in place"),
    ("main_write", "writes to main memory"),
    ("load", "array to buffer"),
    ("transfer", "over the bus"),
    ("program", "programs"),
    ("erase", "erases"),
];

/// Terms in the order of their names above; any other after them.
fn terms(run: &Run<'_>) -> Vec<(String, u64)> {
    let named = |(key, pj): (&String, &u64)| {
        let place = NAMES.iter().position(|(name, _)| name == key);
        let name = place.map_or_else(|| key.replace('_', " "), |place| NAMES[place].1.to_string());
        (place.unwrap_or(NAMES.len()), name, *pj)
    };
    let all = run.result.energy_terms().into_iter().flatten();
    let mut terms: Vec<(usize, String, u64)> = all.filter(|(_, pj)| **pj > 0).map(named).collect();
    terms.sort();
    terms.into_iter().map(|(_, name, pj)| (name, pj)).collect()
}

/// The section; empty where no sheet has energies.
pub fn energies(runs: &[Run<'_>]) -> String {
    let all: Vec<_> = runs.iter().map(|run| (run, terms(run))).filter(|(_, terms)| !terms.is_empty()).collect();
    let sum = |terms: &[(String, u64)]| terms.iter().map(|(_, pj)| *pj).sum::<u64>();
    let most = all.iter().map(|(_, terms)| sum(terms)).max().unwrap_or(1).max(1);
    let blocks: String = all.iter().take(SHOWN).map(|(run, terms)| waterfall(run, terms, sum(terms), most)).collect();
    match (blocks.is_empty(), all.len() > SHOWN) {
        (true, _) => blocks,
        (_, false) => folded("Energy of paging", &blocks),
        (_, true) => folded("Energy of paging", &(blocks + &note(&format!("{SHOWN} of {} runs.", all.len())))),
    }
}

fn waterfall(run: &Run<'_>, terms: &[(String, u64)], sum: u64, most: u64) -> String {
    let share = |pj: u64| 100.0 * pj as f64 / most as f64;
    let (mut rows, mut before) = (String::new(), 0);
    for (i, (name, pj)) in terms.iter().enumerate() {
        let _ = write!(
            rows,
            "<div class=\"term\"><span>{}</span><div class=\"bar\"><i style=\"margin-left:{:.2}%;width:{:.2}%;background:{}\"></i></div>\
             <span>{}</span></div>",
            escape(name),
            share(before),
            share(*pj),
            COLOURS[i % COLOURS.len()],
            energy(*pj)
        );
        before += pj;
    }
    format!("<div class=\"strip\"{}><b>{}</b> {}{rows}</div>", run.at(), escape(&run.title()), energy(sum))
}
