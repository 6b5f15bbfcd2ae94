//! Swap areas from names to results: a swap trace, configurations, and their costs.

use std::path::Path;

use coldframe_drivers::swap::{SwapConfig, SwapResult, SwapRun};
use coldframe_formats::swap::{read, SwapOp, SwapTrace};

use crate::error::ExperimentError;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::{swaps, SwapPlan};
use crate::settings::Settings;
use crate::sim_result::{self, InForce};
use crate::slots::{SlotMap, SlotPicture};
use crate::systems;

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct SwapOutcome {
    /// The notes of the trace's recorder on its limits.
    pub notes: Vec<String>,
    pub config: InForce,
    pub found: sim_result::SwapTrace,
}

/// How often the owners of slots are noted in a whole trace.
const LOOKS: usize = 64;

/// The run, and the owner of each slot over time.
fn simulate(
    config: &SwapConfig,
    trace: &SwapTrace,
    mut journal: Option<Sink<'_>>,
) -> Result<(SwapResult, SlotMap), ExperimentError> {
    let mut run = SwapRun::new(config, trace).map_err(|e| ExperimentError::setting("swap", e.to_string()))?;
    if journal.is_some() {
        if config.logs > 1 {
            let reason = "a journal does not say which log takes a page; leave swap.logs or the journal out";
            return Err(ExperimentError::setting("swap.logs", reason));
        }
        run.keep_journal(config);
    }
    let mut picture = SlotPicture::new(run.slots());
    let mut owners = vec![0; trace.slots().max(1)];
    for events in trace.events.chunks(trace.events.len().div_ceil(LOOKS).max(1)) {
        for event in events {
            if event.op == SwapOp::Out {
                owners[event.slot as usize] = event.pid;
            }
            run.event(event);
        }
        picture.look(|slot| run.copy_in(slot).map(|copy| owners[copy as usize]));
        if let Some(sink) = &mut journal {
            sink(&run.drain_journal())?;
        }
    }
    Ok((run.result(), picture.map(|pid| format!("process {pid}"))))
}

/// Runs a plan over a trace that has been read, and passes the journal of its area to the receiver in pieces.
pub fn outcome(plan: &SwapPlan, trace: &SwapTrace, journal: Option<Sink<'_>>) -> Result<SwapOutcome, ExperimentError> {
    let (result, slots) = simulate(&plan.config, trace, journal)?;
    let found = sim_result::SwapTrace::new(plan, &result, slots);
    Ok(SwapOutcome { notes: trace.notes.clone(), config: plan.shown(), found })
}

/// Reads a swap trace and runs every configuration over it. The journal is the first one's.
pub fn run(
    path: &Path,
    all: &[Settings],
    mut journal: Option<Sink<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<SwapOutcome>, ExperimentError> {
    let plans = all.iter().map(swaps).collect::<Result<Vec<_>, _>>()?;
    let trace = read(path)?;
    let mut outcomes = Vec::with_capacity(plans.len());
    for (i, plan) in plans.iter().enumerate() {
        tell(progress, (i as u64, plans.len() as u64), Unit::Configurations)?;
        outcomes.push(outcome(plan, &trace, journal.take())?);
    }
    Ok(outcomes)
}

impl SwapOutcome {
    /// Bytes of the areas.
    pub fn bytes(&self) -> u64 {
        let slots = self.config.swap.log.slots_per_block.unwrap_or_default();
        u64::from(self.found.wear.blocks) * u64::from(slots) * systems::of_log().1.slot.0
    }
}
