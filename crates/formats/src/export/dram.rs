//! Commands of a DRAM for DRAMPower, one bank cycle a request.
//!
//! A request opens its row, moves one burst of 64 bytes and closes the row. The next request begins when the row
//! cycle is over, or at its own time if that is later. This is an upper bound of the DRAM's cost of paging, not a
//! model of a memory controller.
//!
//! ```text
//! timestamp,CMD,bank,bank group,rank,row,column        cycles of 1.25 ns; the last line is timestamp,END
//! ```

use std::io::Write;

use super::{reads, Job};
use coldframe_store::error::TraceError;

/// Picoseconds of a cycle: DDR4-1600 has tCK = 1.25 ns (JESD79-4, table of speed bins).
const CYCLE_PS: u64 = 1250;
// Cycles of the 1600K bin of the same standard: tRCD 11, tRP 11, tRAS 28 (35 ns). A write needs CWL 9 + half a burst 4
// + tWR 12 (15 ns) before its row closes. Ramulator 2 has the same numbers (preset `DDR4_1600K`: nBL 4, nRCD 11, nRP
// 11, nRAS 28, nWR 12, nCWL 9).
const ACTIVATE_TO_COLUMN: u64 = 11;
const ACTIVATE_TO_PRECHARGE_READ: u64 = 28;
const ACTIVATE_TO_PRECHARGE_WRITE: u64 = 11 + 9 + 4 + 12;
const PRECHARGE: u64 = 11;

/// Address bits of a part with rows of 1 KiB x 8 chips: 3 within a word, 10 column, 2 bank, 2 bank group, 16 row.
const COLUMN_SHIFT: u32 = 3;
const BANK_SHIFT: u32 = 13;
const GROUP_SHIFT: u32 = 15;
const ROW_SHIFT: u32 = 17;

pub(super) fn write(job: &mut Job<'_>) -> Result<(), TraceError> {
    let mut now = 0;
    job.requests(&mut |out, row| {
        now = now.max(row.time.saturating_mul(1000) / CYCLE_PS);
        let bits = |shift: u32, mask: u64| row.address >> shift & mask;
        let (bank, group, line) = (bits(BANK_SHIFT, 3), bits(GROUP_SHIFT, 3), bits(ROW_SHIFT, 0xffff));
        let column = bits(COLUMN_SHIFT, 0x3f8);
        let place = format!("{bank},{group},0,{line},{column}");
        let (command, open) =
            if reads(&row) { ("RD", ACTIVATE_TO_PRECHARGE_READ) } else { ("WR", ACTIVATE_TO_PRECHARGE_WRITE) };
        writeln!(out, "{now},ACT,{place}")?;
        writeln!(out, "{},{command},{place}", now + ACTIVATE_TO_COLUMN)?;
        writeln!(out, "{},PRE,{place}", now + open)?;
        now += open + PRECHARGE;
        Ok(())
    })?;
    writeln!(job.out, "{now},END").map_err(|error| TraceError::io(job.path, "write", error))
}
