//! DR.Swap: swap areas in DRAM, eMMC and NVM, with and without direct read (TCAD 2016), beside ours.
//!
//! The paper's phone and its users are not available, but its equations are: results of these equations and table IV
//! are reached to the digit (`energy_rows`). The rest is predicted on a generated workload ([`crate::workload`]), and
//! also shown on recorded programs (`recorded`). Two parameters of the workload are fitted to two averages of table
//! IV; nothing else is fitted.

use std::collections::BTreeSet;
use std::path::Path;

use crate::systems::backing::Backing;
use crate::systems::drswap::golden::{self, Golden};
use crate::systems::drswap::{BACKINGS, PAGE, SWAP_MIB, UP_TIME};
use coldframe_core::Bytes;
use coldframe_device::swap_energy::SwapCounts;
use coldframe_trace::{Block, Provenance};

use crate::error::ReportError;
use crate::foreground::{energy, Area, Outcome, Session};
use crate::papers::{Reached, Row};
use crate::resolve::ForegroundPlan;
use crate::settings::Settings;
use crate::workload::{self, generate, MachineParameters, Parameters};

mod beyond;
#[cfg(test)]
mod claims;
mod delay;
mod density;
mod grid;
mod killed;
mod recorded;
mod variants;

use grid::Grid;

const DRAM: usize = 0;
const EMMC: usize = 1;
const NVM: usize = 2;
const NVM_DR: usize = 3;
const NONE: usize = 4;

/// All rows. `traces` is the folder with the shipped traces.
///
/// # Errors
/// A sheet lacks a number, or a trace cannot be read.
pub fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    let (golden, p) = (golden::read(), workload::shipped());
    let mut rows = energy_rows(&golden)?;
    let grid = Grid::new(&p, progress)?;
    grid.table_4(&golden, &mut rows);
    grid.figure_7(&golden, &mut rows)?;
    density::rows(&golden, &p, &mut rows);
    delay::rows(&grid, &golden, &mut rows);
    grid.figure_3(&mut rows);
    progress("figure 2");
    killed::rows(&golden, &p, &mut rows)?;
    progress("recorded programs");
    recorded::rows(traces, &p.machine, &mut rows)?;
    beyond::rows(&grid, &mut rows)?;
    progress("beyond the paper");
    variants::rows(&p, &mut rows)?;
    Ok(rows)
}

fn row(item: &str, row: String, paper: Option<f64>, ours: f64, unit: &'static str, reached: Reached) -> Row {
    Row {
        claim: None,
        paper: "drswap",
        item: item.into(),
        row,
        paper_value: paper,
        our_value: ours,
        unit,
        deviation_percent: paper.filter(|p| *p != 0.0).map(|p| (ours - p) / p.abs() * 100.0),
        reached,
        note: String::new(),
    }
}

fn noted(mut of: Row, note: &str) -> Row {
    of.note = note.into();
    of
}

fn within(ours: f64, paper: f64, tolerance: f64) -> Reached {
    if (ours / paper - 1.0).abs() <= tolerance {
        Reached::Yes
    } else {
        Reached::No
    }
}

/// Picojoules of an outcome as joules.
fn joules(o: &Outcome) -> f64 {
    o.energy.total().0 as f64 / 1e12
}

fn swap_ins(o: &Outcome) -> f64 {
    o.result.counts.swap_ins as f64
}

/// The equations' result for swap-ins on a backing in fifteen minutes. The swap-outs are not printed; twice the
/// swap-ins without direct read are assumed. Between one and three times, the joules differ by at most a third of a
/// percent.
fn by_equations(backing: usize, mib: u64, disabled: u64, swap_ins: u64) -> Result<f64, ReportError> {
    let counts = SwapCounts { swap_ins, swap_outs: 2 * disabled, up_time: UP_TIME };
    let area = Area::of(&BACKINGS[backing], None, Bytes(mib << 20))?;
    Ok(energy(&area, &counts).total().0 as f64 / 1e12)
}

/// The equations' results for table IV's averages.
fn energy_rows(golden: &Golden) -> Result<Vec<Row>, ReportError> {
    let mut rows = Vec::new();
    for mib in SWAP_MIB {
        let key = mib.to_string();
        let [disabled, enabled] = golden.table4_swap_ins["average"][&key];
        let (dram, pcm) = (by_equations(DRAM, mib, disabled, disabled)?, by_equations(NVM_DR, mib, disabled, enabled)?);
        let saving = (1.0 - pcm / dram) * 100.0;
        let derived = golden.derived.energy_J[&key];
        for (what, paper, ours, unit) in [
            ("DRAM-backed", derived.dram, dram, "J"),
            ("DR.Swap", derived.pcm, pcm, "J"),
            ("saved", golden.derived.saving_percent[&key], saving, "%"),
        ] {
            let name = format!("{mib} MB, table IV's swap-ins: {what}");
            let of = row("equations 1 to 14", name, Some(paper), ours, unit, within(ours, paper, 0.003));
            rows.push(noted(of, "equation 3 with t_WR / t_CK cycles: as printed it adds nanoseconds to cycles"));
        }
    }
    Ok(rows)
}

/// Distinct pages of address spaces.
fn distinct_pages(rows: &Block, provenance: &Provenance) -> usize {
    let space = |task: u32| provenance.tasks.get(task as usize).map_or(task, |t| t.space);
    rows.iter().map(|r| (space(r.task), r.address / PAGE.0)).collect::<BTreeSet<_>>().len()
}

/// A trace to run.
struct Input {
    rows: Block,
    provenance: Provenance,
    pages: usize,
}

fn input(p: &Parameters, category: &str) -> Result<Input, ReportError> {
    let (rows, provenance) = generate(p, category)?;
    let pages = distinct_pages(&rows, &provenance);
    Ok(Input { rows, provenance, pages })
}

impl Input {
    fn run(&self, backing: &Backing, ram: Bytes, size: Bytes, m: &MachineParameters) -> Result<Outcome, ReportError> {
        self.run_with(&Settings::default(), backing, ram, size, m).map(|(_, outcome)| outcome)
    }

    fn run_with(
        &self,
        settings: &Settings,
        backing: &Backing,
        ram: Bytes,
        size: Bytes,
        m: &MachineParameters,
    ) -> Result<(ForegroundPlan, Outcome), ReportError> {
        let plan = ForegroundPlan::with(settings, backing, ram, size, m)?;
        let mut session = Session::new(&plan, &self.provenance, self.pages)?;
        session.feed(&self.rows);
        let outcome = session.finish();
        Ok((plan, outcome))
    }
}

fn megabytes(mb: u64) -> Bytes {
    Bytes(mb * 1_000_000)
}
