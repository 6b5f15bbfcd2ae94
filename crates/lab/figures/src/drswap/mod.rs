//! DR.Swap: swap areas in DRAM, eMMC and NVM, with and without direct read (TCAD 2016), beside ours.
//!
//! The paper's phone and its users are not available, but its equations are: results of these equations and table IV
//! are identities (`energy_rows`). The rest is predicted on a generated workload ([`crate::workload`]). Two parameters
//! of the workload are fitted to two averages of table IV, and the time of a page-out to one mean of table V.

use std::path::Path;

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::tasks::TasksResult;
use coldframe_experiment::phone::MachineParameters;
use coldframe_experiment::resolve::on_phone;
use coldframe_experiment::swap_prices::{energy, PhoneArea};
use coldframe_experiment::systems::backing::Backing;
use coldframe_experiment::systems::drswap::BACKINGS;
use coldframe_experiment::tasks::{run_on_phone, OnPhone};
use coldframe_experiment::{ExperimentError, Settings};
use coldframe_sheet::swap_energy::SwapCounts;
use coldframe_store::{Block, Provenance};

use crate::figure::{Claim, Origin, Paper, Row, Wanted};
use crate::golden::{numbers, Golden};
use crate::workload::{self, generate, Parameters};

#[cfg(test)]
mod claims;
mod delay;
mod grid;
#[cfg(test)]
mod tests;

use grid::Grid;

pub const PAPER: Paper = Paper {
    name: "drswap",
    rows,
    plots: |_| Ok(Vec::new()),
    claims: CLAIMS,
    readme: ["DR.Swap", "TCAD 2016", "swap to byte-addressable memory, read in place"],
    snapshot: include_str!("../../tests/snapshots/papers__drswap.snap"),
};

const CLAIMS: &[Claim] = &[
    ("energy saved over swap in DRAM (paper: more than)", "section V.E", "128 MB: saved, more than"),
    ("pages swapped in, 256 MB, mean of eight mixes of apps", "table IV", "256 MB, average: direct read disabled"),
    ("a switch with DR.Swap is faster than with flash by", "section V.F", "DR.Swap switches faster than flash, about"),
    ("pages whose swap-in direct read saves, 256 MB", "table IV", "256 MB, average: saved"),
    ("swap on flash lengthens a switch, beyond DRAM, by", "table V", "256 MB: mean of flash beyond DRAM"),
    ("tasks killed without swap", "figure 2", "no swap: tasks killed"),
    ("tasks killed with 128 MB of swap on flash", "figure 2", "128 MB on flash: tasks killed"),
];

/// Swap sizes of the evaluation, in MiB (table IV).
const SWAP_MIB: [u64; 3] = [128, 256, 512];

/// The categories of table III, as golden.toml names them.
const CATEGORIES: [&str; 8] = ["browser", "news", "multimedia", "social", "gaming", "shopping", "mix1", "mix2"];

/// Up-time of one category: five applications, a minute each, three rounds (section V.B).
const UP_TIME: Ps = Ps(900_000_000_000_000);

const DRAM: usize = 0;
const EMMC: usize = 1;
const NVM: usize = 2;
const NVM_DR: usize = 3;
const NONE: usize = 4;

fn golden() -> Golden {
    Golden::read(include_str!("golden.toml"))
}

/// Table IV's swap-ins with direct read disabled and enabled.
fn table4(g: &Golden, category: &str, mib: u64) -> [f64; 2] {
    g.numbers(&format!("table4_swap_ins.{category}.{mib}"))
}

/// Table V's milliseconds of a category's applications, by swap size: with the area in DRAM, NVM (DR.Swap) and flash.
fn apps(g: &Golden, category: &str) -> Vec<[[f64; 3]; 3]> {
    let apps = g.at(&format!("table5_ms.{category}")).as_array().expect("a list");
    apps.iter().map(|app| std::array::from_fn(|size| numbers(&app["ms"][size]))).collect()
}

fn rows(_: &Path, _: Wanted, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    let (golden, p) = (golden(), workload::shipped());
    let mut rows = energy_rows(&golden)?;
    let grid = Grid::new(&p, progress)?;
    grid.table_4(&golden, &mut rows);
    grid.figure_2(&golden, &mut rows);
    delay::rows(&grid, &golden, &mut rows);
    Ok(rows)
}

/// A run's result, and its swap area's.
type Outcome = (TasksResult, OnPhone);

#[cfg(test)]
fn joules((_, phone): &Outcome) -> f64 {
    phone.energy.total().0 as f64 / 1e12
}

fn swap_ins((result, _): &Outcome) -> f64 {
    result.counts.swap_ins as f64
}

/// The equations' result for swap-ins on a backing in fifteen minutes. The swap-outs are not printed; twice the
/// swap-ins without direct read are assumed. Between one and three times, the joules differ by at most a third of a
/// percent.
fn by_equations(backing: usize, mib: u64, disabled: u64, swap_ins: u64) -> Result<f64, ExperimentError> {
    let counts = SwapCounts { swap_ins, swap_outs: 2 * disabled, up_time: UP_TIME };
    let area = PhoneArea::of(&BACKINGS[backing], None, Bytes(mib << 20))?;
    Ok(energy(&area, &counts).total().0 as f64 / 1e12)
}

/// What the equations save with table IV's averages. The paper prints no joules.
fn energy_rows(golden: &Golden) -> Result<Vec<Row>, ExperimentError> {
    let mut rows = Vec::new();
    for mib in SWAP_MIB {
        let [disabled, enabled] = table4(golden, "average", mib).map(|n| n as u64);
        let joules = |disabled, enabled| -> Result<[f64; 2], ExperimentError> {
            Ok([by_equations(DRAM, mib, disabled, disabled)?, by_equations(NVM_DR, mib, disabled, enabled)?])
        };
        let saved = |[dram, pcm]: [f64; 2]| (1.0 - pcm / dram) * 100.0;
        let ours = joules(disabled, enabled)?;
        let least = golden.number(&format!("results.energy_saving_over_dram_swap_percent_at_least.{mib}"));
        let note = format!(
            "equations 1 to 14 on table IV's swap-ins: {:.2} J in DRAM, {:.2} J with DR.Swap in 15 minutes; equation \
             3 with t_WR / t_CK cycles, \
             as printed it adds nanoseconds to cycles",
            ours[0], ours[1]
        );
        let row =
            Row::new("section V.E", format!("{mib} MB: saved, more than"), least, saved(ours), "%", Origin::Identity);
        let row = row.stated(least..=100.0).compared_with("background power alone", saved(joules(0, 0)?));
        rows.push(row.note(note));
    }
    Ok(rows)
}

struct CategoryTrace {
    rows: Block,
    provenance: Provenance,
}

fn input(p: &Parameters, category: &str) -> Result<CategoryTrace, ExperimentError> {
    let (rows, provenance) = generate(p, category)?;
    Ok(CategoryTrace { rows, provenance })
}

impl CategoryTrace {
    fn run(
        &self,
        backing: &Backing,
        ram: Bytes,
        size: Bytes,
        m: &MachineParameters,
    ) -> Result<Outcome, ExperimentError> {
        let plan = on_phone(&Settings::default(), backing, (ram, size), m)?;
        run_on_phone(&plan, &self.rows, &self.provenance)
    }
}

fn megabytes(mb: u64) -> Bytes {
    Bytes(mb * 1_000_000)
}
