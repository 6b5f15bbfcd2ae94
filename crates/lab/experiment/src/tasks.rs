//! Several tasks on one processor: from settings and a trace with a task column to runs of the machine of tasks.
//!
//! The trace says what each task does and in which order. The scheduler decides who runs when, whatever the trace's own
//! order of tasks was; in the foreground ([`OnPhone`]) it is the trace's order and time. All references are held in
//! memory, 12 bytes for each run of references to one page.

use std::path::{Path, PathBuf};

use coldframe_core::{Pj, Ps};
use coldframe_drivers::tasks::{Cpu, Program, TaskResult, TaskSpec, TasksResult, TraceTasks};
use coldframe_drivers::RunError;
use coldframe_store::{Block, Fidelity, Provenance, Reader, Wanted};
use rayon::prelude::*;

use crate::error::ExperimentError;
use crate::in_force::InForce;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::{self, Drive, TasksPlan};
use crate::settings::Settings;
use crate::string::{self, pages_by_front};
use crate::systems;
use crate::systems::backing::PAGE;
use crate::systems::front_end::spaces;
use crate::traced::Trace;

mod energy;
mod foreground;

pub use foreground::{run_on_phone, OnPhone};

/// More tasks than any of our recordings has; a limit on what a typing error can allocate.
const TASKS_MAX: usize = 4096;
/// Configurations for each processor between two reports of progress.
const AT_ONCE: usize = 4;

/// A run: its settings and its result.
#[derive(Clone, Debug)]
pub struct TasksOutcome {
    pub config: InForce,
    pub trace: Trace,
    pub frames: usize,
    /// Bytes of a page.
    pub page: u64,
    /// Whether the device's sheet has no time for a page that is written.
    pub writes_unpriced: bool,
    /// Pages that the tasks touch together.
    pub pages: usize,
    /// By task: its number in the trace, and its name there.
    pub names: Vec<(u32, String)>,
    pub result: TasksResult,
    /// Energy of the devices that hold the pages, by term, or the number that a sheet lacks.
    pub energy: Result<Vec<(&'static str, Pj)>, String>,
    /// What only a run in the foreground has.
    pub on_phone: Option<OnPhone>,
}

/// The share of the time until the task's end that it spent on its references.
pub fn share(task: &TaskResult, time: Ps) -> f64 {
    100.0 * task.useful.0 as f64 / task.ended.unwrap_or(time).0.max(1) as f64
}

/// Runs every configuration. `progress` gets the number of finished ones, and may end the run.
pub fn run(
    path: &Path,
    all: &[Settings],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<TasksOutcome>, ExperimentError> {
    run_prefix(path, all, u64::MAX, None, progress)
}

/// Like [`run`], over the work of the tasks in the first `rows` rows of the trace. With a receiver of its journal, the
/// first configuration runs alone.
pub fn run_prefix(
    path: &Path,
    all: &[Settings],
    rows: u64,
    journal: Option<Sink<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<TasksOutcome>, ExperimentError> {
    let (inputs, plans) = Inputs::new(path, all, rows)?;
    if journal.is_some() {
        return Ok(vec![inputs.simulate(&plans[0], journal)?]);
    }
    let mut outcomes = Vec::with_capacity(plans.len());
    for some in plans.chunks(AT_ONCE * rayon::current_num_threads()) {
        let results = some.par_iter().map(|plan| inputs.simulate(plan, None));
        outcomes.extend(results.collect::<Result<Vec<_>, _>>()?);
        tell(progress, (outcomes.len() as u64, plans.len() as u64), Unit::Configurations)?;
    }
    Ok(outcomes)
}

/// Runs every configuration over the programs of several traces side by side, each so many times; `None`: again and
/// again, until the others have ended. RAM in percent is of all their pages.
pub fn run_together(paths: &[(PathBuf, Option<u32>)], all: &[Settings]) -> Result<Vec<TasksResult>, ExperimentError> {
    let shift = systems::of_tasks().0.defaults.page.0.trailing_zeros();
    let (mut specs, mut pages, mut traces) = (Vec::new(), 0, Vec::new());
    for (path, rounds) in paths {
        let trace = Reader::open(path)?.provenance().clone();
        check(path, &trace, true)?;
        let tasks = read(path, Some(shift), u64::MAX, &trace)?;
        specs.extend(self::specs(&tasks).into_iter().map(|spec| TaskSpec {
            first_page: pages,
            rounds: *rounds,
            ..spec
        }));
        pages += tasks.pages as u32;
        traces.push(trace);
    }
    let run = |settings| {
        let plan = resolve::tasks(settings, &traces[0], &mut |_| Ok(pages as usize))?;
        Ok(Cpu::new(&plan.config, &specs).map_err(RunError::from)?.run())
    };
    all.par_iter().map(run).collect()
}

/// A trace and its tasks, for several plans.
struct Inputs {
    trace: Provenance,
    facts: Trace,
    /// Whether its rows have times.
    timed: bool,
    /// By page size.
    tasks: Vec<(u32, TraceTasks)>,
}

impl Inputs {
    fn new(path: &Path, all: &[Settings], rows: u64) -> Result<(Inputs, Vec<TasksPlan>), ExperimentError> {
        let reader = Reader::open(path)?;
        let (trace, timed) = (reader.provenance().clone(), reader.columns().time);
        check(path, &trace, all.iter().all(resolve::names_device))?;
        let (tasks, plans) = match resolve::drive_of(all) == Drive::Foreground {
            true => {
                let tasks = read(path, None, rows, &trace)?;
                let of = |settings| resolve::foreground(settings, &trace, &mut |_| Ok(tasks.pages));
                let plans = all.iter().map(of).collect::<Result<Vec<_>, _>>()?;
                (vec![(PAGE.0.trailing_zeros(), tasks)], plans)
            }
            false => {
                let mut pages = pages_by_front(path);
                let of = |settings| resolve::tasks(settings, &trace, &mut pages);
                let plans = all.iter().map(of).collect::<Result<Vec<_>, _>>()?;
                let mut shifts: Vec<u32> = plans.iter().map(shift).collect();
                shifts.sort_unstable();
                shifts.dedup();
                let read = |shift| Ok::<_, ExperimentError>((shift, read(path, Some(shift), rows, &trace)?));
                (shifts.into_iter().map(read).collect::<Result<Vec<_>, _>>()?, plans)
            }
        };
        let facts = string::facts(path, &trace)?;
        Ok((Inputs { trace, facts, timed, tasks }, plans))
    }

    fn simulate(&self, plan: &TasksPlan, journal: Option<Sink<'_>>) -> Result<TasksOutcome, ExperimentError> {
        let (_, tasks) = self.tasks.iter().find(|(of, _)| *of == shift(plan)).expect("read for every plan");
        let mut cpu = foreground::machine(plan, tasks, &self.trace, self.timed)?;
        let result = match journal {
            None => cpu.run(),
            Some(sink) => {
                cpu.keep_journal();
                cpu.run_with_journal(sink)?
            }
        };
        let named = |id: u32| self.trace.tasks.iter().find(|task| task.id == id).map(|task| task.name.clone());
        Ok(TasksOutcome {
            trace: self.facts.clone(),
            config: plan.shown(),
            frames: plan.config.frames,
            page: plan.page().0,
            writes_unpriced: plan.writes_unpriced() && result.counts.dirty_evictions > 0,
            pages: tasks.pages,
            names: tasks.programs.iter().map(|(id, _)| (*id, named(*id).unwrap_or_default())).collect(),
            energy: energy::energy(plan, &result).map_err(|error| error.to_string()),
            on_phone: OnPhone::new(plan, &result, !self.timed),
            result,
        })
    }
}

/// A trace's numbers for the driver of tasks.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub tasks: usize,
    /// Pages that they touch together.
    pub pages: usize,
    pub written: usize,
}

/// Counts tasks and pages of 1 << `shift` bytes.
pub fn counted(path: &Path, shift: u32) -> Result<Counted, ExperimentError> {
    let trace = Reader::open(path)?.provenance().clone();
    check(path, &trace, true)?;
    let tasks = read(path, Some(shift), u64::MAX, &trace)?;
    let mut written = vec![false; tasks.pages];
    let steps = tasks.programs.iter().flat_map(|(_, program)| program.steps.iter());
    steps.filter(|step| step.reference.writing()).for_each(|step| written[step.reference.page()] = true);
    let written = written.into_iter().filter(|written| *written).count();
    Ok(Counted { tasks: tasks.programs.len(), pages: tasks.pages, written })
}

fn shift(plan: &TasksPlan) -> u32 {
    plan.page().0.trailing_zeros()
}

fn check(path: &Path, trace: &Provenance, priced: bool) -> Result<(), ExperimentError> {
    let unfit = |reason: &str| Err(ExperimentError::Unfit { path: path.display().to_string(), reason: reason.into() });
    match trace.fidelity {
        Fidelity::Sampled => {
            unfit("the trace is sampled, so that its tasks' references are not known; record every reference")
        }
        fidelity if !priced && !fidelity.of_a_program() => {
            unfit("the trace holds requests, and a scheduler's times are those of a device: give --device or --system")
        }
        _ if trace.references == 0 => unfit("the trace has no references"),
        _ => Ok(()),
    }
}

/// The tasks of a trace, by pages of 1 << `shift` bytes; `None`: with their turns in the foreground.
fn read(path: &Path, shift: Option<u32>, rows: u64, trace: &Provenance) -> Result<TraceTasks, ExperimentError> {
    let mut reader = Reader::open(path)?;
    let columns = reader.columns();
    let time = shift.is_none() && columns.time;
    let wanted = Wanted { task: columns.task, count: columns.count, time, ..Wanted::ACCESS };
    let mut at = 0;
    let next = |block: &mut Block| {
        if at >= rows {
            return Ok(false);
        }
        let rows_read = reader.read(block, wanted)? as u64;
        at += rows_read;
        Ok::<_, ExperimentError>(rows_read > 0)
    };
    let tasks = match shift {
        Some(shift) => TraceTasks::read(shift, &spaces(trace), columns.count, next)?,
        None => foreground::read(trace, time, next)?,
    };
    if tasks.programs.len() > TASKS_MAX {
        let reason = format!("{} tasks are more than the {TASKS_MAX} that are simulated", tasks.programs.len());
        return Err(ExperimentError::Unfit { path: path.display().to_string(), reason });
    }
    Ok(tasks)
}

/// The journal of tasks in memory: under a scheduler, or in the foreground of a phone.
pub fn journal(settings: &Settings, rows: &Block, trace: &Provenance) -> Result<Vec<u8>, ExperimentError> {
    let mut once = Some(rows);
    let next = |block: &mut Block| Ok::<_, ExperimentError>(once.take().map(|rows| block.clone_from(rows)).is_some());
    let (plan, tasks) = match resolve::drive(settings) {
        Drive::Foreground => {
            let tasks = foreground::read(trace, true, next)?;
            (resolve::foreground(settings, trace, &mut |_| Ok(tasks.pages))?, tasks)
        }
        _ => {
            let plan = resolve::tasks(settings, trace, &mut |_| Ok(1))?;
            let tasks = TraceTasks::read(shift(&plan), &spaces(trace), false, next)?;
            (plan, tasks)
        }
    };
    let mut cpu = foreground::machine(&plan, &tasks, trace, true)?;
    cpu.keep_journal();
    let mut journal = Vec::new();
    cpu.run_with_journal(&mut |part| {
        journal.extend_from_slice(part);
        Ok::<_, ExperimentError>(())
    })?;
    Ok(journal)
}

/// Each task runs its program once. All have one numbering, so that tasks of one process share pages.
fn specs(tasks: &TraceTasks) -> Vec<TaskSpec> {
    let spec = |program: &Program| TaskSpec::new(Program { pages: tasks.pages as u32, ..program.clone() }, 0, 1);
    tasks.programs.iter().map(|(_, program)| spec(program)).collect()
}
