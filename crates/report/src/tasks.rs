//! Several tasks on one processor (the system `sap`): from settings and a trace with a task column to runs of the machine of tasks.
//!
//! The trace says what each task does and in which order; who runs when is decided by the scheduler, whatever the trace's own order of
//! tasks was. All references are held in memory, 12 bytes a run of references to one page.

use std::path::Path;

use crate::systems::{self, sap, Driver};
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::{Bytes, Caps, Ps};
use coldframe_sim::machine::{MachineConfig, Zeros};
use coldframe_sim::tasks::{
    Activation, Area, Cpu, OnFault, Prefetching, Program, TaskSpec, TasksConfig, TasksResult, TraceTasks, CAPS,
};
use coldframe_sim::DeviceTimes;
use coldframe_sim::{scheduler, RunError};
use coldframe_trace::journal::SwapHead;
use coldframe_trace::{Fidelity, Provenance, Reader, Wanted};
use rayon::prelude::*;

use crate::error::{nearest, ReportError};
use crate::experiment::{self, pages_touched, Sink};
use crate::foreground::SwapArea;
use crate::plan::{self, optional_time, Engine, Plan};
use crate::result::TraceFacts;
use crate::settings::{Settings, Swap, Tasks};

mod show;

pub(crate) use show::{failures, share};
pub use show::{json, table};

/// More tasks than any recording of ours; a bound on what a slip of the pen can allocate.
const TASKS_MAX: usize = 4096;
/// Configurations for each processor between two words of progress.
const AT_ONCE: usize = 4;

/// A run and what it was.
#[derive(Clone, Debug)]
pub struct TasksOutcome {
    /// Every setting in force.
    pub config: serde_json::Value,
    /// The scheduler.
    pub scheduler: &'static str,
    /// When the next task's pages are loaded.
    pub prefetch: String,
    /// The trace.
    pub trace: TraceFacts,
    /// Frames.
    pub frames: usize,
    /// Bytes of a page.
    pub page: u64,
    /// The device has no time for a page that is written.
    pub writes_unpriced: bool,
    /// Pages that the tasks touch together.
    pub pages: usize,
    /// By task: its number in the trace, and the name that the trace has for it.
    pub names: Vec<(u32, String)>,
    /// What was found out.
    pub result: TasksResult,
}

/// Runs every configuration; `progress` hears how many are done, and may end the run.
///
/// # Errors
/// Settings that do not resolve, a trace that cannot be read or is none of references.
pub fn run(
    path: &Path,
    all: &[Settings],
    progress: &mut dyn FnMut(usize, usize) -> Result<(), ReportError>,
) -> Result<Vec<TasksOutcome>, ReportError> {
    run_prefix(path, all, u64::MAX, progress)
}

/// Runs one configuration and hands its journal to `sink`, piece by piece.
///
/// # Errors
/// As [`run`].
pub fn run_with_journal(
    path: &Path,
    settings: &Settings,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), ReportError>,
) -> Result<TasksOutcome, ReportError> {
    let trace = Reader::open(path)?.provenance().clone();
    check(path, &trace)?;
    let plan = resolve(path, settings, &trace)?;
    let tasks = read(path, plan.shift, u64::MAX, &trace)?;
    let facts = experiment::facts(path, &trace)?;
    simulate(&plan, &tasks, &trace, &facts, Some(sink))
}

/// As [`run`], over what the tasks do in the first `rows` rows of the trace.
///
/// # Errors
/// As [`run`].
pub fn run_prefix(
    path: &Path,
    all: &[Settings],
    rows: u64,
    progress: &mut dyn FnMut(usize, usize) -> Result<(), ReportError>,
) -> Result<Vec<TasksOutcome>, ReportError> {
    let trace = Reader::open(path)?.provenance().clone();
    check(path, &trace)?;
    let plans = all.iter().map(|settings| resolve(path, settings, &trace)).collect::<Result<Vec<_>, _>>()?;
    let mut shifts: Vec<u32> = plans.iter().map(|plan| plan.shift).collect();
    shifts.sort_unstable();
    shifts.dedup();
    let read = |shift: &u32| Ok::<_, ReportError>((*shift, read(path, *shift, rows, &trace)?));
    let tasks = shifts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let facts = experiment::facts(path, &trace)?;
    let simulate = |plan: &TasksPlan| {
        let (_, tasks) = tasks.iter().find(|(shift, _)| *shift == plan.shift).expect("read above");
        simulate(plan, tasks, &trace, &facts, None)
    };
    let mut outcomes = Vec::with_capacity(plans.len());
    for some in plans.chunks(AT_ONCE * rayon::current_num_threads()) {
        outcomes.extend(some.par_iter().map(simulate).collect::<Result<Vec<_>, _>>()?);
        progress(outcomes.len(), plans.len())?;
    }
    Ok(outcomes)
}

fn check(path: &Path, trace: &Provenance) -> Result<(), ReportError> {
    let unfit = |reason: &str| Err(ReportError::Unfit { path: path.display().to_string(), reason: reason.into() });
    match trace.fidelity {
        Fidelity::Sampled => {
            unfit("the trace is sampled, so that its tasks' references are not known; record every reference")
        }
        Fidelity::Faults => {
            unfit("the trace holds faults only, so that its tasks' time is not known; record every reference")
        }
        _ if trace.references == 0 => unfit("the trace has no references"),
        _ => Ok(()),
    }
}

fn read(path: &Path, shift: u32, rows: u64, trace: &Provenance) -> Result<TraceTasks, ReportError> {
    let mut reader = Reader::open(path)?;
    let columns = reader.columns();
    let wanted = Wanted { task: columns.task, count: columns.count, time: false, ..Wanted::ACCESS };
    let mut at = 0;
    let next = |block: &mut coldframe_trace::Block| {
        if at >= rows {
            return Ok(false);
        }
        let found = reader.read(block, wanted)? as u64;
        at += found;
        Ok::<_, ReportError>(found > 0)
    };
    let tasks = TraceTasks::read(shift, &plan::spaces(trace), columns.count, next)?;
    if tasks.programs.len() > TASKS_MAX {
        let reason = format!("{} tasks are more than the {TASKS_MAX} that are simulated", tasks.programs.len());
        return Err(ReportError::Unfit { path: path.display().to_string(), reason });
    }
    Ok(tasks)
}

/// A configuration with every name resolved.
struct TasksPlan {
    shift: u32,
    config: TasksConfig,
    rounds: u32,
    pause: Ps,
    /// The device has no time for a page that is written.
    unpriced: bool,
    scheduler: &'static str,
    prefetch: String,
    shown: serde_json::Value,
}

fn resolve(path: &Path, settings: &Settings, trace: &Provenance) -> Result<TasksPlan, ReportError> {
    let mut settings = settings.clone();
    settings.system.get_or_insert_with(|| systems::with_driver(Driver::Tasks).name.into());
    one_string_only(&settings)?;
    // A system with a backing names the device of its area; pages that are in no area lie on a device that loads by itself.
    if matches!(systems::of(&settings).map(|system| system.area), Some(systems::Area::Backed(..))) {
        settings.device.get_or_insert_with(|| (systems::with_driver(Driver::Tasks).defaults)().device.into());
    }
    // Front ends filter one string of references; here the tasks' own come straight to the page table.
    settings.front_end.name = Some("none".into());
    let mut footprint = |front: &plan::FrontKey| pages_touched(path, front);
    let backed = SwapArea::resolve(&settings, &mut || Ok(Bytes(footprint_of(path, &settings, trace)?)))?;
    let bare =
        Settings { swap: if backed.is_some() { Swap::default() } else { settings.swap.clone() }, ..settings.clone() };
    let Plan { front, engine, swap, mut config, .. } = plan::resolve(&bare, trace, &mut footprint)?;
    let settings = &settings;
    let Engine::Lane(lane) = engine else {
        return Err(ReportError::setting(
            "policy",
            "an oracle schedules no tasks; give a policy, such as second-chance",
        ));
    };
    let t = &settings.tasks;
    let prefetching = prefetching(t)?;
    let (name, scheduler) = find_scheduler(t)?;
    config["tasks"] = show::settings(t, name, &prefetching);
    // The device moves the page by itself (section 3 asks for DMA), so that the transfer is its time and not the processor's.
    let device = DeviceTimes { load: lane.device.load + lane.prices.trans_host_mem, program: lane.device.program };
    let prices = coldframe_device::StagePrices { trans_host_mem: Ps::ZERO, ..lane.prices };
    let mut machine = MachineConfig::device(prices, device, Zeros::Once);
    machine.failures = lane.failures;
    // A handler that runs pages from the device's buffers has as many as there are; others have one for each load.
    let buffers = if lane.handler.needs_xip { lane.caps.buffers } else { CAPS.buffers };
    let mut caps = Caps { buffers, ..lane.caps };
    let mut area = Area::None;
    let mut frames = lane.frames;
    if let Some((swap, collect)) = swap {
        area = Area::Flash(SwapHead { slots_per_block: swap.slots_per_block, areas: swap.areas });
        machine.collect = collect;
    }
    if let Some(backed) = backed {
        config["swap"] = backed.shown.clone();
        let left = (lane.frames as u64).saturating_sub(backed.takes.0.div_ceil(1 << front.page_shift)) as usize;
        if left == 0 {
            return Err(ReportError::setting(
                "swap.size",
                "takes all RAM when it is full, and leaves no frame; give less",
            ));
        }
        frames = left;
        config["frames"] = left.into();
        (machine.area, machine.slot_read, machine.reads_max) = (backed.route, backed.slot_read, backed.reads_max);
        (caps.direct_read, machine.collect, area) = (backed.direct_read, backed.collect, backed.area);
    }
    let config_of_tasks = TasksConfig {
        policy: lane.policy,
        handler: lane.handler,
        frames,
        evict_batch: lane.evict_batch,
        machine,
        caps,
        area,
        xip_surplus: front.idle.xip_surplus,
        reference: if front.idle.reference == Ps::ZERO { sap::REFERENCE } else { front.idle.reference },
        tick: positive_time("tasks.tick", &t.tick, sap::TICK)?,
        scheduler,
        slice: t.slice.as_ref().map(|_| positive_time("tasks.slice", &t.slice, Ps::ZERO)).transpose()?,
        on_fault: on_fault(t)?,
        prefetching,
    };
    let rounds = t.rounds.unwrap_or(1);
    if rounds == 0 {
        return Err(ReportError::setting("tasks.rounds", "is 0; give at least 1"));
    }
    let pause = optional_time("tasks.pause", &t.pause)?.unwrap_or(Ps::ZERO);
    Ok(TasksPlan {
        shift: front.page_shift,
        config: config_of_tasks,
        rounds,
        pause,
        unpriced: device.program.is_none(),
        scheduler: name,
        prefetch: prefetch(t).into(),
        shown: config,
    })
}

/// What only one string of references has.
fn one_string_only(s: &Settings) -> Result<(), ReportError> {
    let front_end = s.front_end.name.as_deref().is_some_and(|name| name != "none");
    for (field, given, why) in [
        ("front_end.name", front_end, "filters one string of references, and several tasks have as many; leave it out"),
        (
            "main_memory",
            s.main_memory.is_some(),
            "needs the front end l1, which filters one string of references; leave it out",
        ),
        (
            "machine.read_ahead",
            s.machine.read_ahead.is_some_and(|pages| pages > 0),
            "follows streams of one string of references; leave it out",
        ),
        ("limit.accesses", s.limit.accesses.is_some(), "counts accesses of one string of references; leave it out"),
    ] {
        if given {
            return Err(ReportError::setting(field, why));
        }
    }
    Ok(())
}

/// Bytes that all tasks touch together.
fn footprint_of(path: &Path, settings: &Settings, trace: &Provenance) -> Result<u64, ReportError> {
    let bare = Settings { swap: Swap::default(), frames: Some(1), ram: None, ..settings.clone() };
    let front = plan::resolve(&bare, trace, &mut |_| Ok(1))?.front;
    Ok((pages_touched(path, &front)? as u64) << front.page_shift)
}

fn positive_time(field: &str, text: &Option<String>, default: Ps) -> Result<Ps, ReportError> {
    match optional_time(field, text)? {
        Some(Ps::ZERO) => Err(ReportError::setting(field, "is 0; give a time, such as 1ms")),
        time => Ok(time.unwrap_or(default)),
    }
}

fn find_scheduler(t: &Tasks) -> Result<(&'static str, scheduler::Make), ReportError> {
    let wanted = t.scheduler.as_deref().unwrap_or("cfs");
    scheduler::ALL.iter().copied().find(|(name, _)| *name == wanted).ok_or_else(|| {
        let names = || scheduler::ALL.iter().map(|(name, _)| *name);
        let list: Vec<_> = names().collect();
        let reason =
            format!("there is no scheduler `{wanted}`; there are {}{}", list.join(", "), nearest(wanted, names()));
        ReportError::setting("tasks.scheduler", reason)
    })
}

fn on_fault(t: &Tasks) -> Result<OnFault, ReportError> {
    match t.on_fault.as_deref() {
        None | Some("sleeps") => Ok(OnFault::Sleeps),
        Some("keeps") => Ok(OnFault::Keeps),
        Some(other) => Err(ReportError::setting("tasks.on_fault", format!("`{other}` is none; give sleeps or keeps"))),
    }
}

/// When the next task's pages are loaded.
fn prefetch(t: &Tasks) -> &str {
    t.prefetch.as_deref().unwrap_or("75")
}

fn prefetching(t: &Tasks) -> Result<Prefetching, ReportError> {
    let arrival = match t.arrival.as_deref() {
        None | Some("mapped") => Arrival::MappedBehindSlice,
        Some("unmapped") => Arrival::BehindSlice,
        Some(other) => {
            return Err(ReportError::setting("tasks.arrival", format!("`{other}` is none; give mapped or unmapped")))
        }
    };
    let depth = t.depth.unwrap_or(sap::DEPTH);
    let list_max = t.list.unwrap_or(LIST_MAX);
    for (field, value, most) in [("tasks.depth", depth as usize, 1 << 12), ("tasks.list", list_max, 1 << 20)] {
        if value > most || (field == "tasks.depth" && value == 0) {
            return Err(ReportError::setting(field, format!("is {value}; give from 1 to {most}")));
        }
    }
    Ok(Prefetching {
        activation: activation(prefetch(t))?,
        list_max,
        idle_max: Some(t.idle.unwrap_or(sap::IDLE_MAX)).filter(|idle| *idle > 0),
        depth,
        ready_min: t.ready_min.unwrap_or(2),
        follow: t.follow.unwrap_or(false),
        renew: t.renew.unwrap_or(false),
        arrival,
    })
}

/// `off`, `75`, `50`, `xi=0.6`, `timer=0.6` or `adaptive`.
fn activation(text: &str) -> Result<Activation, ReportError> {
    let bad = || {
        let reason = format!("`{text}` is none; give off, 75, 50, xi=0..1, timer=0..1 or adaptive");
        ReportError::setting("tasks.prefetch", reason)
    };
    let part = |text: &str| text.parse::<f64>().ok().filter(|xi| (0.0..=1.0).contains(xi)).ok_or_else(bad);
    match (text, text.split_once('=')) {
        ("off", _) => Ok(Activation::Never),
        ("adaptive", _) => Ok(Activation::Adaptive),
        (_, Some(("xi", xi))) => Ok(Activation::Tick(part(xi)?)),
        (_, Some(("timer", xi))) => Ok(Activation::Timer(part(xi)?)),
        (percent, None) => match percent.parse::<u32>() {
            Ok(percent @ 0..=100) => Ok(Activation::Tick(f64::from(percent) / 100.0)),
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

fn simulate(
    plan: &TasksPlan,
    tasks: &TraceTasks,
    trace: &Provenance,
    facts: &TraceFacts,
    journal: Option<Sink<'_>>,
) -> Result<TasksOutcome, ReportError> {
    // One numbering for all, so that tasks of one process share pages.
    let spec = |program: &Program| TaskSpec {
        program: Program { pages: tasks.pages as u32, ..program.clone() },
        first_page: 0,
        rounds: Some(plan.rounds),
        pause: plan.pause,
        begins: Ps::ZERO,
        nice: 0,
        job: None,
    };
    let specs: Vec<TaskSpec> = tasks.programs.iter().map(|(_, program)| spec(program)).collect();
    let mut cpu = Cpu::new(&plan.config, &specs).map_err(RunError::from)?;
    let result = match journal {
        None => cpu.run(),
        Some(sink) => {
            cpu.keep_journal();
            cpu.run_with_journal(sink)?
        }
    };
    let name = |id: u32| trace.tasks.iter().find(|task| task.id == id).map_or(String::new(), |task| task.name.clone());
    Ok(TasksOutcome {
        trace: facts.clone(),
        config: plan.shown.clone(),
        scheduler: plan.scheduler,
        prefetch: plan.prefetch.clone(),
        frames: plan.config.frames,
        page: 1 << plan.shift,
        writes_unpriced: plan.unpriced && result.counts.dirty_evictions > 0,
        pages: tasks.pages,
        names: tasks.programs.iter().map(|(id, _)| (*id, name(*id))).collect(),
        result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activation_is_a_word_a_percentage_or_a_fraction() {
        assert_eq!(activation("off").unwrap(), Activation::Never);
        assert_eq!(activation("75").unwrap(), Activation::Tick(0.75));
        assert_eq!(activation("xi=0.6").unwrap(), Activation::Tick(0.6));
        assert_eq!(activation("timer=1").unwrap(), Activation::Timer(1.0));
        assert_eq!(activation("adaptive").unwrap(), Activation::Adaptive);
        for bad in ["", "101", "-1", "xi=", "xi=1.1", "xi=nan", "timer", "soon=1"] {
            let error = activation(bad).unwrap_err();
            assert!(error.to_string().contains("tasks.prefetch"), "{bad}: {error}");
        }
    }
}
