//! Every category on every backing and size: table IV.

use coldframe_core::Bytes;
use coldframe_experiment::systems::drswap::BACKINGS;
use coldframe_experiment::ExperimentError;
use rayon::prelude::*;

use super::{input, megabytes, swap_ins, table4, Outcome, CATEGORIES, SWAP_MIB};
use super::{DRAM, EMMC, NONE, NVM, NVM_DR};
use crate::figure::{Origin, Row};
use crate::golden::Golden;
use crate::workload::Parameters;

/// Every category on every backing and size.
pub(super) struct Grid {
    outcomes: Vec<OfCategory>,
}

/// A category's outcomes.
struct OfCategory {
    /// By size and backing.
    with: [[Outcome; 4]; 3],
    /// Without a swap area.
    without: Outcome,
}

impl Grid {
    pub(super) fn new(p: &Parameters, progress: &mut dyn FnMut(&str)) -> Result<Grid, ExperimentError> {
        progress("a phone");
        let category = |category: &&str| {
            let input = input(p, category)?;
            let one = |mib: u64, backing| input.run(backing, megabytes(p.machine.ram_mb), Bytes(mib << 20), &p.machine);
            let size = |mib: u64| -> Result<[Outcome; 4], ExperimentError> {
                let [a, b, c, d] = [DRAM, EMMC, NVM, NVM_DR].map(|backing| one(mib, &BACKINGS[backing]));
                Ok([a?, b?, c?, d?])
            };
            let [small, middle, large] = SWAP_MIB.map(size);
            Ok(OfCategory { with: [small?, middle?, large?], without: one(SWAP_MIB[0], &BACKINGS[NONE])? })
        };
        let outcomes = CATEGORIES.par_iter().map(category).collect::<Result<_, ExperimentError>>()?;
        Ok(Grid { outcomes })
    }

    pub(super) fn at(&self, category: usize, size: usize, backing: usize) -> &Outcome {
        &self.outcomes[category].with[size][backing]
    }

    pub(super) fn mean(&self, size: usize, backing: usize, of: impl Fn(&Outcome) -> f64) -> f64 {
        self.outcomes.iter().map(|category| of(&category.with[size][backing])).sum::<f64>() / self.outcomes.len() as f64
    }

    /// Figure 2: tasks that the killer ends, in all categories.
    pub(super) fn figure_2(&self, golden: &Golden, rows: &mut Vec<Row>) {
        let kills = |of: &dyn Fn(&OfCategory) -> &Outcome| -> u64 {
            self.outcomes.iter().map(|category| of(category).0.counts.kills).sum()
        };
        for (name, printed, ours) in [
            ("no swap", "no_swap", kills(&|category| &category.without)),
            ("128 MB on flash", "flash_swap_128MB", kills(&|category| &category.with[0][EMMC])),
        ] {
            let paper = golden.number(&format!("results.killed_processes_1GB_memory.{printed}"));
            let row =
                Row::new("figure 2", format!("{name}: tasks killed"), paper, ours as f64, "tasks", Origin::Predicted);
            rows.push(row.note(KILLS_WHY));
        }
    }

    /// Swap-ins with and without direct read: two averages are fitted, all others are predicted.
    pub(super) fn table_4(&self, golden: &Golden, rows: &mut Vec<Row>) {
        for (size, mib) in SWAP_MIB.into_iter().enumerate() {
            let ours = [NVM, NVM_DR].map(|backing| self.mean(size, backing, swap_ins));
            table_4_rows(golden, mib, "average", ours, false, rows);
        }
        for (size, mib) in SWAP_MIB.into_iter().enumerate() {
            for (i, category) in CATEGORIES.into_iter().enumerate() {
                let ours = [NVM, NVM_DR].map(|backing| swap_ins(self.at(i, size, backing)));
                let full = ours[0] > swap_ins(self.at(i, SWAP_MIB.len() - 1, NVM));
                table_4_rows(golden, mib, category, ours, full, rows);
            }
        }
    }
}

fn table_4_rows(golden: &Golden, mib: u64, category: &str, ours: [f64; 2], full: bool, rows: &mut Vec<Row>) {
    let printed = table4(golden, category, mib);
    let origin = match (category, mib) {
        ("average", 128) => Origin::Fitted("RAM and the read-mostly part", 2),
        _ => Origin::Predicted,
    };
    let average = table4(golden, "average", mib);
    // The trivial rule: a category is as the average; an average is as the other size's.
    let mean = |of: &dyn Fn([f64; 2]) -> f64| match category {
        "average" => (of(table4(golden, "average", 256)) + of(table4(golden, "average", 512))) / 2.0,
        _ => of(average),
    };
    let rule = if category == "average" { "the mean of 256 and 512 MB" } else { "the column's average" };
    for (i, name) in ["direct read disabled", "direct read enabled"].into_iter().enumerate() {
        let row = format!("{mib} MB, {category}: {name}");
        let row = Row::new("table IV", row, printed[i], ours[i], "swap-ins", origin);
        rows.push(row.compared_with(rule, mean(&|pair| pair[i])).note(swap_ins_why(origin, full, ours[i], printed[i])));
    }
    let saved = |pair: [f64; 2]| if pair[0] > 0.0 { (1.0 - pair[1] / pair[0]) * 100.0 } else { 0.0 };
    let row = format!("{mib} MB, {category}: saved");
    let row = Row::new("table IV", row, saved(printed), saved(ours), "%", origin).to(0.01);
    rows.push(row.compared_with(rule, mean(&saved)).note(SAVED_WHY));
}

/// Why a predicted number of swap-ins differs. `full`: a larger area gives fewer.
fn swap_ins_why(origin: Origin, full: bool, ours: f64, paper: f64) -> &'static str {
    match ours {
        _ if origin != Origin::Predicted => "within the grain of one MB of RAM",
        0.0 => "these applications fit into the RAM that is fitted to the average, and nothing is swapped",
        _ if ours > paper && full => {
            "what exceeds RAM fills the area, so that pages go round and applications' working sets are swapped, \
             too, as the printed sizes \
             have it; the paper's numbers do not follow its sizes (shopping has the largest, and fewer swap-ins than \
             its average)"
        }
        _ if ours > paper => {
            "all categories behave alike and differ by their printed sizes only, which do not order the paper's own \
             column"
        }
        _ => {
            "what exceeds RAM is idle heap here that is hardly touched again, and services that launches push out; \
             the paper's phone brought \
             more back, of applications whose behaviour is not printed"
        }
    }
}

const KILLS_WHY: &str = "the sum over table III's categories; the paper prints neither the applications of figure 2 \
                         nor how long they ran, only \
                         1 GB of memory; ours have the RAM that is fitted to table IV, where a swap area holds all \
                         that exceeds it";

const SAVED_WHY: &str =
    "every category has the same part of read-mostly pages, and what is swapped of a category is chance";
