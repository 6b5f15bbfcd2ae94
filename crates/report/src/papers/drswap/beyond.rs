//! What the paper leaves for later: how long the NVM lives, and how often a page may be read in its slot before a copy is cheaper.

use coldframe_core::{Bytes, Ps};
use coldframe_device::flash::{life_years, wear};
use coldframe_device::sheet::{self, electric::BusMemory};
use coldframe_device::swap_energy::{bus_energy, bus_times, SwapCounts};
use coldframe_systems::drswap::{PAGE, UP_TIME};

use super::{noted, row, Grid, NVM, NVM_DR};
use crate::error::ReportError;
use crate::papers::{Reached, Row};

/// A line of the processor's caches (2.3 GHz Qualcomm 8974, Krait 400: 64 bytes in its second level, which is what memory sees).
const LINE: Bytes = Bytes(64);

/// Writes after which start-gap moves its gap, each move being one write more (Qureshi et al., MICRO 2009, section 4: psi = 100).
const GAP_WRITES: f64 = 100.0;

pub(super) fn rows(grid: &Grid, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    endurance(grid, rows)?;
    threshold(rows)
}

/// Years until the most written slot has worn its lines out, in the category that writes most.
fn endurance(grid: &Grid, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let cycles = sheet::find("LPDDR2-PCM")?.cycles()?;
    let nanoseconds = UP_TIME.0 / 1_000;
    for (backing, name) in [(NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap")] {
        let worst = grid.column(0, backing).max_by_key(|o| o.result.counts.swap_outs).expect("there are categories");
        let worn = wear(&worst.slot_writes((128 << 20) / PAGE.0 as usize));
        let years = life_years(&worn, cycles, nanoseconds).unwrap_or(f64::INFINITY);
        let levelled = years * f64::from(worn.max) / (worn.mean * (1.0 + 1.0 / GAP_WRITES));
        for (how, ours) in [("slots in turn", years), ("start-gap, its limit", levelled)] {
            let of = row("endurance", format!("128 MB, {name}: {how}"), None, ours, "years", Reached::Shape);
            let note = format!(
                "worst category without a pause; {} writes to the most written slot, {:.2} on average, {cycles} writes a line",
                worn.max, worn.mean
            );
            rows.push(noted(of, &note));
        }
    }
    Ok(())
}

/// What one cache line and one page cost in a memory: time and energy in picojoules.
fn cost(m: &BusMemory, size: Bytes, writes: bool) -> (Ps, f64) {
    let counts = SwapCounts { swap_ins: u64::from(!writes), swap_outs: u64::from(writes), up_time: Ps::ZERO };
    (bus_times(m, size, &counts).active, bus_energy(m, size, Bytes(0), &counts).total().0 as f64)
}

/// Lines read in a slot after which copying the page to DRAM would have been cheaper: by energy and by time.
fn threshold(rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let (dram, pcm) = (sheet::find("LPDDR2-DRAM")?.bus_memory()?, sheet::find("LPDDR2-PCM")?.bus_memory()?);
    let ((line_t, line_e), (near_t, near_e)) = (cost(&pcm, LINE, false), cost(&dram, LINE, false));
    let ((page_t, page_e), (into_t, into_e)) = (cost(&pcm, PAGE, false), cost(&dram, PAGE, true));
    let by_energy = (page_e + into_e) / (line_e - near_e);
    let by_time = (page_t + into_t).0 as f64 / (line_t.0 - near_t.0) as f64;
    let note = "table II's cells: reading and writing the page, over what a line costs more in PCM than in DRAM, each line with an activation";
    for (how, ours) in [("energy", by_energy), ("time", by_time)] {
        let name = format!("a copy pays after so many lines read in the slot, by {how}");
        rows.push(noted(row("threshold", name, None, ours, "lines", Reached::Shape), note));
    }
    for lines in [16.0, 64.0, 256.0, 1024.0] {
        let (in_slot, copied) = (lines * line_e, page_e + into_e + lines * near_e);
        let name = format!("{lines} lines read: energy in the slot to that of a copy");
        rows.push(noted(row("threshold", name, None, in_slot / copied, "x", Reached::Shape), note));
    }
    Ok(())
}
