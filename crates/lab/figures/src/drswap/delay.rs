//! Switching delay: table V and section V.F.
//!
//! An application's work besides swapping is unknown to us, and it makes up nearly all of table V's delays. So only the
//! effect of a backing is compared: the difference of its delay from the DRAM column in milliseconds, printed and ours.

use super::grid::Grid;
use super::{apps, Outcome, CATEGORIES, DRAM, EMMC, NVM_DR, SWAP_MIB};
use crate::figure::{Origin, Row};
use crate::golden::Golden;

/// Milliseconds of a switch back to an application, in the mean.
fn switch_delay((result, _): &Outcome, app: usize) -> f64 {
    result.foreground.as_ref().map_or(0.0, |turns| turns.switch_delay(Some(app)).0 as f64 / 1e9)
}

/// A column of table V and its backing.
type Column = (usize, usize);

const DR_SWAP: Column = (1, NVM_DR);
const FLASH: Column = (2, EMMC);

/// Table V's means of flash and section V.F. DR.Swap's column cannot be compared.
pub(super) fn rows(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    let categories = || 0..CATEGORIES.len();
    let mean = |of: &dyn Fn(usize) -> f64| categories().map(of).sum::<f64>() / CATEGORIES.len() as f64;
    for (size, mib) in SWAP_MIB.into_iter().enumerate() {
        let [paper, ours] = [0, 1].map(|i: usize| mean(&|category| beyond(grid, golden, category, size, FLASH)[i]));
        let row = format!("{mib} MB: mean of flash beyond DRAM");
        let origin = if size == 0 { Origin::Fitted("time of a page-out", 1) } else { Origin::Predicted };
        rows.push(Row::new("table V", row, paper.round(), ours, "ms", origin).note(FLASH_WHY));
    }
    let all = || categories().flat_map(|category| (0..SWAP_MIB.len()).map(move |size| (category, size)));
    let gain = |i: usize| {
        let delay = |category: usize, size: usize, column| {
            let on_dram: f64 = apps(golden, CATEGORIES[category]).iter().map(|ms| ms[size][0]).sum::<f64>() / 5.0;
            on_dram + beyond(grid, golden, category, size, column)[i]
        };
        let gains = all().map(|(c, size)| 1.0 - delay(c, size, DR_SWAP) / delay(c, size, FLASH));
        gains.sum::<f64>() / all().count() as f64 * 100.0
    };
    let paper = golden.number("results.switching_delay_improvement_over_flash_percent_about");
    let row =
        Row::new("section V.F", "DR.Swap switches faster than flash, about", paper, gain(1), "%", Origin::Predicted);
    rows.push(row.note(format!("{FLASH_WHY}; table V's own mean is {:.1} %", gain(0))));
}

/// The milliseconds by which switches back to a category's applications take longer on a backing than on DRAM, in the
/// mean: printed and ours.
fn beyond(grid: &Grid, golden: &Golden, category: usize, size: usize, (column, backing): Column) -> [f64; 2] {
    let apps = apps(golden, CATEGORIES[category]);
    let printed: f64 = apps.iter().map(|ms| ms[size][column] - ms[size][0]).sum();
    let delay = |app: usize, backing| switch_delay(grid.at(category, size, backing), app);
    let ours: f64 = (0..apps.len()).map(|app| delay(app, backing) - delay(app, DRAM)).sum();
    [printed, ours].map(|sum| sum / apps.len() as f64)
}

const FLASH_WHY: &str = "the paper's value is the mean over table V's cells; a fault that needs a frame waits for \
                         the page-out to the card \
                         (`machine.page_out_us` of the phone's file), as long as a card of that time takes for a \
                         random 4 KiB write";
