//! SAP: its stress test (table 1, section 5.3).
//!
//! The paper names neither the processor nor the disk (an emulated machine), and gives fault counts only as pictures.
//! So changes are compared.

use std::path::Path;

use coldframe_experiment::ExperimentError;
use rayon::prelude::*;

use crate::figure::{Claim, Origin, Paper, Row, Wanted};
use crate::golden::Golden;

#[cfg(test)]
mod claims;
mod experiments;

use experiments::{game, recorded, stress, workers};
use experiments::{Faults, Kernel, Reading, CFS, FITTED_TOUCH, KERNELS, OURS, READINGS, TURNS};

pub const PAPER: Paper = Paper {
    name: "sap",
    rows,
    plots: |_| Ok(Vec::new()),
    claims: CLAIMS,
    readme: ["SAP", "2008", "load the next task's pages before the switch"],
    snapshot: include_str!("../../tests/snapshots/papers__sap.snap"),
};

const CLAIMS: &[Claim] = &[
    (
        "five recorded workers' majors, a list of 1,024, 75 %",
        "table 1",
        "five workers, oldest leaves, prefetch-75: major faults",
    ),
    (
        "the same, a list of 1,024 reads of 8 pages, 75 %",
        "table 1",
        "five workers, majors of 8, prefetch-75: major faults",
    ),
    (
        "the same, a list of 1,024 reads of 8 pages, 50 %",
        "table 1",
        "five workers, majors of 8, prefetch-50: major faults",
    ),
    ("latency of a game beside a memory load, 75 %", "table 2", "game, prefetch-75: average latency"),
    (
        "stress under CFS, a full list takes no more, 50 %",
        "table 1",
        "stress, CFS, full list, prefetch-50: major faults",
    ),
    ("stress, workers in turns: major faults, from 75 %", "table 1", "stress, turns, prefetch-75: major faults"),
    (
        "harm: majors of programs in 15 %, CFS, from 50 %",
        "section 3.4",
        "six small programs, 15 % of RAM, cfs, prefetch-50: harm",
    ),
    ("harm: the same under EEVDF", "section 3.4", "six small programs, 15 % of RAM, eevdf, prefetch-50: harm"),
];

/// The six printed figures of the experiment that two numbers were fitted with.
const FITTED: Origin = Origin::Fitted("5,000 frames of 32 MB and 5 loads a touch", 6);

const TURNS_NOTE: &str =
    "stress without --vm-keep, workers in turns; with first touches and major faults alone, +72 % from 64 to 32 MB \
     excludes table 1's changes of all \
     faults, and 29 % is 1.72 x 0.75, prefetch-75's change (a misprint, likely)";

/// Of them, none was fitted on this machine.
const CARRIED: Origin = Origin::CarriedOver("5,000 frames of 32 MB and 5 loads a touch, fitted to workers in turns");

const FITTED_TOUCHES: Origin = Origin::Fitted("1.7 loads a touch", 2);

const CFS_NOTE: &str = "the paper's machine: CFS of 2.6.24, and a worker that faults sleeps; a full list drops its \
                        oldest page, and a sweep of 2,048 pages over a list of 1,024 then never finds the next one \
                        listed";

const READING_NOTE: &str = "the paper's machine; the paper does not say what a full list does (sap.list), and has no \
                            guard (sap.guard); 5,000 frames and 5 loads a touch are carried over from workers in \
                            turns; with the guard the rows are the same";

const SENSITIVE_NOTE: &str = "the paper's machine, a list of 1,024 reads of 8 pages, no guard; one number, the time \
                              between touches, was chosen to give the two changes of major faults, and they \
                              change much with it";

const CHANCE_NOTE: &str = "chance: six recorded programs (two each of chess, render, bzip2) have some 45 pages each, \
                           so that no list fills. A quarter of their pages, \
                           the sum over five sizes of RAM around it; CFS, tasks sleep";

const WORKERS_NOTE: &str = "five recorded workers of 8 MB in 32 MB, CFS, tasks sleep; 1,000 instructions with each \
                            page, as in memload.parquet; nothing is fitted, the list's rule is a reading (sap.list)";

const IDLE_NOTE: &str = "five recorded workers that do nothing but touch pages: a touch takes a thousandth of its \
                         page's load, so that nobody uses up three quarters of a slice, and nothing is prefetched";

const TABLE2_NOTE: &str = "game.parquet, twelve times, beside memload.parquet, which goes through \
                           35 MB in 32 MB; the time from ready to running. The game's pages are in use and stay, so \
                           that there is nothing to prefetch; the paper's latency is that of a swap token, kswapd and \
                           page-out, which are not modelled";

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
fn rows(traces: &Path, wanted: Wanted, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    progress("stress");
    let (g, mut rows) = (golden(), Vec::new());
    let readings = READINGS.iter().map(|reading| (reading, (Origin::Reading, READING_NOTE)));
    let stressed = [(&TURNS, (FITTED, TURNS_NOTE)), (&CFS, (CARRIED, CFS_NOTE))].into_iter().chain(readings);
    for (reading, why) in stressed.chain([(&FITTED_TOUCH, (FITTED_TOUCHES, SENSITIVE_NOTE))]) {
        if wanted.has(|row| is_of(row, reading.name)) {
            stress_rows(&g, reading, why, &mut rows)?;
        }
    }
    progress("recorded workers");
    worker_rows(&g, traces, wanted, &mut rows)?;
    progress("a game");
    table2_rows(&g, traces, &mut rows)?;
    progress("recorded programs");
    let name = "six small programs, CFS";
    if wanted.has(|row| is_of(row, name)) {
        let faults = recorded(traces, 25.0, "cfs", OURS)?;
        table1_rows(&g, name, &faults, (Origin::Predicted, CHANCE_NOTE), &mut rows);
    }
    for (list, name) in [(OURS, ""), ((OURS.0, false), ", no guard")] {
        for scheduler in ["cfs", "eevdf"] {
            let of = format!("six small programs, 15 % of RAM, {scheduler}{name}");
            if !wanted.has(|row| is_of(row, &of)) {
                continue;
            }
            let faults = recorded(traces, 15.0, scheduler, list)?;
            for (with, (kernel, _)) in faults[1..].iter().zip(&KERNELS[1..]) {
                let row = format!("{of}, {kernel}: harm");
                let row = Row::new("section 3.4", row, 0.0, change(faults[0].0, with.0), "%", Origin::Predicted);
                rows.push(row.stated(-100.0..=0.0).note(HARM_NOTE));
            }
        }
    }
    Ok(rows)
}

/// Whether a row's name begins so, and goes on with a kernel's.
fn is_of(row: &str, name: &str) -> bool {
    let rest = row.strip_prefix(name).and_then(|rest| rest.strip_prefix(", "));
    rest.is_some_and(|rest| KERNELS.iter().any(|(kernel, _)| rest.starts_with(&format!("{kernel}:"))))
}

/// Table 1 on five recorded workers: by the list's rule, without the guard where a reading is the paper's.
fn worker_rows(g: &Golden, traces: &Path, wanted: Wanted, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let all = [
        ("oldest leaves", OURS, Origin::Predicted),
        ("full list", ("full", false), Origin::Reading),
        ("majors of 8", ("majors-of-8", false), Origin::Reading),
    ];
    let named = |list: &str| format!("five workers, {list}");
    let lists: Vec<_> = all.into_iter().filter(|(name, ..)| wanted.has(|row| is_of(row, &named(name)))).collect();
    let runs = workers(traces, "workers.parquet", &lists.iter().map(|(_, list, _)| *list).collect::<Vec<_>>())?;
    for ((name, _, origin), faults) in lists.into_iter().zip(runs) {
        table1_rows(g, &named(name), &faults, (origin, WORKERS_NOTE), rows);
    }
    let (name, list) = ("five workers that only touch, majors of 8", all[2].1);
    if wanted.has(|row| is_of(row, name)) {
        let faults = workers(traces, "workers-idle.parquet", &[list])?;
        table1_rows(g, name, &faults[0], (Origin::Reading, IDLE_NOTE), rows);
    }
    Ok(())
}

/// Table 2's latency and processor time of an interactive task.
fn table2_rows(g: &Golden, traces: &Path, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let ours = game(traces, OURS)?;
    let names = ["average_latency_ms", "latency_deviation_ms", "desired_cpu_percent"];
    let printed = names.map(|name| g.numbers::<3>(&format!("table2.{name}")));
    for (i, (kernel, _)) in KERNELS.iter().take(ours.len()).enumerate() {
        let columns = [("average latency", "ms"), ("its deviation", "ms"), ("of desired processor time", "%")];
        for (of, (what, unit)) in columns.into_iter().enumerate() {
            let row = format!("game, {kernel}: {what}");
            let row = Row::new("table 2", row, printed[of][i], ours[i][of], unit, Origin::Predicted).to(0.1);
            rows.push(row.note(TABLE2_NOTE));
        }
    }
    Ok(())
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

fn stress_rows(
    g: &Golden,
    of: &Reading,
    (origin, note): (Origin, &str),
    rows: &mut Vec<Row>,
) -> Result<(), ExperimentError> {
    let name = of.name;
    let faults = |ram: u64, kernels: &[Kernel]| {
        let outcomes = kernels.par_iter().map(|kernel| {
            let result = stress(ram, *kernel, of)?;
            Ok((result.major(), result.faults()))
        });
        outcomes.collect::<Result<Vec<Faults>, ExperimentError>>()
    };
    // A reading changes what prefetching does, and nothing without it or with enough RAM.
    let whole = matches!(origin, Origin::Fitted(_, 6) | Origin::CarriedOver(_));
    let [small, large] = g.numbers::<2>("ram_mb").map(|ram| ram as u64);
    let at_32 = faults(small, if whole { &KERNELS } else { &KERNELS[..3] })?;
    table1_rows(g, name, &at_32, (origin, note), rows);
    if !whole {
        return Ok(());
    }
    let at_64 = faults(large, &[KERNELS[0], KERNELS[2]])?;
    for (place, (i, printed)) in [(0, "vanilla"), (2, "prefetch_50")].into_iter().enumerate() {
        let paper = g.number(&format!("total_faults_64MB_to_32MB_percent.{printed}"));
        let row = format!("{name}, {}: all faults, 64 to 32 MB", KERNELS[i].0);
        let ours = change(at_64[place].1, at_32[i].1);
        rows.push(Row::new("section 5.3", row, paper, ours, "%", origin).note(note));
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
