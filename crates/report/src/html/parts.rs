//! The effects of the papers' parts on the trace, from `coldframe papers --on`. They interest a designer of machines,
//! so the section is folded.

use std::fmt::Write;

use crate::html::words::{folded, list, note, table, Row};
use crate::parts::{show, Study};
use crate::plot::escape;

/// Each part alone and the best set; empty without a study.
pub fn parts(studies: &[Study]) -> String {
    studies.iter().map(one).collect()
}

fn one(study: &Study) -> String {
    let heads = ["part", "fault time", "its change", "energy", "energy's change", "longer without it"];
    let rows: Vec<Row> = show::rows(study).into_iter().map(|cells| (String::new(), cells.map(dash).to_vec())).collect();
    let said =
        "Fault time: all that the tasks do not spend on their references. Energy: of the devices that hold the pages.";
    let about = note(&show::facts(study))
        + &bars(study)
        + &table(&heads, &rows)
        + &list(show::words(study).iter())
        + &note(said);
    folded("Which part of which paper helps", &about)
}

/// A bar for each row of the table. Its length is the fault time; a line marks that of no part.
fn bars(study: &Study) -> String {
    let (shown, rows) = (show::shown(study), show::rows(study));
    let most = shown.iter().map(|one| one.fault_time_ps).max().unwrap_or(0).max(1);
    let length = |ps: u64| 100.0 * ps as f64 / most as f64;
    let mut lanes = String::new();
    for (one, [name, time, change, ..]) in shown.iter().zip(&rows) {
        let (name, none) = (escape(name), if one.parts.is_empty() { " class=\"none\"" } else { "" });
        let _ = write!(
            lanes,
            "<div title=\"{name}: {time} ({change})\"><span>{name}</span><span class=\"track\"><i{none} style=\"width:{:.1}%\"></i></span>\
             <b>{time}</b></div>",
            length(one.fault_time_ps)
        );
    }
    let texts: Vec<String> = rows.iter().map(|[name, time, ..]| format!("{name} {time}")).collect();
    format!(
        "<figure class=\"lanes\" role=\"img\" aria-label=\"Fault time: {}\" style=\"--none:{:.1}%\">{lanes}</figure>",
        escape(&texts.join(", ")),
        length(study.none().fault_time_ps)
    )
}

/// The table leaves out a column of dashes.
fn dash(cell: String) -> String {
    if cell.is_empty() {
        "-".into()
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Combination;

    #[test]
    fn the_longest_bar_is_as_wide_as_its_track_and_a_line_marks_no_part() {
        let one = |parts: &[&str], fault_time_ps| Combination {
            parts: parts.iter().map(ToString::to_string).collect(),
            fault_time_ps,
            fault_times_ps: Vec::new(),
            time_ps: fault_time_ps,
            energy_pj: None,
            energy_terms_pj: Default::default(),
            device_reads: 0,
            device_writes: 0,
            dirty_evictions: 0,
            config: serde_json::Value::Null,
        };
        let study = Study {
            schema_version: 1,
            kind: String::new(),
            version: String::new(),
            trace: "t".into(),
            sha256: String::new(),
            tasks: 1,
            pages: 1,
            written: 1,
            page_bytes: 4096,
            ram_bytes: 4096,
            frames: vec![1],
            device: "d".into(),
            no_energy: None,
            combinations: vec![one(&[], 800_000_000), one(&["swl"], 400_000_000), one(&["lobi"], 1_600_000_000)],
            excluded: Vec::new(),
        };
        let page = bars(&study);
        let widths: Vec<&str> = page.match_indices("width:").map(|(at, _)| &page[at + 6..at + 9]).collect();
        assert_eq!(widths, ["25.", "50.", "100"], "the least fault time first: {page}");
        assert!(page.contains("--none:50.0%") && page.contains("<i class=\"none\" style=\"width:50.0%\">"), "{page}");
        assert!(page.contains("aria-label=\"Fault time: "), "{page}");
    }
}
