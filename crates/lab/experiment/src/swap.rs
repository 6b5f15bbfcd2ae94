//! Swap areas from names to results: a swap trace, configurations, and their costs.

use std::path::Path;

use coldframe_drivers::swap::{SwapConfig, SwapResult, SwapRun};
use coldframe_formats::swap::{read, SwapTrace};

use crate::error::ExperimentError;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::{swaps, SwapPlan};
use crate::settings::Settings;
use crate::sim_result::{self, InForce};
use crate::systems;

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct SwapOutcome {
    /// The notes of the trace's recorder on its limits.
    pub notes: Vec<String>,
    pub config: InForce,
    pub result: sim_result::SwapTrace,
}

/// How often the journal is handed out in a whole trace.
const PIECES: usize = 64;

fn simulate(
    config: &SwapConfig,
    trace: &SwapTrace,
    mut journal: Option<Sink<'_>>,
) -> Result<SwapResult, ExperimentError> {
    let mut run = SwapRun::new(config, trace).map_err(|e| ExperimentError::setting("swap", e.to_string()))?;
    if journal.is_some() {
        if config.areas.iter().any(|area| area.logs > 1) {
            let reason = "a journal does not say which log takes a page; leave swap.logs or the journal out";
            return Err(ExperimentError::setting("swap.logs", reason));
        }
        run.keep_journal(config);
    }
    for events in trace.events.chunks(trace.events.len().div_ceil(PIECES).max(1)) {
        events.iter().for_each(|event| run.event(event));
        if let Some(sink) = &mut journal {
            sink(&run.drain_journal())?;
        }
    }
    Ok(run.result())
}

/// Runs a plan over a trace that has been read, and passes the journal of its area to the receiver in pieces.
pub fn outcome(plan: &SwapPlan, trace: &SwapTrace, journal: Option<Sink<'_>>) -> Result<SwapOutcome, ExperimentError> {
    let result = sim_result::SwapTrace::of(plan, &simulate(&plan.config, trace, journal)?);
    Ok(SwapOutcome { notes: trace.notes.clone(), config: plan.shown(), result })
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
        u64::from(self.result.wear.blocks) * u64::from(slots) * systems::of_log().1.slot.0
    }
}
