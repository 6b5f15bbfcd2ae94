//! Switching delay: table V by application, figure 8 by category, and section V.F.
//!
//! An application's work besides swapping is unknown to us, and it makes up nearly all of table V's delays. So only
//! the effect of a backing is compared: the difference of its delay from the DRAM column in milliseconds, printed and
//! ours.

use super::grid::Grid;
use super::{apps, table4, CATEGORIES, DRAM, EMMC, NVM_DR, SWAP_MIB};
use crate::figure::{Reached, Row};
use crate::golden::Golden;

/// A row is reached within this part of the printed difference.
const TOLERANCE: f64 = 0.25;

/// A column of table V and its backing.
const COLUMNS: [(usize, usize, &str); 2] = [(1, NVM_DR, "DR.Swap"), (2, EMMC, "flash")];

pub(super) fn rows(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    means(golden, rows);
    cells(grid, golden, rows);
    figure_8(grid, golden, rows);
    improvement(grid, golden, rows);
}

/// The extra milliseconds of switches back to an application on a backing, compared with DRAM.
fn longer(grid: &Grid, category: usize, size: usize, backing: usize, app: usize) -> f64 {
    let delay = |backing| grid.at(category, size, backing).switch_delay_of(app as u32).0 as f64 / 1e9;
    delay(backing) - delay(DRAM)
}

/// The difference of a category's mean delay from that on DRAM in milliseconds, printed and ours; and the printed
/// delay on DRAM.
fn category(grid: &Grid, golden: &Golden, i: usize, size: usize, column: usize, backing: usize) -> (f64, f64, f64) {
    let apps = apps(golden, CATEGORIES[i]);
    let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / apps.len() as f64;
    let printed = mean(&mut apps.iter().map(|ms| ms[size][column] - ms[size][0]));
    let ours = mean(&mut (0..apps.len()).map(|n| longer(grid, i, size, backing, n)));
    (printed, ours, mean(&mut apps.iter().map(|ms| ms[size][0])))
}

/// A random read of 4 KiB on that phone's card, in milliseconds: 10.06 MB/s (AndroBench, Android 4.4, Nexus 5).
const PAGE_IN_MS: f64 = 0.41;

/// A page-out that frees the frame of a swap-in, during the switch. Fitted to table V at 128 MB. A sequential write of
/// 4 KiB on that card takes 0.27 ms, a random one 5.46 ms.
const PAGE_OUT_MS: f64 = 1.14;

/// Switches back of a category: five applications, three rounds (section V.B).
const SWITCHES: f64 = 15.0;

/// Table V's means from table IV's averages: a swap-in at a switch waits for its read and for a page-out.
fn means(golden: &Golden, rows: &mut Vec<Row>) {
    for (size, mib) in SWAP_MIB.into_iter().enumerate() {
        let paper = printed_mean(golden, size, 2);
        let a_switch = table4(golden, "average", mib)[0] / SWITCHES;
        for (how, each, note) in [
            (
                "read and page-out",
                PAGE_IN_MS + PAGE_OUT_MS,
                if mib == SWAP_MIB[0] { MEANS_FITTED } else { MEANS_PREDICTED },
            ),
            ("read and sequential write, nothing fitted", PAGE_IN_MS + 0.27, MEANS_UNFITTED),
        ] {
            let name =
                format!("{mib} MB: flash beyond DRAM, {how} for each of table IV's {a_switch:.0} swap-ins a switch");
            let ours = a_switch * each;
            let reached = Reached::within(paper, ours, TOLERANCE);
            rows.push(Row::new("table V, means", name, paper, ours, "ms", reached).noted(note));
        }
    }
}

/// The difference of a column of table V from DRAM's, mean of all applications.
fn printed_mean(golden: &Golden, size: usize, column: usize) -> f64 {
    let all: Vec<_> = CATEGORIES.iter().flat_map(|category| apps(golden, category)).collect();
    all.iter().map(|ms| ms[size][column] - ms[size][0]).sum::<f64>() / all.len() as f64
}

const MEANS_FITTED: &str = "1.14 ms a page-out is fitted to this one number; the read is as measured on that phone";

const MEANS_PREDICTED: &str = "predicted with the page-out fitted at 128 MB";

const MEANS_UNFITTED: &str =
    "a sequential write is what the card can do at best; the phone's page-outs took some 1.1 ms each";

/// The number of single cells of table V that are reached, and the cells that are impossible.
fn cells(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    for (column, backing, name) in COLUMNS {
        let (mut reached, mut all, mut negative) = (0, 0, 0);
        for (i, category) in CATEGORIES.into_iter().enumerate() {
            for (n, ms) in apps(golden, category).iter().enumerate() {
                for (size, ms) in ms.iter().enumerate() {
                    let paper = ms[column] - ms[0];
                    let ours = longer(grid, i, size, backing, n);
                    all += 1;
                    negative += usize::from(paper < 0.0);
                    reached += usize::from(Reached::within(paper, ours, TOLERANCE) == Reached::Yes);
                }
            }
        }
        let means: Vec<String> =
            (0..SWAP_MIB.len()).map(|size| format!("{:+.0}", printed_mean(golden, size, column))).collect();
        let text = format!("{name} beyond DRAM: cells within a quarter, of {all}");
        let note = format!(
            "means {} ms by size; {negative} cells are below 0, and no cost of a page is; browsers have one DRAM and one flash column for 256 and \
             512 MB (copied); shopping swaps 765 pages in at 256 MB and 1,136 at 512 MB, which no larger area does (noise); so means are compared",
            means.join(", ")
        );
        let row = Row::new("table V", text, all as f64, reached as f64, "cells", Reached::NoClaim);
        rows.push(row.noted(note));
    }
}

/// The figure is the mean of table V's rows.
fn figure_8(grid: &Grid, golden: &Golden, rows: &mut Vec<Row>) {
    for (size, mib) in SWAP_MIB.into_iter().enumerate() {
        for (i, name) in CATEGORIES.into_iter().enumerate() {
            for (column, backing, what) in COLUMNS {
                let (paper, ours, _) = category(grid, golden, i, size, column, backing);
                let name = format!("{mib} MB, {name}: {what} beyond DRAM");
                let reached = Reached::within(paper, ours, TOLERANCE);
                rows.push(Row::new("figure 8", name, paper, ours, "ms", reached).noted(why(backing)));
            }
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
    let paper = golden.number("results.switching_delay_improvement_over_flash_percent_about");
    let reached = Reached::shape_if((paper / 2.0..paper * 2.0).contains(&ours));
    let row = Row::new("section V.F", "DR.Swap switches faster than flash, about", paper, ours, "%", reached);
    rows.push(row.noted(format!("{FLASH_WHY}; table V's own mean is {printed:.1} %")));
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
