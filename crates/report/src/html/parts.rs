//! The effects of the papers' parts on the trace, from `coldframe papers --on`. They interest a designer of machines,
//! so the section is folded.

use crate::html::words::{folded, list, note, table, Row};
use crate::parts::{show, Study};

/// Each part alone and the best set; empty without a study.
pub fn parts(studies: &[Study]) -> String {
    studies.iter().map(one).collect()
}

fn one(study: &Study) -> String {
    let heads = ["part", "fault time", "its change", "energy", "energy's change", "longer without it"];
    let rows: Vec<Row> = show::rows(study).into_iter().map(|cells| (String::new(), cells.map(dash).to_vec())).collect();
    let said =
        "Fault time: all that the tasks do not spend on their references. Energy: of the devices that hold the pages.";
    let about = note(&show::facts(study)) + &table(&heads, &rows) + &list(show::words(study).iter()) + &note(said);
    folded("Which part of which paper helps", &about)
}

/// The table leaves out a column of dashes.
fn dash(cell: String) -> String {
    if cell.is_empty() {
        "-".into()
    } else {
        cell
    }
}
