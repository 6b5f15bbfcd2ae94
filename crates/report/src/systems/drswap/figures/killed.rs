//! Figure 2: ended tasks by DRAM, with and without 128 MB of swap on eMMC. The paper prints one pair, at 1 GB, without
//! its workload.

use crate::systems::drswap::golden::Golden;
use crate::systems::drswap::BACKINGS;
use coldframe_core::Bytes;

use super::{input, megabytes, noted, row, EMMC, NONE};
use crate::error::ReportError;
use crate::papers::{Reached, Row};
use crate::workload::Parameters;

/// Tenths of the fitted RAM.
const STEPS: [u64; 5] = [12, 10, 8, 6, 5];

pub(super) fn rows(golden: &Golden, p: &Parameters, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let (mut sums, mut fewer) = ((0.0, 0.0), true);
    for category in ["mix1", "mix2"] {
        let input = input(p, category)?;
        for step in STEPS {
            let ram = p.machine.ram_mb * step / 10;
            let mut ended = |backing: usize, name: &str| -> Result<f64, ReportError> {
                let done = input.run(&BACKINGS[backing], megabytes(ram), Bytes(128 << 20), &p.machine)?;
                let (kills, homeless) = (done.result.counts.kills as f64, done.result.counts.homeless);
                let name = format!("{category}, {ram} MB for applications: {name}");
                let of = row("figure 2", name, None, kills, "ended", Reached::NoClaim);
                let note = format!("the paper draws a phone's whole DRAM; {homeless} pages found no place at all");
                rows.push(noted(of, &note));
                Ok(kills)
            };
            let (none, swap) = (ended(NONE, "no swap")?, ended(EMMC, "128 MB of swap on eMMC")?);
            fewer &= swap <= none;
            sums = (sums.0 + none, sums.1 + swap);
        }
    }
    let killed = golden.results.killed_processes_1GB_memory;
    let paper = killed.flash_swap_128MB as f64 / killed.no_swap as f64 * 100.0;
    let ours = if sums.0 > 0.0 { sums.1 / sums.0 * 100.0 } else { 100.0 };
    let reached = if fewer && ours < 100.0 { Reached::Shape } else { Reached::No };
    let of = row("figure 2", "with swap, of those without".into(), Some(paper), ours, "%", reached);
    let note = "all sizes and both mixes together, at none of them more with swap; the paper's pair is at 1 GB, its workload is not printed";
    rows.push(noted(of, note));
    Ok(())
}
