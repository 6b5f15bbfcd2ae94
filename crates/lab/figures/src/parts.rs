//! The effects of each system's part on a program, alone and with the others ([`systems::Part`]): every possible set of
//! parts, on one machine and one trace.
//!
//! ```text
//!   base: one device, Linux's map of slots on it, the frame first and then the load
//!     + the parts of a set, in the order of the systems ─► Settings ─► are they compatible? ─► the driver of tasks
//! ```
//!
//! Like is compared with like: each set has the same bytes of memory, and the same machine. The device moves pages by
//! itself if a part that can be tried requires it; otherwise the processor moves them.
//!
//! Call [`study`] for a trace, then [`show::table`] or [`show::bars`] with all studies. Fault time is all time that the
//! tasks do not spend on their references: faults, loads with no task that can run in the meantime, and the extra time
//! of reads in place. It also changes the order in which tasks run. So with several tasks, a part can change by chance
//! which pages are in RAM together: each figure is the mean over five sizes.

use std::collections::BTreeMap;
use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::{Bytes, Ps};
use coldframe_experiment::sim_result::{InForce, SCHEMA_VERSION};
use coldframe_experiment::systems::{self, Part};
use coldframe_experiment::tasks::{self, Counted, TasksOutcome};
use coldframe_experiment::{ExperimentError, Progress, Settings};
use coldframe_sheet::{quantity, sheet, Sheet};
use schemars::JsonSchema;
use serde::Serialize;

pub mod bars;
pub mod show;

/// The result of one set of parts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Combination {
    /// The systems whose parts are in it; empty: none.
    pub parts: Vec<String>,
    /// Time beyond the tasks' references, as everything here the mean over the sizes of RAM.
    pub fault_time_ps: u64,
    /// The same at each size.
    pub fault_times_ps: Vec<u64>,
    /// The whole run.
    pub time_ps: u64,
    /// Of the devices that hold the pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_pj: Option<u64>,
    /// The same by term.
    pub energy_terms_pj: BTreeMap<String, u64>,
    /// Pages that the device has loaded.
    pub device_reads: u64,
    /// Pages written to it.
    pub device_writes: u64,
    /// Pages that left RAM changed.
    pub dirty_evictions: u64,
    /// Why a part alone changed neither fault time nor reads; `None`: it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<&'static str>,
    /// Every setting in force at the size that was asked for, for `coldframe-lab sim -c`.
    pub config: InForce,
}

/// Parts that do not go together, or one that does not go with the device or the trace, and why.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Excluded {
    /// The systems.
    pub parts: Vec<String>,
    /// The reason.
    pub why: String,
}

/// The results for one trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Study {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`KIND`].
    pub kind: String,
    /// Of the program.
    pub version: String,
    /// The trace.
    pub trace: String,
    /// Of its bytes.
    pub sha256: String,
    /// Tasks in it.
    pub tasks: usize,
    /// Different pages touched.
    pub pages: usize,
    /// Of these, pages that are written: only they can be swapped out.
    pub written: usize,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// RAM that was asked for; what a part has next to it is taken from it.
    pub ram_bytes: u64,
    /// Pages of RAM of each size that was tried.
    pub frames: Vec<u64>,
    /// Whether the device moves pages by itself.
    pub dma: bool,
    /// The device.
    pub device: String,
    /// Why there are no energies; `None`: there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_energy: Option<String>,
    /// None first, then each part alone in the order of the systems, then all other sets.
    pub combinations: Vec<Combination>,
    /// The sets that are not among them.
    pub excluded: Vec<Excluded>,
}

/// The kind by which a study differs from other results.
pub const KIND: &str = "parts";

impl Study {
    pub fn none(&self) -> &Combination {
        &self.combinations[0]
    }

    /// These parts and no others; `None`: they cannot be together.
    pub fn of(&self, parts: &[&str]) -> Option<&Combination> {
        self.combinations.iter().find(|one| one.parts == parts)
    }

    /// The set with the least fault time, of at least one part; the smaller set if two take the same time. `None`: no
    /// part can be tried.
    pub fn best(&self) -> Option<&Combination> {
        best(&self.combinations)
    }

    pub fn best_without(&self, part: &str) -> Option<&Combination> {
        let rest: Vec<&str> = self.best()?.parts.iter().map(String::as_str).filter(|name| *name != part).collect();
        self.of(&rest)
    }
}

fn best(combinations: &[Combination]) -> Option<&Combination> {
    let sets = combinations.iter().filter(|one| !one.parts.is_empty());
    sets.min_by_key(|one| (one.fault_time_ps, one.parts.len()))
}

/// Every system's parts, in the order of the systems.
pub fn all() -> impl Iterator<Item = &'static Part> {
    systems::ALL.iter().flat_map(|system| system.parts)
}

/// Every set of the systems' first parts, smaller sets first, and the other parts alone.
fn sets() -> Vec<Vec<&'static Part>> {
    let mut sets = vec![Vec::new()];
    for first in systems::ALL.iter().filter_map(|system| system.parts.first()) {
        let more: Vec<_> = sets.iter().map(|set: &Vec<_>| [&set[..], &[first]].concat()).collect();
        sets.extend(more);
    }
    sets.extend(systems::ALL.iter().flat_map(|system| system.parts.iter().skip(1)).map(|part| vec![part]));
    sets.sort_by_key(Vec::len);
    sets
}

/// This set with another part of a system in place of its own.
fn others(set: &[String]) -> Vec<Vec<&'static Part>> {
    let own = |system: &systems::System| system.parts.iter().find(|part| set.iter().any(|name| name == part.name));
    let own: Vec<(_, &Part)> = systems::ALL.iter().filter_map(|system| Some((*system, own(system)?))).collect();
    let with = |other: &'static Part, system: &str| {
        own.iter().map(|(of, part)| if of.name == system { other } else { part }).collect()
    };
    own.iter().flat_map(|(system, _)| system.parts.iter().skip(1).map(|other| with(other, system.name))).collect()
}

/// The machine without any part, with the user's settings. RAM is by default half of the touched memory.
fn base(settings: &Settings, counted: &Counted) -> Settings {
    let mut base = settings.clone();
    base.device.get_or_insert_with(|| DEVICE.into());
    if base.frames.is_none() {
        base.ram.get_or_insert_with(|| "50%".into());
    }
    base.handler = Some("sequential".into());
    base.tasks.prefetch = Some("off".into());
    base.machine.dma.get_or_insert_with(|| all().any(|part| part.needs_dma && part.tasks_min <= counted.tasks));
    base.machine.cache_line.get_or_insert_with(|| "32B".into());
    base.swap.layout = Some("linux".into());
    base.swap.blocks.get_or_insert_with(|| blocks(counted.written).to_string());
    base
}

/// The device on which all parts can be tried.
const DEVICE: &str = "OneNAND-4K";

/// RAM of the sizes that are tried, in percent of what was asked for.
const AROUND: [u64; 5] = [100, 90, 95, 105, 110];

/// Erase blocks of a swap area for this many pages: a quarter more than they fill, and those that a log keeps free.
fn blocks(pages: usize) -> usize {
    let of = systems::of_log().1;
    (pages * 5 / 4).div_ceil(of.slots_per_block as usize) + 2 * of.start as usize
}

/// The effects of each part on this trace, and of all compatible sets. `machine` describes it: RAM, device,
/// policy, scheduler and so on. Handler, swap area and prefetching come from the parts.
pub fn study(path: &Path, machine: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Study, ExperimentError> {
    let page = match &machine.page {
        Some(text) => quantity::bytes(text).map_err(|e| ExperimentError::quantity("page", e))?,
        None => systems::of_tasks().0.defaults.page,
    };
    let counted = tasks::counted(path, page.0.max(1).trailing_zeros())?;
    let base = base(machine, &counted);
    let device = sheet::find(base.device.as_deref().unwrap_or(DEVICE))?;
    let mut possible = Vec::new();
    let mut excluded: Vec<Excluded> = Vec::new();
    for set in sets() {
        let names = names(&set);
        // If a smaller set is not possible, no larger set is.
        if excluded.iter().any(|one| one.parts.iter().all(|part| names.contains(part))) {
            continue;
        }
        match refused(&settings(&base, &set), &set, &device, page, counted.tasks) {
            Some(why) => excluded.push(Excluded { parts: names, why }),
            None => possible.push(set),
        }
    }
    let first = tasks::run(path, std::slice::from_ref(&base), &mut |_| ())?.remove(0);
    let frames = AROUND.map(|percent| (first.frames as u64 * percent / 100).max(1)).to_vec();
    let at = |frames: &u64| Settings { ram: None, frames: Some(*frames), ..base.clone() };
    let sized = |set: &Vec<&Part>| frames.iter().map(|frames| settings(&at(frames), set)).collect::<Vec<_>>();
    let mut no_energy = None;
    let mut run = |sets: &[Vec<&'static Part>]| {
        let outcomes = tasks::run(path, &sets.iter().flat_map(sized).collect::<Vec<_>>(), progress)?;
        no_energy = no_energy.take().or_else(|| outcomes.iter().find_map(|outcome| outcome.energy.clone().err()));
        let of_set = |(set, outcomes): (&Vec<&Part>, &[TasksOutcome])| combination(set, outcomes);
        Ok::<Vec<Combination>, ExperimentError>(sets.iter().zip(outcomes.chunks(frames.len())).map(of_set).collect())
    };
    let mut combinations = run(&possible)?;
    let none = (combinations[0].fault_times_ps.clone(), combinations[0].device_reads);
    combinations
        .iter_mut()
        .filter(|one| (&one.fault_times_ps, one.device_reads) != (&none.0, none.1))
        .for_each(|one| one.idle = None);
    if let Some(best) = best(&combinations).filter(|best| best.parts.len() > 1) {
        combinations.extend(run(&others(&best.parts.clone()))?);
    }
    Ok(Study {
        schema_version: SCHEMA_VERSION,
        kind: KIND.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        trace: path.display().to_string(),
        sha256: first.trace.sha256.clone(),
        tasks: counted.tasks,
        pages: counted.pages,
        written: counted.written,
        page_bytes: first.page,
        ram_bytes: first.frames as u64 * first.page,
        frames,
        dma: base.machine.dma == Some(true),
        device: device.name,
        no_energy,
        combinations,
        excluded,
    })
}

fn names(set: &[&Part]) -> Vec<String> {
    set.iter().map(|part| part.name.to_string()).collect()
}

fn settings(base: &Settings, set: &[&Part]) -> Settings {
    let mut settings = base.clone();
    set.iter().for_each(|part| (part.apply)(&mut settings));
    settings
}

/// Why this set cannot be, by what the device's sheet has and what the trace is.
fn refused(s: &Settings, set: &[&Part], device: &Sheet, page: Bytes, tasks: usize) -> Option<String> {
    if let Some(part) = set.iter().find(|part| part.tasks_min > tasks) {
        let of = if tasks == 1 { "one task".into() } else { format!("{tasks} tasks") };
        return Some(format!("the trace has {of}, and {} must take turns", part.tasks_min));
    }
    if s.machine.dma != Some(true) && set.iter().any(|part| part.needs_dma) {
        return Some("its paper requires a device that moves pages by itself; give machine.dma=true".into());
    }
    let held = s.handler.as_deref().and_then(handler::find).is_some_and(|handler| handler.needs_xip);
    no_buffer(s, device, page).filter(|_| held)
}

/// Why no page can be read in the device's buffers.
fn no_buffer(s: &Settings, device: &Sheet, page: Bytes) -> Option<String> {
    if device.read().is_err() && s.time.xip_read.is_none() {
        return Some(format!("{} has no time.read: its page buffer cannot be read as memory", device.name));
    }
    let buffers = s.machine.buffers.map_or_else(|| device.buffers(), Ok);
    match (buffers, device.page()) {
        (Ok(buffers), _) if buffers < 2 => {
            Some(format!("{} has {buffers} page buffer, and the next load needs one beside the page", device.name))
        }
        (_, Ok(buffer)) if !buffer.0.is_multiple_of(page.0) => Some(format!(
            "a page of {} does not fit the buffers of {} of {}",
            quantity::show_bytes(page),
            quantity::show_bytes(buffer),
            device.name
        )),
        _ => None,
    }
}

/// The results of a set at each size of RAM; the requested size is first.
fn combination(set: &[&Part], outcomes: &[TasksOutcome]) -> Combination {
    let mean = |of: &dyn Fn(&TasksOutcome) -> u64| outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64;
    let fault_time = |outcome: &TasksOutcome| {
        let useful: Ps = outcome.result.tasks.iter().map(|task| task.useful).sum();
        outcome.result.time.saturating_sub(useful).0
    };
    let mut terms: BTreeMap<String, u64> = BTreeMap::new();
    for (name, energy) in outcomes.iter().flat_map(|outcome| outcome.energy.iter().flatten()) {
        *terms.entry(name.to_string()).or_default() += energy.0 / outcomes.len() as u64;
    }
    let known = outcomes.iter().all(|outcome| outcome.energy.is_ok());
    Combination {
        parts: names(set),
        fault_time_ps: mean(&fault_time),
        fault_times_ps: outcomes.iter().map(fault_time).collect(),
        time_ps: mean(&|outcome| outcome.result.time.0),
        energy_pj: known.then(|| terms.values().sum()),
        energy_terms_pj: terms,
        device_reads: mean(&|outcome| outcome.result.device_reads),
        device_writes: mean(&|outcome| outcome.result.device_writes),
        dirty_evictions: mean(&|outcome| outcome.result.counts.dirty_evictions),
        idle: if let [part] = set { Some((part.idle)(&outcomes[0].result)) } else { None },
        config: outcomes[0].config.clone(),
    }
}

/// Whether these settings leave the parts to the study.
pub fn check(settings: &Settings) -> Result<(), ExperimentError> {
    const WHY: &str = "is what a part sets; leave it out";
    const SYSTEM: &str = "brings defaults of its own; here every system's part is tried; leave it out";
    let own = [
        ("system", settings.system.is_some(), SYSTEM),
        ("handler", settings.handler.is_some(), WHY),
        ("swap.backing", settings.swap.backing.is_some(), WHY),
        ("swap.layout", settings.swap.layout.is_some(), WHY),
        ("swap.size", settings.swap.size.is_some(), WHY),
        ("tasks.prefetch", settings.tasks.prefetch.is_some(), WHY),
    ];
    match own.into_iter().find(|(_, is_set, _)| *is_set) {
        Some((field, _, why)) => Err(ExperimentError::setting(field, why)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
