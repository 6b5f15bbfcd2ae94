//! Switching delay: table V by application, figure 8 by category, and section V.F.
//!
//! What an application does beside swapping is not ours to know. So table V's DRAM column is taken as given, and what the other backings
//! change is ours: their delay is the printed one of DRAM, and by how much more or less fault handling takes on them than on DRAM.

use coldframe_systems::drswap::golden::Golden;
use coldframe_systems::drswap::{CATEGORIES, SWAP_MIB};

use super::grid::Grid;
use super::{noted, row, within, DRAM, EMMC, NONE, NVM, NVM_DR};
use crate::papers::{Reached, Row};

/// Part of a delay within which it is reached.
const TOLERANCE: f64 = 0.05;

/// A column of table V and the backing that it is.
const COLUMNS: [(usize, usize, &str); 2] = [(1, NVM_DR, "DR.Swap"), (2, EMMC, "flash")];

pub(super) fn rows(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    figure_8(grid, golden, rows);
    improvement(grid, golden, rows);
    table_5(grid, golden, rows);
}

/// By how many milliseconds the switches back to an application take longer on a backing than on DRAM.
fn longer(grid: &Grid, category: usize, size: usize, backing: usize, app: usize) -> f64 {
    let delay = |backing| grid.at(category, size, backing).switch_delay_of(app as u32).0 as f64 / 1e9;
    delay(backing) - delay(DRAM)
}

/// Mean over a category's applications: printed and ours.
fn category(grid: &Grid, golden: &Golden, i: usize, size: usize, column: usize, backing: usize) -> (f64, f64) {
    let apps = &golden.table5_ms[CATEGORIES[i]];
    let ours = apps.iter().enumerate().map(|(n, app)| app.ms[size][0] + longer(grid, i, size, backing, n));
    let printed: f64 = apps.iter().map(|app| app.ms[size][column]).sum();
    (printed / apps.len() as f64, ours.sum::<f64>() / apps.len() as f64)
}

fn table_5(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    for (i, category) in CATEGORIES.into_iter().enumerate() {
        for (n, app) in golden.table5_ms[category].iter().enumerate() {
            for (size, mib) in SWAP_MIB.into_iter().enumerate() {
                for (column, backing, name) in COLUMNS {
                    let (paper, more) = (app.ms[size][column], longer(grid, i, size, backing, n));
                    let (ours, name) = (app.ms[size][0] + more, format!("{category}, {}, {mib} MB: {name}", app.app));
                    let of = row("table V", name, Some(paper), ours, "ms", within(ours, paper, TOLERANCE));
                    rows.push(noted(of, why(backing)));
                }
            }
        }
    }
}

/// The figure is the mean of table V's rows.
fn figure_8(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    for (size, mib) in SWAP_MIB.into_iter().enumerate() {
        for (i, name) in CATEGORIES.into_iter().enumerate() {
            for (column, backing, what) in COLUMNS {
                let (paper, ours) = category(grid, golden, i, size, column, backing);
                let name = format!("{mib} MB, {name}: {what}");
                let of = row("figure 8", name, Some(paper), ours, "ms", within(ours, paper, TOLERANCE));
                rows.push(noted(of, why(backing)));
            }
        }
        for (backing, name) in
            [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap"), (NONE, "no swap")]
        {
            let ours = grid.mean(size, backing, |o| o.switch_delay().0 as f64 / 1e9);
            let name = format!("{mib} MB, faults of a switch back: {name}");
            rows.push(noted(row("figure 8", name, None, ours, "ms", Reached::Shape), "pages of files included"));
        }
    }
}

/// Section V.F: about 10 % over flash.
fn improvement(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    let gain = |of: &dyn Fn(usize, usize, usize, usize) -> f64| {
        let each = (0..CATEGORIES.len()).flat_map(|i| (0..SWAP_MIB.len()).map(move |size| (i, size)));
        let gains: Vec<f64> = each.map(|(i, size)| 1.0 - of(i, size, 1, NVM_DR) / of(i, size, 2, EMMC)).collect();
        gains.iter().sum::<f64>() / gains.len() as f64 * 100.0
    };
    let ours = gain(&|i, size, column, backing| category(grid, golden, i, size, column, backing).1);
    let printed = gain(&|i, size, column, backing| category(grid, golden, i, size, column, backing).0);
    let paper = golden.results.switching_delay_improvement_over_flash_percent_about;
    let reached = if (paper / 2.0..paper * 2.0).contains(&ours) { Reached::Shape } else { Reached::No };
    let of = row("section V.F", "DR.Swap switches faster than flash, about".into(), Some(paper), ours, "%", reached);
    rows.push(noted(of, &format!("table V's own mean is {printed:.1} %; {FLASH_WHY}")));
}

fn why(backing: usize) -> &'static str {
    if backing == EMMC {
        FLASH_WHY
    } else {
        DR_WHY
    }
}

const FLASH_WHY: &str = "the paper's phone waits some 300 ms longer on flash than on NVM; were all of table IV's some 200 swap-ins a switch waited for, that is \
                         1.5 ms each, ten times what table II's port, table I's NAND and our assumed block layer take; and of ours \
                         many are touched later in the visit, when nobody waits for the switch";

const DR_WHY: &str = "ours differs from DRAM by milliseconds, which is what some hundred copies take; the paper's column differs from its own DRAM column \
                      by more, both ways, as measurements of one application do";
