//! Swap areas from names to results: a swap trace, configurations, and their costs.

use std::path::Path;

use coldframe_boards::flash::{self, FlashTime, Operations, Wear};
use coldframe_drivers::swap::{SwapConfig, SwapResult, SwapRun};
use coldframe_formats::swap::{read, SwapOp, SwapTrace};
use coldframe_sheet::quantity::human_size;
use serde_json::Value;

use crate::error::ExperimentError;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::{swaps, SwapPlan};
use crate::settings::Settings;
use crate::slots::{SlotMap, SlotPicture};
use crate::systems;

/// A swap area's settings as tables show them.
#[derive(Clone, Debug)]
pub struct AreaNames {
    /// How slots are allocated.
    pub layout: &'static str,
    /// The read-ahead.
    pub read_ahead: String,
    /// Collector, and victims at a time.
    pub collector: String,
    /// Device.
    pub device: String,
}

impl AreaNames {
    fn of(plan: &SwapPlan) -> AreaNames {
        AreaNames {
            layout: plan.settings.layout,
            read_ahead: plan.settings.read_ahead.clone().unwrap_or_default(),
            collector: plan.settings.collector.clone(),
            device: plan.sheet.name.clone(),
        }
    }
}

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct SwapOutcome {
    /// The notes of the trace's recorder on its limits.
    pub notes: Vec<String>,
    /// Every setting in force.
    pub config: Value,
    /// The settings that tables show.
    pub names: AreaNames,
    /// The findings.
    pub result: SwapResult,
    /// Reads, programs, copies, erases.
    pub operations: Operations,
    /// Erases over the blocks.
    pub wear: Wear,
    /// Time on the device; `None` if its sheet lacks a time.
    pub time: Option<FlashTime>,
    /// Years until the most worn block reaches its rated erases; `None` if nothing was erased or the sheet has no
    /// rating.
    pub life_years: Option<f64>,
    /// Blocks of all areas.
    pub blocks: u32,
    /// Slots of each.
    pub slots_per_block: u32,
    /// The process that owned each slot, as [`crate::slots`] draws it.
    pub slots: SlotMap,
}

impl SwapOutcome {
    /// The slides' formula.
    pub fn cost(&self) -> u64 {
        (systems::of_log().1.cost)(&self.operations)
    }
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

/// Runs a plan over a trace that has been read.
///
/// # Errors
/// Numbers out of their bounds.
pub fn outcome(plan: &SwapPlan, trace: &SwapTrace) -> Result<SwapOutcome, ExperimentError> {
    simulated(plan, trace, None)
}

fn simulated(plan: &SwapPlan, trace: &SwapTrace, journal: Option<Sink<'_>>) -> Result<SwapOutcome, ExperimentError> {
    let (result, slots) = simulate(&plan.config, trace, journal)?;
    let counts = &result.flash;
    let operations =
        Operations { reads: result.reads, programs: counts.programs, copies: counts.copies, erases: counts.erases };
    let wear = flash::wear(&result.erases);
    let cycles = plan.sheet.cycles().ok();
    Ok(SwapOutcome {
        notes: trace.notes.clone(),
        config: plan.shown(),
        operations,
        wear,
        time: flash::flash_time(&plan.sheet, systems::of_log().1.slot, operations).ok(),
        life_years: cycles.and_then(|cycles| flash::life_years(&wear, cycles, result.duration_ns)),
        names: AreaNames::of(plan),
        blocks: plan.config.areas.iter().map(|a| a.blocks).sum(),
        slots_per_block: plan.config.slots_per_block,
        slots,
        result,
    })
}

/// Reads a swap trace and runs every configuration over it.
///
/// # Errors
/// The trace cannot be read, or settings do not resolve.
pub fn run(
    path: &Path,
    all: &[Settings],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<SwapOutcome>, ExperimentError> {
    let plans = all.iter().map(swaps).collect::<Result<Vec<_>, _>>()?;
    let trace = read(path)?;
    let mut outcomes = Vec::with_capacity(plans.len());
    for (i, plan) in plans.iter().enumerate() {
        tell(progress, (i as u64, plans.len() as u64), Unit::Configurations)?;
        outcomes.push(outcome(plan, &trace)?);
    }
    Ok(outcomes)
}

/// Runs one configuration and passes the journal of its area to `sink` in pieces.
///
/// # Errors
/// As [`run`].
pub fn run_with_journal(path: &Path, settings: &Settings, sink: Sink<'_>) -> Result<SwapOutcome, ExperimentError> {
    simulated(&swaps(settings)?, &read(path)?, Some(sink))
}

/// Size of the areas as shown.
pub fn size_text(o: &SwapOutcome) -> String {
    let n = o.config["swap"]["slots_per_block"].as_u64().unwrap_or(0);
    human_size(u64::from(o.blocks) * n * systems::of_log().1.slot.0)
}
