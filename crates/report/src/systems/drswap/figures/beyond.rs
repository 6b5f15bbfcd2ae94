//! The paper's open questions, by arithmetic: the life of the NVM, and how often a page may be read in its slot
//! before a copy is cheaper.

use crate::systems::drswap::{BACKINGS, PAGE, UP_TIME};
use coldframe_core::Bytes;
use coldframe_device::flash::{life_years, wear};
use coldframe_device::sheet;
use coldframe_device::start_gap::levelled;

use super::grid::Grid;
use super::{noted, row, NVM, NVM_DR};
use crate::error::ReportError;
use crate::foreground::{cost, Area, LINE};
use crate::papers::{Reached, Row};

/// Writes after which start-gap moves its gap (Qureshi et al., MICRO 2009, section 4: psi = 100).
const GAP_WRITES: u32 = 100;

pub(super) fn rows(grid: &Grid, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    endurance(grid, rows)?;
    threshold(rows)
}

/// Years until the lines of the most written slot are worn out, in the category with the most writes.
fn endurance(grid: &Grid, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let cycles = sheet::find("LPDDR2-PCM")?.cycles()?;
    let nanoseconds = UP_TIME.0 / 1_000;
    for (backing, name) in [(NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap")] {
        let worst = grid.column(0, backing).max_by_key(|o| o.result.counts.swap_outs).expect("there are categories");
        let worn = wear(&worst.slot_writes((128 << 20) / PAGE.0 as usize));
        let years = life_years(&worn, cycles, nanoseconds).unwrap_or(f64::INFINITY);
        let with_gap = years * f64::from(worn.max) / levelled(worn.mean, GAP_WRITES);
        for (how, ours) in [("start-gap off", years), ("start-gap on", with_gap)] {
            let of = row("endurance", format!("128 MB, {name}: {how}"), None, ours, "years", Reached::NoClaim);
            let note = format!(
                "worst category without a pause; {} writes to the most written slot, {:.2} on average, {cycles} writes a line",
                worn.max, worn.mean
            );
            rows.push(noted(of, &note));
        }
    }
    Ok(())
}

const THRESHOLD_NOTE: &str =
    "table II's cells: reading and writing the page, over what a line costs more in PCM than in DRAM, each line with an activation";

/// Lines read in a slot after which copying the page to DRAM would have been cheaper: by energy and by time.
fn threshold(rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let area = Area::of(&BACKINGS[NVM_DR], None, PAGE)?;
    let even = area.break_even()?.expect("PCM is dearer to read than DRAM");
    for (how, ours) in [("energy", even.energy), ("time", even.time)] {
        let name = format!("a copy pays after so many lines read in the slot, by {how}");
        rows.push(noted(row("threshold", name, None, ours, "lines", Reached::NoClaim), THRESHOLD_NOTE));
    }
    let (dram, pcm) = (sheet::find("LPDDR2-DRAM")?.bus_memory()?, sheet::find("LPDDR2-PCM")?.bus_memory()?);
    let energy = |memory, size: Bytes, writes| -> f64 { cost(memory, size, writes).1 };
    let copy = energy(&pcm, PAGE, false) + energy(&dram, PAGE, true);
    for lines in [16.0, 64.0, 256.0, 1024.0] {
        let (in_slot, copied) = (lines * energy(&pcm, LINE, false), copy + lines * energy(&dram, LINE, false));
        let name = format!("{lines} lines read: energy in the slot to that of a copy");
        rows.push(noted(row("threshold", name, None, in_slot / copied, "x", Reached::NoClaim), THRESHOLD_NOTE));
    }
    Ok(())
}
