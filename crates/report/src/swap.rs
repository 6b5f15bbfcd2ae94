//! Swap areas from names to results: a swap trace, configurations, and what each costs.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_device::flash::{self, FlashTime, Operations, Wear};
use coldframe_device::quantity::show_bytes;
use coldframe_sim::swap::{SwapConfig, SwapResult, SwapRun};
use coldframe_trace::swap::{read, SwapOp, SwapTrace};
use serde_json::{json, Value};

use crate::error::ReportError;
use crate::experiment::{sha256, Sink};
use crate::resolve::{swaps, SwapPlan};
use crate::result::{wear_map, SCHEMA_VERSION};
use crate::settings::Settings;
use crate::slots::SlotPicture;
use crate::systems;

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct SwapOutcome {
    /// What the trace's recorder says of its limits.
    pub notes: Vec<String>,
    /// Every setting in force.
    pub config: Value,
    /// What was found out.
    pub result: SwapResult,
    /// Reads, programs, copies, erases.
    pub operations: Operations,
    /// Erases over the blocks.
    pub wear: Wear,
    /// Time on the device; `None` if its sheet lacks one.
    pub time: Option<FlashTime>,
    /// Years until the most worn block has had its rated erases; `None` if nothing was erased or the sheet rates none.
    pub life_years: Option<f64>,
    /// Blocks of all areas.
    pub blocks: u32,
    /// Which process owned what slot, as [`crate::slots`] draws it.
    pub slots: Value,
}

impl SwapOutcome {
    /// The slides' formula.
    pub fn cost(&self) -> u64 {
        (systems::of_log().1.cost)(&self.operations)
    }

    /// A setting in force, as text.
    pub fn setting(&self, name: &str) -> &str {
        self.config["swap"][name].as_str().unwrap_or_default()
    }
}

/// Looks at the slots' owners in a whole trace.
const LOOKS: usize = 64;

/// The run, and whose each slot was over it.
fn simulate(
    config: &SwapConfig,
    trace: &SwapTrace,
    mut journal: Option<Sink<'_>>,
) -> Result<(SwapResult, Value), ReportError> {
    let mut run = SwapRun::new(config, trace).map_err(|e| ReportError::setting("swap", e.to_string()))?;
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
    Ok((run.result(), picture.json(|pid| format!("process {pid}"))))
}

/// Runs a plan over a trace that has been read.
///
/// # Errors
/// Numbers out of their bounds.
pub fn outcome(plan: &SwapPlan, trace: &SwapTrace) -> Result<SwapOutcome, ReportError> {
    kept(plan, trace, None)
}

fn kept(plan: &SwapPlan, trace: &SwapTrace, journal: Option<Sink<'_>>) -> Result<SwapOutcome, ReportError> {
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
        blocks: plan.config.areas.iter().map(|a| a.blocks).sum(),
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
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<SwapOutcome>, ReportError> {
    let plans = all.iter().map(swaps).collect::<Result<Vec<_>, _>>()?;
    let trace = read(path)?;
    let mut outcomes = Vec::with_capacity(plans.len());
    for (i, plan) in plans.iter().enumerate() {
        progress(i, plans.len());
        outcomes.push(outcome(plan, &trace)?);
    }
    Ok(outcomes)
}

/// Runs one configuration and hands the journal of its area to `sink`, piece by piece.
///
/// # Errors
/// As [`run`].
pub fn run_with_journal(path: &Path, settings: &Settings, sink: Sink<'_>) -> Result<SwapOutcome, ReportError> {
    kept(&swaps(settings)?, &read(path)?, Some(sink))
}

/// The JSON of some outcomes: an object for one, an array for a sweep.
///
/// # Errors
/// The trace cannot be hashed.
pub fn json(path: &Path, outcomes: &[SwapOutcome]) -> Result<Value, ReportError> {
    let mut trace = json!({ "path": path.display().to_string(), "sha256": sha256(path)? });
    if let Some(first) = outcomes.first().filter(|o| !o.notes.is_empty()) {
        trace["notes"] = json!(first.notes);
    }
    let all: Vec<Value> = outcomes.iter().map(|o| object(&trace, o)).collect();
    Ok(match <[Value; 1]>::try_from(all) {
        Ok([one]) => one,
        Err(all) => Value::Array(all),
    })
}

fn object(trace: &Value, o: &SwapOutcome) -> Value {
    let (r, f, w) = (&o.result, &o.result.flash, &o.wear);
    let ps = |t: Ps| t.0;
    json!({
        "schema_version": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "trace": trace,
        "config": o.config,
        "counts": {
            "swap_outs": r.swap_outs, "refused": r.refused, "touches": r.touches, "touches_in_ram": r.in_ram,
            "swap_ins": r.demand_reads, "demand_reads": r.demand_reads, "reads": r.reads, "read_ahead": r.cache.read_ahead,
            "read_ahead_hits": r.cache.hits, "read_ahead_wasted": r.cache.wasted,
            "swap_cache_pages_max": r.cache.held_max, "programs": f.programs, "copies": f.copies,
            "erase_copies": f.copies,
            "levelling_copies": f.levelling_copies, "erases": f.erases, "collections": f.collections,
            "invalidations": f.invalidations, "valid_slots_max": r.copies_max, "unknown_slots": r.unknown,
        },
        "wear": { "mean": w.mean, "standard_deviation": w.deviation, "min": w.min, "max": w.max, "blocks": o.blocks },
        "wear_map": wear_map(&r.erases),
        "slots": o.slots,
        "cost": o.cost(),
        "write_amplification": flash::write_amplification(o.operations),
        "time_ps": o.time.map(|t| json!({
            "reading": ps(t.reading), "programming": ps(t.programming), "collecting": ps(t.collecting),
        })),
        "life_years": o.life_years,
        "duration_ns": r.duration_ns,
    })
}

/// Size of the areas as shown.
pub fn size_text(o: &SwapOutcome) -> String {
    let n = o.config["swap"]["slots_per_block"].as_u64().unwrap_or(0);
    show_bytes(coldframe_core::Bytes(u64::from(o.blocks) * n * systems::of_log().1.slot.0))
}
