//! Switching delay: table V by application, figure 8 by category, and section V.F.
//!
//! What an application does beside swapping is not ours to know, and it is nearly all of table V's delays. So what is compared is what a
//! backing changes: by how many milliseconds its delay differs from that of the DRAM column, printed and ours.

use crate::systems::drswap::golden::Golden;
use crate::systems::drswap::{CATEGORIES, SWAP_MIB};

use super::grid::Grid;
use super::{noted, row, within, DRAM, EMMC, NONE, NVM, NVM_DR};
use crate::papers::{Reached, Row};

/// Part of a printed difference within which it is reached.
const TOLERANCE: f64 = 0.25;

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

/// By how many milliseconds a category's mean delay differs from that on DRAM, printed and ours; and the printed one on DRAM.
fn category(grid: &Grid, golden: &Golden, i: usize, size: usize, column: usize, backing: usize) -> (f64, f64, f64) {
    let apps = &golden.table5_ms[CATEGORIES[i]];
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / apps.len() as f64;
    let printed = mean(&mut apps.iter().map(|app| app.ms[size][column] - app.ms[size][0]));
    let ours = mean(&mut (0..apps.len()).map(|n| longer(grid, i, size, backing, n)));
    (printed, ours, mean(&mut apps.iter().map(|app| app.ms[size][0])))
}

fn table_5(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    for (i, category) in CATEGORIES.into_iter().enumerate() {
        for (n, app) in golden.table5_ms[category].iter().enumerate() {
            for (size, mib) in SWAP_MIB.into_iter().enumerate() {
                for (column, backing, name) in COLUMNS {
                    let (paper, ours) = (app.ms[size][column] - app.ms[size][0], longer(grid, i, size, backing, n));
                    let name = format!("{category}, {}, {mib} MB: {name} beyond DRAM", app.app);
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
                let (paper, ours, _) = category(grid, golden, i, size, column, backing);
                let name = format!("{mib} MB, {name}: {what} beyond DRAM");
                let of = row("figure 8", name, Some(paper), ours, "ms", within(ours, paper, TOLERANCE));
                rows.push(noted(of, why(backing)));
            }
        }
        for (backing, name) in
            [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap"), (NONE, "no swap")]
        {
            let ours = grid.mean(size, backing, |o| o.switch_delay().0 as f64 / 1e9);
            let name = format!("{mib} MB, faults of a switch back: {name}");
            rows.push(noted(row("figure 8", name, None, ours, "ms", Reached::NoClaim), "pages of files included"));
        }
    }
}

/// Section V.F: about 10 % over flash.
fn improvement(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    let gain = |of: &dyn Fn((f64, f64, f64)) -> f64| {
        let each = (0..CATEGORIES.len()).flat_map(|i| (0..SWAP_MIB.len()).map(move |size| (i, size)));
        let delay = |i, size, (column, backing)| of(category(grid, golden, i, size, column, backing));
        let gains: Vec<f64> =
            each.map(|(i, size)| 1.0 - delay(i, size, (1, NVM_DR)) / delay(i, size, (2, EMMC))).collect();
        gains.iter().sum::<f64>() / gains.len() as f64 * 100.0
    };
    let ours = gain(&|(_, ours, on_dram)| on_dram + ours);
    let printed = gain(&|(printed, _, on_dram)| on_dram + printed);
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
