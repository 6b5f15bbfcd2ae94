//! SAP: its stress test (table 1, section 5.3).
//!
//! The paper names neither the processor nor the disk (an emulated machine), and gives fault counts only as pictures.
//! So changes are compared.

use std::path::Path;

use coldframe_experiment::ExperimentError;
use rayon::prelude::*;

use crate::figure::{Claim, Origin, Paper, Row};
use crate::golden::Golden;

#[cfg(test)]
mod claims;
mod experiments;

use experiments::{recorded, stress, Faults, Machine, KERNELS};

pub const PAPER: Paper = Paper {
    name: "sap",
    rows,
    plots: |_| Ok(Vec::new()),
    claims: CLAIMS,
    readme: ["SAP", "2008", "load the next task's pages before the switch"],
    snapshot: include_str!("../../tests/snapshots/papers__sap.snap"),
};

const CLAIMS: &[Claim] = &[
    ("six recorded programs' major faults, from 75 %", "table 1", "recorded, CFS, prefetch-75: major faults"),
    ("six recorded programs' major faults, from 50 %", "table 1", "recorded, CFS, prefetch-50: major faults"),
    ("stress under CFS, tasks sleep: majors, from 50 %", "table 1", "stress, CFS, prefetch-50: major faults"),
    ("stress, workers in turns: major faults, from 75 %", "table 1", "stress, turns, prefetch-75: major faults"),
    ("stress, workers in turns: major faults, from 50 %", "table 1", "stress, turns, prefetch-50: major faults"),
    (
        "harm: majors of programs in 15 %, CFS, from 50 %",
        "section 3.4",
        "recorded, 15 % of RAM, cfs, prefetch-50: harm",
    ),
    ("harm: the same under EEVDF", "section 3.4", "recorded, 15 % of RAM, eevdf, prefetch-50: harm"),
];

/// The six printed figures of the experiment that two numbers were fitted with.
const FITTED: Origin = Origin::Fitted("5,000 frames of 32 MB and 5 loads a touch", 6);

const TURNS_NOTE: &str =
    "stress without --vm-keep, workers in turns; with first touches and major faults alone, +72 % from 64 to 32 MB \
     excludes table 1's changes of all \
     faults, and 29 % is 1.72 x 0.75, prefetch-75's change (a misprint, likely)";

const CFS_NOTE: &str = "the paper's machine: CFS of 2.6.24, and a worker that faults sleeps; the two numbers are \
                        those fitted with workers in turns";

const RECORDED_NOTE: &str = "six recorded programs (two each of chess, render, bzip2) in a quarter of their pages, \
                             the sum over five sizes of RAM around \
                             it; CFS, tasks sleep; nothing is fitted";

const HARM_NOTE: &str = "\"will not hurt\" (section 6): no more major faults of all tasks than without prefetching; \
                         the sum over five sizes of RAM";

fn golden() -> Golden {
    Golden::read(include_str!("golden.toml"))
}

/// The change in percent; from 0 to 0 is no change.
fn change(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / from.max(1) as f64 * 100.0
}

/// Table 1 and the text's claims about less RAM, on both machines; table 1 and "do no harm" on recorded programs.
/// Figures 6 and 7 are pictures without numbers.
fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    progress("stress");
    let (g, mut rows) = (golden(), Vec::new());
    stress_rows(&g, Machine::Turns, "stress, turns", TURNS_NOTE, &mut rows)?;
    stress_rows(&g, Machine::Cfs, "stress, CFS", CFS_NOTE, &mut rows)?;
    progress("recorded programs");
    let faults = recorded(traces, 25.0, "cfs")?;
    table1_rows(&g, "recorded, CFS", &faults, (Origin::Predicted, RECORDED_NOTE), &mut rows);
    for scheduler in ["cfs", "eevdf"] {
        let faults = recorded(traces, 15.0, scheduler)?;
        for (with, (kernel, _)) in faults[1..].iter().zip(&KERNELS[1..]) {
            let row = format!("recorded, 15 % of RAM, {scheduler}, {kernel}: harm");
            let row = Row::new("section 3.4", row, 0.0, change(faults[0].0, with.0), "%", Origin::Predicted);
            rows.push(row.stated(-100.0..=0.0).note(HARM_NOTE));
        }
    }
    Ok(rows)
}

/// The changes of major and of all faults by prefetching, from those without it.
fn table1_rows(g: &Golden, name: &str, faults: &[Faults], (origin, note): (Origin, &str), rows: &mut Vec<Row>) {
    for (i, printed) in ["prefetch_75", "prefetch_50"].into_iter().enumerate() {
        let [major, total] = g.numbers(&format!("table1_change_percent.{printed}"));
        let (none, with, kernel) = (faults[0], faults[i + 1], KERNELS[i + 1].0);
        for (what, paper, ours) in [("major", major, change(none.0, with.0)), ("all", total, change(none.1, with.1))] {
            let row = format!("{name}, {kernel}: {what} faults");
            rows.push(Row::new("table 1", row, paper, ours, "%", origin).note(note));
        }
    }
}

fn stress_rows(g: &Golden, by: Machine, name: &str, note: &str, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let rams = g.numbers::<2>("ram_mb");
    let runs: Vec<_> = rams.into_iter().flat_map(|ram| KERNELS.map(|kernel| (ram, kernel))).collect();
    let outcomes = runs.into_par_iter().map(|(ram, kernel)| {
        let result = stress(ram as u64, kernel, by)?;
        Ok((result.major(), result.faults()))
    });
    let outcomes = outcomes.collect::<Result<Vec<Faults>, ExperimentError>>()?;
    let (at_32, at_64) = outcomes.split_at(KERNELS.len());
    table1_rows(g, name, at_32, (FITTED, note), rows);
    for (i, printed) in [(0, "vanilla"), (2, "prefetch_50")] {
        let paper = g.number(&format!("total_faults_64MB_to_32MB_percent.{printed}"));
        let row = format!("{name}, {}: all faults, 64 to 32 MB", KERNELS[i].0);
        let ours = change(at_64[i].1, at_32[i].1);
        rows.push(Row::new("section 5.3", row, paper, ours, "%", FITTED).note(note));
    }
    let row = format!("{name}, {}: major faults", KERNELS[3].0);
    let at_once = change(at_32[0].0, at_32[3].0);
    rows.push(Row::new("section 5.3", row, None, at_once, "%", Origin::NotPrinted).note(note));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_numbers_are_those_of_the_paper() {
        let printed = ["page_bytes", "list_max"].map(|name| golden().number(name) as usize);
        let page = coldframe_experiment::systems::sap::PAGE.0 as usize;
        assert_eq!(printed, [page, coldframe_core::prefetch::LIST_MAX]);
    }
}
