//! The cost of following the prediction (SAP section 3.2, "for the price of a less responsive scheduler"): a chess
//! player beside games, under CFS.
//!
//! GNU Chess thinks for 2 ms, then waits for 50 ms. CFS lets a woken task preempt tasks that have had more time. A
//! scheduler that follows its prediction does not, while it has a prediction.

use std::path::Path;

use crate::systems::sap;
use coldframe_core::{Bytes, Ps};
use coldframe_sim::tasks::{OnFault, Program, TaskSpec, TasksResult};

use super::experiments::{self, Kernel, KERNELS};
use super::row;
use crate::error::ReportError;
use crate::papers::{Reached, Row};

/// References of a move: 2 ms at 100 ns each.
const MOVE: usize = 20_000;
/// The wait until the next move.
const PAUSE: Ps = Ps::from_us(50_000);
const MOVES: u32 = 200;
const GAMES: u32 = 4;

/// All rows.
pub(super) fn rows(traces: &Path, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let specs = specs(traces)?;
    let pages: u64 = specs.iter().map(|spec| u64::from(spec.program.pages)).sum();
    // Half of the touched pages, so that prefetching has work.
    let ram = Bytes(pages / 2 * sap::PAGE.0);
    let run = |follow| {
        let mut kernel = Kernel { scheduler: "cfs", on_fault: OnFault::Keeps, ..KERNELS[1] };
        kernel.prefetching.follow = follow;
        experiments::run(&kernel, ram, &specs)
    };
    let (free, bound) = (run(false)?, run(true)?);
    let ms = |time: Ps| time.0 as f64 / 1e9;
    let mean = |result: &TasksResult| result.tasks[0].wait.mean().map_or(0.0, ms);
    let longest = |result: &TasksResult| ms(result.tasks[0].wait.max());
    let right = |result: &TasksResult| {
        let p = result.prefetch;
        100.0 * p.predicted as f64 / (p.predicted + p.mispredicted).max(1) as f64
    };
    let note = format!("major faults {} and {} when followed", free.major(), bound.major());
    for (what, unit, of) in [
        ("predictions that came true", "%", &right as &dyn Fn(&TasksResult) -> f64),
        ("chess, mean wait from awake to running", "ms", &mean),
        ("chess, longest wait from awake to running", "ms", &longest),
    ] {
        for (how, result) in [("prefetch-75", &free), ("prefetch-75, followed", &bound)] {
            rows.push(row("following", format!("{how}: {what}"), None, of(result), unit, Reached::NoClaim, &note));
        }
    }
    Ok(())
}

/// The tasks, with chess first.
fn specs(traces: &Path) -> Result<Vec<TaskSpec>, ReportError> {
    let chess = experiments::program(&traces.join("chess.parquet"))?;
    let chess = Program::new(chess.steps[..MOVE.min(chess.steps.len())].to_vec());
    let game = experiments::program(&traces.join("game.parquet"))?;
    let mut specs = vec![TaskSpec { pause: PAUSE, ..experiments::task(&chess, 0, Some(MOVES)) }];
    specs.extend((0..GAMES).map(|i| experiments::task(&game, chess.pages + i * game.pages, None)));
    Ok(specs)
}
