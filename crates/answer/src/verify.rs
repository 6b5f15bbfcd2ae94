//! A recorded program at three sizes of RAM: measured and predicted run times.

use std::ffi::OsString;

use coldframe_live::Options;

use crate::child::Signals;
use crate::curve::Point;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::order::{Order, Program};
use crate::pager::Pager;
use crate::program::default_backing;
use crate::recorded::{Recorded, Verified};
use crate::run::{run, Run};

/// A repeated run may take this many times the stand-alone time.
const PATIENT: f64 = 8.0;

/// A size, and a run with it.
pub struct Measured {
    /// What was predicted.
    pub point: Point,
    /// What became of the program.
    pub program: Program,
    /// Faults on pages that had to be brought into RAM.
    pub true_faults: u64,
}

impl Measured {
    /// As a report shows it; `None` if the program failed.
    pub fn verified(&self) -> Option<Verified> {
        let (ram_bytes, seconds) = (self.point.ram_bytes, self.program.seconds);
        (self.program.status == 0).then_some(Verified { ram_bytes, seconds, true_faults: Some(self.true_faults) })
    }
}

/// Runs the program at some sizes of the curve.
///
/// # Errors
/// A run cannot be started.
pub fn verify(answer: &Recorded, program: &[OsString], listener: &dyn Listener) -> Result<Vec<Measured>, AnswerError> {
    let sizes = worth_running(answer);
    let name = &answer.common.program;
    listener
        .warn(&format!("coldframe: {name} runs {} times more now, and all that it does happens again\n", sizes.len()));
    let signals = Signals::catch()?;
    let points = sizes.iter().filter_map(|size| answer.common.at(*size));
    let measured = |point: &Point| {
        let max_memory = Options::MAX_MEMORY;
        let options = Options { backing: default_backing(), max_memory, ..Options::new(point.ram_bytes) };
        let run = run(&Order { by: Pager::Ours, ..Order::new(program, options, &signals) }, &crate::Silent)?;
        let true_faults = match &run {
            Run::Pager(run) => run.stats.true_faults,
            Run::Kernel(run) => run.counts.major_faults,
        };
        Ok(Measured { point: *point, program: run.program(), true_faults })
    };
    points.map(measured).collect()
}

/// Sizes to run the program at: the advised size, and one on each side of the point where it begins to thrash, if
/// that does not take too long; otherwise half of the RAM that it needs.
fn worth_running(answer: &Recorded) -> Vec<u64> {
    let answer = &answer.common;
    let thrash = answer.thrash_bytes.unwrap_or(answer.needed_bytes / 2);
    let near = |ram: u64| answer.curve.iter().map(|point| point.ram_bytes).min_by_key(|size| size.abs_diff(ram));
    let below = answer.curve.iter().find(|point| point.ram_bytes <= thrash * 3 / 4);
    let below = below.filter(|point| point.worst() <= PATIENT * answer.program_seconds).map(|point| point.ram_bytes);
    let other = below.or(near(answer.needed_bytes / 2));
    let mut sizes: Vec<u64> = [answer.ram_bytes, near(thrash), other].into_iter().flatten().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    // If two of them are equal, the next ones of the curve.
    for point in &answer.curve {
        if sizes.len() < 3 && !sizes.contains(&point.ram_bytes) {
            sizes.push(point.ram_bytes);
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}
