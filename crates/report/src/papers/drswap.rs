//! DR.Swap: swap areas in DRAM, eMMC and NVM, with and without direct read (TCAD 2016), beside ours.
//!
//! The paper's phone and its users are not at hand. Its equations are: what follows from them and table IV is reached to the digit
//! ([`energy_rows`]). The rest is predicted on a generated workload ([`crate::workload`]), of which two parameters are fitted to two averages of
//! table IV and none to anything else.

use std::collections::BTreeSet;

use coldframe_core::Bytes;
use coldframe_device::swap_energy::SwapCounts;
use coldframe_systems::drswap::golden::{self, Golden};
use coldframe_systems::drswap::{Backing, BACKINGS, CATEGORIES, PAGE, SWAP_MIB, UP_TIME};
use coldframe_trace::{Block, Provenance};

use super::{Reached, Row};
use crate::error::ReportError;
use crate::foreground::{energy, Area, Outcome, Plan, Session};
use crate::workload::{self, generate, MachineParameters, Parameters};

pub mod beyond;

const DRAM: usize = 0;
const EMMC: usize = 1;
const NVM: usize = 2;
const NVM_DR: usize = 3;
const NONE: usize = 4;

/// All rows.
///
/// # Errors
/// A sheet lacks a number.
pub fn rows(progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    let (golden, p) = (golden::read(), workload::shipped());
    let mut rows = energy_rows(&golden)?;
    let grid = Grid::new(&p, progress)?;
    grid.table_4(&golden, &mut rows);
    grid.figure_7(&golden, &mut rows);
    grid.figure_8(&golden, &p, &mut rows);
    grid.figure_3(&mut rows);
    progress("figure 2");
    figure_2(&golden, &p, &mut rows)?;
    beyond::rows(&grid, &mut rows)?;
    Ok(rows)
}

pub(super) fn row(item: &str, row: String, paper: Option<f64>, ours: f64, unit: &'static str, reached: Reached) -> Row {
    Row {
        paper: "drswap",
        item: item.into(),
        row,
        paper_value: paper,
        our_value: ours,
        unit,
        deviation_percent: paper.map(|p| (ours / p - 1.0) * 100.0),
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

/// What the equations make of table IV's averages. The swap-outs are not printed; twice the swap-ins without direct read are taken, and
/// from once to thrice the joules differ by a third of a percent at most.
fn energy_rows(golden: &Golden) -> Result<Vec<Row>, ReportError> {
    let mut rows = Vec::new();
    for mib in SWAP_MIB {
        let key = mib.to_string();
        let [disabled, enabled] = golden.table4_swap_ins["average"][&key];
        let joules = |backing: &Backing, swap_ins| {
            let counts = SwapCounts { swap_ins, swap_outs: 2 * disabled, up_time: UP_TIME };
            Area::of(backing, None, Bytes(mib << 20)).map(|area| energy(&area, &counts).total().0 as f64 / 1e12)
        };
        let (dram, pcm) = (joules(&BACKINGS[DRAM], disabled)?, joules(&BACKINGS[NVM_DR], enabled)?);
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

/// Every category on every backing and size.
pub struct Grid {
    /// By category, size and backing.
    outcomes: Vec<[[Outcome; 5]; 3]>,
    tasks: usize,
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
        let plan = Plan::new(backing, ram, size, m)?;
        let mut session = Session::new(&plan, &self.provenance, self.pages)?;
        session.feed(&self.rows);
        Ok(session.finish())
    }
}

fn megabytes(mb: u64) -> Bytes {
    Bytes(mb * 1_000_000)
}

impl Grid {
    fn new(p: &Parameters, progress: &mut dyn FnMut(&str)) -> Result<Grid, ReportError> {
        let mut outcomes = Vec::new();
        for category in CATEGORIES {
            progress(category);
            let input = input(p, category)?;
            let one = |mib: u64, backing| input.run(backing, megabytes(p.machine.ram_mb), Bytes(mib << 20), &p.machine);
            let size = |mib: u64| -> Result<[Outcome; 5], ReportError> {
                let [a, b, c, d, e] = BACKINGS.each_ref().map(|backing| one(mib, backing));
                Ok([a?, b?, c?, d?, e?])
            };
            let [small, middle, large] = SWAP_MIB.map(size);
            outcomes.push([small?, middle?, large?]);
        }
        Ok(Grid { outcomes, tasks: 5 })
    }

    /// The runs of a size and backing, by category.
    fn column(&self, size: usize, backing: usize) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().map(move |category| &category[size][backing])
    }

    fn mean(&self, size: usize, backing: usize, of: impl Fn(&Outcome) -> f64) -> f64 {
        self.column(size, backing).map(of).sum::<f64>() / self.outcomes.len() as f64
    }

    /// Swap-ins with and without direct read: two averages are fitted, all else is predicted.
    fn table_4(&self, golden: &Golden, rows: &mut Vec<Row>) {
        let swap_ins = |o: &Outcome| o.result.counts.swap_ins as f64;
        for (size, mib) in SWAP_MIB.into_iter().enumerate() {
            let key = mib.to_string();
            let ours = [NVM, NVM_DR].map(|backing| self.mean(size, backing, swap_ins));
            table_4_rows(golden, &key, "average", ours, rows);
        }
        for (size, mib) in SWAP_MIB.into_iter().enumerate() {
            for (i, category) in CATEGORIES.into_iter().enumerate() {
                let ours = [NVM, NVM_DR].map(|backing| swap_ins(&self.outcomes[i][size][backing]));
                table_4_rows(golden, &mib.to_string(), category, ours, rows);
            }
        }
    }

    /// Energy of fifteen minutes by backing. The figure has no numbers; the text has the savings.
    fn figure_7(&self, golden: &Golden, rows: &mut Vec<Row>) {
        let joules = |o: &Outcome| o.energy.total().0 as f64 / 1e12;
        for (size, mib) in SWAP_MIB.into_iter().enumerate() {
            let key = mib.to_string();
            for (backing, name) in [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap")] {
                let of = row(
                    "figure 7",
                    format!("{mib} MB: {name}"),
                    None,
                    self.mean(size, backing, joules),
                    "J",
                    Reached::Shape,
                );
                rows.push(noted(of, &self.by_term(size, backing)));
            }
            let saving = (1.0 - self.mean(size, NVM_DR, joules) / self.mean(size, DRAM, joules)) * 100.0;
            let least = golden.results.energy_saving_over_dram_swap_percent_at_least[&key];
            let reached = if saving >= least { Reached::Yes } else { Reached::No };
            let of = row(
                "section V.E",
                format!("{mib} MB: DR.Swap saves over DRAM, more than"),
                Some(least),
                saving,
                "%",
                reached,
            );
            rows.push(noted(of, "background power decides, whatever is swapped"));
        }
    }

    /// The ledger, means over the categories in millijoules.
    fn by_term(&self, size: usize, backing: usize) -> String {
        let terms = (0..6).map(|i| {
            let name = self.outcomes[0][size][backing].energy.terms()[i].0;
            format!("{name} {:.2}", self.mean(size, backing, |o| o.energy.terms()[i].1 .0 as f64 / 1e9))
        });
        format!("mJ by term: {}", terms.collect::<Vec<_>>().join(", "))
    }

    /// Switching delay: what the application does besides swapping is a parameter; what swapping adds is ours.
    fn figure_8(&self, golden: &Golden, p: &Parameters, rows: &mut Vec<Row>) {
        let delay = |o: &Outcome| p.machine.start_ms + o.switch_delay(self.tasks).0 as f64 / 1e9;
        let gains = SWAP_MIB.iter().enumerate().map(|(size, mib)| {
            for (backing, name) in
                [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap"), (NONE, "no swap")]
            {
                let of = row(
                    "figure 8",
                    format!("{mib} MB: {name}"),
                    None,
                    self.mean(size, backing, delay),
                    "ms",
                    Reached::Shape,
                );
                rows.push(noted(
                    of,
                    "mean of switches back; `start_ms` is table V's mean, the rest swapping and file pages",
                ));
            }
            (1.0 - self.mean(size, NVM_DR, delay) / self.mean(size, EMMC, delay)) * 100.0
        });
        let gain = gains.sum::<f64>() / SWAP_MIB.len() as f64;
        let paper = golden.results.switching_delay_improvement_over_flash_percent_about;
        let reached = if (paper / 2.0..paper * 2.0).contains(&gain) { Reached::Shape } else { Reached::No };
        let of = row("section V.F", "DR.Swap switches faster than eMMC, about".into(), Some(paper), gain, "%", reached);
        rows.push(noted(of, DELAY_WHY));
    }

    /// Pages to and from the card. The figure has no numbers.
    fn figure_3(&self, rows: &mut Vec<Row>) {
        let io = |o: &Outcome| (o.result.card_reads + o.result.card_writes) as f64;
        let (swap, none) = (self.mean(0, EMMC, io), self.mean(0, NONE, io));
        for (name, ours) in [("128 MB on eMMC", swap), ("no swap", none)] {
            let of = row("figure 3", format!("block I/O, {name}"), None, ours, "pages", Reached::Shape);
            rows.push(noted(of, "mean over the categories; drawn without numbers in the paper"));
        }
        let reached = if swap > none { Reached::Shape } else { Reached::No };
        let of = row("figure 3", "eMMC swap to no swap".into(), None, swap / none, "x", reached);
        rows.push(noted(of, FIGURE_3_WHY));
    }
}

const FIGURE_3_WHY: &str = "the paper says that swapping greatly increases block I/O; in ours, without swap, anonymous pages take the RAM, and the \
                            applications' file pages are dropped and read again, which is more than what swapping writes and reads";

const DELAY_WHY: &str =
    "the paper's 10 % are 200 ms a switch for some 330 swap-ins, 0.6 ms each; table II's port, table I's NAND and our \
                         assumed block layer take 0.12 ms together, so its phone has waits that its own tables do not";

fn table_4_rows(golden: &Golden, key: &str, category: &str, ours: [f64; 2], rows: &mut Vec<Row>) {
    let printed = golden.table4_swap_ins[category][key].map(|n| n as f64);
    let fitted = category == "average" && key == "128";
    let tolerance = if fitted { 0.05 } else { 0.25 };
    for (i, name) in ["direct read disabled", "direct read enabled"].into_iter().enumerate() {
        let reached = within(ours[i], printed[i], tolerance);
        let of =
            row("table IV", format!("{key} MB, {category}: {name}"), Some(printed[i]), ours[i], "swap-ins", reached);
        rows.push(noted(of, swap_ins_why(key, category, ours[i])));
    }
    let saved = |pair: [f64; 2]| if pair[0] > 0.0 { (1.0 - pair[1] / pair[0]) * 100.0 } else { 0.0 };
    let (ours, printed) = (saved(ours), saved(printed));
    let reached = if (ours - printed).abs() <= if fitted { 2.0 } else { 10.0 } { Reached::Yes } else { Reached::No };
    let of = row("table IV", format!("{key} MB, {category}: saved"), Some(printed), ours, "%", reached);
    rows.push(noted(of, if fitted { "fitted" } else { SAVED_WHY }));
}

/// Why a predicted number of swap-ins is what it is.
fn swap_ins_why(key: &str, category: &str, ours: f64) -> &'static str {
    match (key, category) {
        ("128", "average") => "fitted",
        _ if ours == 0.0 => "predicted: these applications fit into the RAM that is fitted to the average, and nothing is swapped",
        ("128", _) => "predicted: all categories behave alike and differ by their printed sizes only, which is not what tells them apart",
        _ => "predicted: what is swapped fits into 128 MB, so a larger area changes nothing; the paper's fall with the size is not explained by \
              a fixed amount of DRAM",
    }
}

const SAVED_WHY: &str =
    "predicted: every category has the same part of read-mostly pages, and what is swapped of a category is chance";

/// Ended tasks by DRAM, with and without 128 MB of swap on eMMC. The paper prints one pair, at 1 GB, without its workload.
fn figure_2(golden: &Golden, p: &Parameters, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let input = input(p, "mix1")?;
    let mut pair = |ram: u64, backing: usize, name: &str| -> Result<f64, ReportError> {
        let done = input.run(&BACKINGS[backing], megabytes(ram), Bytes(128 << 20), &p.machine)?;
        let kills = done.result.counts.kills as f64;
        let of =
            row("figure 2", format!("mix1, {ram} MB for applications: {name}"), None, kills, "ended", Reached::Shape);
        let homeless = done.result.counts.homeless;
        rows.push(noted(
            of,
            &format!("the paper draws DRAM from a phone's whole; {homeless} pages found no place at all"),
        ));
        Ok(kills)
    };
    let mut sums = (0.0, 0.0);
    for step in [10, 8, 6, 5] {
        let ram = p.machine.ram_mb * step / 10;
        sums.0 += pair(ram, NONE, "no swap")?;
        sums.1 += pair(ram, EMMC, "128 MB of swap on eMMC")?;
    }
    let killed = golden.results.killed_processes_1GB_memory;
    let paper = killed.flash_swap_128MB as f64 / killed.no_swap as f64 * 100.0;
    let ours = if sums.0 > 0.0 { sums.1 / sums.0 * 100.0 } else { 100.0 };
    let reached = if ours < 100.0 { Reached::Shape } else { Reached::No };
    let of = row("figure 2", "with swap, of those without".into(), Some(paper), ours, "%", reached);
    rows.push(noted(of, "all four sizes together; the paper's pair is at 1 GB, its workload is not printed"));
    Ok(())
}
