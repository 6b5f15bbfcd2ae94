//! Swap areas from names to results: a swap trace, configurations, and what each costs.

use std::path::Path;

use crate::systems::lobi;
use coldframe_core::swap::collect::{self, Collector};
use coldframe_core::swap::{linux, AreaConfig, Layout, SwapError, WearLevelling};
use coldframe_core::Ps;
use coldframe_device::flash::{self, FlashTime, Operations, Wear};
use coldframe_device::quantity::{self, show_bytes};
use coldframe_device::{sheet, Sheet};
use coldframe_sim::swap::read_ahead::Window;
use coldframe_sim::swap::{Keep, ReadAhead, SwapConfig, SwapResult, SwapRun, Translation};
use coldframe_trace::swap::{read, SwapOp, SwapTrace};
use serde_json::{json, Value};

use crate::error::{nearest, ReportError};
use crate::experiment::sha256;
use crate::result::{wear_map, SCHEMA_VERSION};
use crate::settings::{Settings, Swap};
use crate::slots::SlotPicture;

/// Where slots come from, as names.
pub const LAYOUTS: [&str; 3] = ["log", "linux", "linux-ftl"];

/// Linux's default cluster of pages read ahead (vm.page-cluster 3), and what LOBI starts with.
const READ_AHEAD_DEFAULT: u32 = 8;

/// Pages in the swap cache: 4 MiB. Neither slides nor kernel bound it by number; the kernel's is bounded by its RAM.
const CACHE_DEFAULT: u32 = 1024;

/// Percent that a translation layer keeps: what 1 GB of flash (2^30 bytes) sold as 10^9 leaves, 7.4 %, rounded down.
const SPARE_DEFAULT: u32 = 7;

/// A configuration with every name resolved.
#[derive(Clone, Debug)]
pub struct SwapPlan {
    /// For the simulator.
    pub config: SwapConfig,
    /// Every setting in force.
    pub shown: Value,
    /// For times and life.
    pub sheet: Sheet,
}

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
        lobi::cost(&self.operations)
    }

    /// A setting in force, as text.
    pub fn setting(&self, name: &str) -> &str {
        self.config["swap"][name].as_str().unwrap_or_default()
    }
}

fn bad<T>(field: &str, reason: impl Into<String>) -> Result<T, ReportError> {
    Err(ReportError::setting(format!("swap.{field}"), reason))
}

/// Resolves settings.
///
/// # Errors
/// Unknown names, numbers that cannot be.
pub fn resolve(settings: &Settings) -> Result<SwapPlan, ReportError> {
    let s = &settings.swap;
    let layout = s.layout.as_deref().unwrap_or("log");
    let cluster = s.cluster.unwrap_or(linux::CLUSTER);
    let (layout_in_area, translation) = match layout {
        "log" => (Layout::Log, None),
        "linux" => (Layout::Linux { cluster }, None),
        "linux-ftl" => (Layout::Log, Some(translation(s, cluster)?)),
        other => {
            let near = nearest(other, LAYOUTS.into_iter());
            return bad("layout", format!("there is no layout `{other}`; there are {}{near}", LAYOUTS.join(", ")));
        }
    };
    let (read_ahead, read_ahead_text) = read_ahead(s, layout)?;
    let (collector, victims) = collector(s)?;
    let start = s.start.unwrap_or(lobi::START);
    let stop = s.stop.unwrap_or(start);
    let wear = WearLevelling { dynamic: s.dynamic_wear_levelling.unwrap_or(true), spread_max: s.wear_spread_max };
    let (areas, blocks_text) = areas(s, |blocks, priority| AreaConfig {
        blocks,
        priority,
        layout: layout_in_area,
        collector,
        victims,
        start,
        stop,
        wear,
    })?;
    let (keep, keep_text) = match s.keep.as_deref() {
        None | Some("trace") => (Keep::Trace, "trace"),
        Some("until-touched") => (Keep::UntilTouched, "until-touched"),
        Some(other) => return bad("keep", format!("`{other}` is none; give trace or until-touched")),
    };
    let (slots_per_block, cache) =
        (s.slots_per_block.unwrap_or(lobi::SLOTS_PER_BLOCK), s.cache.unwrap_or(CACHE_DEFAULT));
    let sheet = sheet::find(settings.device.as_deref().unwrap_or("LOBI-NAND"))?;
    let mut shown = json!({
        "layout": layout, "blocks": blocks_text, "slots_per_block": slots_per_block, "read_ahead": read_ahead_text,
        "collector": format!("{}:{victims}", collector.name), "start": start, "stop": stop,
        "dynamic_wear_levelling": wear.dynamic, "cache": cache, "keep": keep_text,
    });
    if let Some(spread) = wear.spread_max {
        shown["wear_spread_max"] = spread.into();
    }
    if let Some(t) = translation {
        (shown["discard"], shown["spare_percent"]) = (t.discard.into(), t.spare_percent.into());
    }
    if layout != "log" {
        shown["cluster"] = cluster.into();
    }
    let shown = json!({ "system": lobi::SYSTEM.name, "device": sheet.name, "swap": shown });
    let config = SwapConfig { areas, slots_per_block, translation, read_ahead, cache: cache as usize, keep };
    Ok(SwapPlan { config, shown, sheet })
}

fn translation(s: &Swap, cluster: u32) -> Result<Translation, ReportError> {
    let spare_percent = s.spare_percent.unwrap_or(SPARE_DEFAULT);
    if cluster == 0 {
        return bad("cluster", "is 0; give at least 1");
    }
    match spare_percent {
        0..=90 => Ok(Translation { cluster, discard: s.discard.unwrap_or(false), spare_percent }),
        _ => bad("spare_percent", format!("is {spare_percent}; give 0 to 90")),
    }
}

/// `name:size`; Linux's own where the layout is Linux's.
fn read_ahead(s: &Swap, layout: &str) -> Result<(ReadAhead, String), ReportError> {
    let own = if layout == "log" { "block" } else { "aligned" };
    let text = s.read_ahead.clone().unwrap_or_else(|| format!("{own}:{READ_AHEAD_DEFAULT}"));
    let (name, size) = text.split_once(':').unwrap_or((&text, ""));
    let size = match size.parse::<u32>() {
        _ if name == "none" && size.is_empty() => 1,
        Ok(n) if (1..=1024).contains(&n) && n.is_power_of_two() => n,
        _ => {
            return bad(
                "read_ahead",
                format!("`{text}` is none; give none, block:8, aligned:8 or pages:8, a power of two up to 1024"),
            )
        }
    };
    let read_ahead = match name {
        "none" => ReadAhead::Slots(Window::Alone),
        "block" => ReadAhead::Slots(Window::Block(size)),
        "aligned" => ReadAhead::Slots(Window::Aligned(size)),
        "pages" => ReadAhead::Pages(size),
        other => return bad("read_ahead", format!("`{other}` is none; give none, block:8, aligned:8 or pages:8")),
    };
    Ok((read_ahead, text))
}

fn collector(s: &Swap) -> Result<(&'static Collector, u32), ReportError> {
    let text = s.collector.as_deref().unwrap_or("greedy");
    let (name, victims) = text.split_once(':').unwrap_or((text, "1"));
    // The slides' own abbreviations.
    let name = match name {
        "cb" => "cost-benefit",
        "cat" => "cost-age-times",
        "cba" => "cost-benefit-age",
        name => name,
    };
    let Some(collector) = collect::find(name) else {
        let names = || collect::ALL.iter().map(|c| c.name);
        let list: Vec<_> = names().collect();
        let near = nearest(name, names());
        return bad("collector", format!("there is no collector `{name}`; there are {}{near}", list.join(", ")));
    };
    match victims.parse() {
        Ok(n @ 1..=coldframe_core::swap::VICTIMS_MAX) => Ok((collector, n)),
        _ => bad("collector", format!("`{text}`: give 1 to 4 victims at a time, such as {name}:4")),
    }
}

fn areas(s: &Swap, make: impl Fn(u32, i16) -> AreaConfig) -> Result<(Vec<AreaConfig>, String), ReportError> {
    let text = match (&s.blocks, &s.size) {
        (Some(_), Some(_)) => return bad("size", "give swap.blocks or swap.size, not both: they mean the same thing"),
        (Some(blocks), None) => blocks.clone(),
        (None, None) => lobi::AREA_BLOCKS[3].to_string(),
        (None, Some(size)) => {
            let block = u64::from(s.slots_per_block.unwrap_or(lobi::SLOTS_PER_BLOCK)) * lobi::SLOT.0;
            let size = quantity::bytes(size).map_err(|e| ReportError::quantity("swap.size", e))?;
            (size.0 / block.max(1)).to_string()
        }
    };
    let area = |part: &str| {
        let (blocks, priority) = part.split_once('@').unwrap_or((part, "0"));
        Some(make(blocks.trim().parse().ok()?, priority.trim().parse().ok()?))
    };
    match text.split(',').map(area).collect::<Option<Vec<_>>>() {
        Some(areas) => Ok((areas, text)),
        None => bad("blocks", format!("`{text}` cannot be read; give 1024, or 512@5,1024@0 for areas with priorities")),
    }
}

/// Looks at the slots' owners in a whole trace.
const LOOKS: usize = 64;

/// The run, and whose each slot was over it.
fn simulate(config: &SwapConfig, trace: &SwapTrace) -> Result<(SwapResult, Value), SwapError> {
    let mut run = SwapRun::new(config, trace)?;
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
    }
    Ok((run.result(), picture.json(|pid| format!("process {pid}"))))
}

/// Runs a plan over a trace that has been read.
///
/// # Errors
/// Numbers out of their bounds.
pub fn outcome(plan: &SwapPlan, trace: &SwapTrace) -> Result<SwapOutcome, ReportError> {
    let (result, slots) = simulate(&plan.config, trace).map_err(|e| ReportError::setting("swap", e.to_string()))?;
    let counts = &result.flash;
    let operations =
        Operations { reads: result.reads, programs: counts.programs, copies: counts.copies, erases: counts.erases };
    let wear = flash::wear(&result.erases);
    let cycles = plan.sheet.cycles().ok();
    Ok(SwapOutcome {
        notes: trace.notes.clone(),
        config: plan.shown.clone(),
        operations,
        wear,
        time: flash::flash_time(&plan.sheet, lobi::SLOT, operations).ok(),
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
    let plans = all.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let trace = read(path)?;
    let mut outcomes = Vec::with_capacity(plans.len());
    for (i, plan) in plans.iter().enumerate() {
        progress(i, plans.len());
        outcomes.push(outcome(plan, &trace)?);
    }
    Ok(outcomes)
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
    show_bytes(coldframe_core::Bytes(u64::from(o.blocks) * n * lobi::SLOT.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &str) -> Result<SwapPlan, ReportError> {
        resolve(&Settings::read(None, &[format!("swap.{set}")])?)
    }

    #[test]
    fn names_are_resolved_and_wrong_ones_named() {
        let plan = with("collector=cost-age-times:4").unwrap();
        assert_eq!(plan.config.areas[0].victims, 4);
        assert_eq!(with("blocks=512@5,1024@-1").unwrap().config.areas[1].priority, -1);
        assert_eq!(with("layout=linux").unwrap().shown["swap"]["read_ahead"], "aligned:8");
        for (set, said) in [
            ("layout=lug", "did you mean `log`"),
            ("collector=gredy", "did you mean `greedy`"),
            ("collector=greedy:5", "1 to 4"),
            ("read_ahead=block", "block:8"),
            ("read_ahead=block:7", "power of two"),
            ("read_ahead=blok:8", "block:8"),
            ("keep=ever", "until-touched"),
            ("blocks=many", "512@5"),
            ("colector=greedy", "colector"),
        ] {
            let error = with(set).unwrap_err();
            assert!(error.to_string().contains(said), "{set}: {error}");
            assert_eq!(error.code(), 2);
        }
    }
}
