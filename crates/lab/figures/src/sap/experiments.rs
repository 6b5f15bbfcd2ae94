//! The paper's stress test: workers that use their memory in turns.

use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::{Bytes, Ps};
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{
    Activation, Cpu, ListRule, OnFault, Prefetching, Program, Step, TaskSpec, TasksConfig, TasksResult,
};
use coldframe_drivers::RunError;
use coldframe_experiment::settings::{Sap, Settings, Tasks};
use coldframe_experiment::systems::sap;
use coldframe_experiment::{tasks, ExperimentError};
use coldframe_lane::machine::{MachineConfig, Zeros};
use coldframe_lane::{DeviceTimes, PageRef};

/// A kernel of section 5.2: its name and activation moment.
pub(super) type Kernel = (&'static str, Activation);

/// Section 5.2, and the start just after a switch that section 5.3 names.
pub(super) const KERNELS: [Kernel; 4] = [
    ("vanilla", Activation::Never),
    ("prefetch-75", Activation::Tick(0.75)),
    ("prefetch-50", Activation::Tick(0.5)),
    ("timer, xi 0", Activation::Timer(0.0)),
];

/// Who runs, and what the processor does while a page is loaded.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Machine {
    /// Workers in turns, and the processor waits.
    Turns,
    /// The paper's: CFS, and a worker that faults sleeps.
    Cfs,
}

/// What the paper leaves open, as one run has it.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Where the rows say it.
    pub(super) name: &'static str,
    pub(super) by: Machine,
    list: ListRule,
    list_max: usize,
    guard: bool,
    /// The processor time between two touches, as a multiple of a page's load.
    loads_a_touch: f64,
    /// Pages of the aligned group that is read with one.
    read_together: u32,
}

/// As the system runs without settings, with the two numbers that are fitted to workers in turns.
pub(super) const TURNS: Reading = Reading {
    name: "stress, turns",
    by: Machine::Turns,
    list: ListRule::OldestLeaves,
    list_max: LIST_MAX,
    guard: true,
    loads_a_touch: LOADS_A_TOUCH,
    read_together: 1,
};

/// The same numbers on the paper's machine.
pub(super) const CFS: Reading = Reading { name: "stress, CFS", by: Machine::Cfs, ..TURNS };

/// A list that takes no more when it is full: of a worker's 2,048 pages 1,024 stay listed ("can prefetch up to 50 % of
/// memory allocated by each task", section 5.2).
const FULL: Reading = Reading { name: "stress, CFS, full list", list: ListRule::TakesNoMore, guard: false, ..CFS };

/// A major fault of Linux reads 8 slots, so that 1,024 of them stand for 8,192 pages: a list has the whole region.
const MAJORS: Reading = Reading { name: "stress, CFS, majors of 8", list_max: 8 * LIST_MAX, guard: false, ..CFS };

/// Readings of the paper on its own machine, without the guard that is ours.
pub(super) const READINGS: [Reading; 3] =
    [FULL, MAJORS, Reading { name: "stress, CFS, reads of 8", list_max: LIST_MAX, read_together: 8, ..MAJORS }];

/// The same list with another time between touches, which is fitted to table 1's two changes of major faults.
pub(super) const FITTED_TOUCH: Reading =
    Reading { name: "stress, CFS, majors of 8, 1.7 loads a touch", loads_a_touch: 1.7, ..MAJORS };

/// As in `stress` without `--vm-keep`, which the paper's command line does not contain: each iteration has its own
/// region. One turn writes it (first touches), the next turn checks it (refaults), and then it is freed.
pub(super) fn stress(ram_mb: u64, (_, activation): Kernel, of: &Reading) -> Result<TasksResult, ExperimentError> {
    const POLICY: &str = "second-chance";
    let device = DeviceTimes { load: LOAD, program: Some(PROGRAM) };
    let machine = MachineConfig::device(sap::prices(POLICY), device, Zeros::Once);
    let frames = (((ram_mb - 32) << 20) / sap::PAGE.0 + FRAMES_OF_32_MB) as usize;
    let handler = handler::find("sequential").expect("it is there");
    let (scheduler, slice, on_fault) = match of.by {
        Machine::Turns => ("round-robin", Some(WHOLE_TURN), OnFault::Keeps),
        Machine::Cfs => ("cfs", None, OnFault::Sleeps),
    };
    let scheduler = scheduler::find(scheduler).expect("it is there");
    let config = TasksConfig {
        reference: Ps((LOAD.0 as f64 * of.loads_a_touch) as u64),
        tick: sap::TICK,
        slice,
        on_fault,
        prefetching: Prefetching {
            activation,
            list_max: of.list_max,
            list: of.list,
            guard: of.guard,
            depth: sap::DEPTH,
            ready_min: READY_MIN,
            arrival: Arrival::MappedBehindSlice,
            ..Prefetching::NEVER
        },
        read_together: of.read_together,
        ..TasksConfig::new(PolicyChoice::parse(POLICY)?, handler, frames, machine, scheduler)
    };
    let pages = (WORKER.0 / sap::PAGE.0) as u32;
    let touch = |page, writing| Step { reference: PageRef::new(page, writing, false), times: 1 };
    let (writes, checks) = ((0..pages).map(|page| touch(page, true)), (0..pages).map(|page| touch(page, false)));
    let program = Program::new(writes.chain(checks).collect());
    let worker = |i| TaskSpec {
        pause: PAUSE,
        turns: 2,
        fresh: true,
        ..TaskSpec::new(program.clone(), i * program.pages, ITERATIONS)
    };
    let specs: Vec<_> = (0..super::golden().number("workers") as u32).map(worker).collect();
    Ok(Cpu::new(&config, &specs).map_err(RunError::from)?.run())
}

/// Major and all faults.
pub(super) type Faults = (u64, u64);

/// RAM of the sizes that are summed, in percent of what is meant: with several tasks a page more or less changes their
/// order, and by chance what is in RAM together.
const AROUND: [f64; 5] = [90.0, 95.0, 100.0, 105.0, 110.0];

/// A list's rule and whether the guard is on, as `sap.list` and `sap.guard` take them.
pub(super) type List = (&'static str, bool);

/// As the system runs without settings.
pub(super) const OURS: List = ("oldest-leaves", true);

fn settings(ram: String, scheduler: &str, prefetch: &str, (list, guard): List) -> Settings {
    let (scheduler, prefetch) = (Some(scheduler.into()), Some(prefetch.into()));
    Settings {
        system: Some("sap".into()),
        ram: Some(ram),
        tasks: Tasks { scheduler, prefetch, follow: None },
        sap: Sap { list: Some(list.into()), guard: Some(guard), past_switch: None },
        ..Settings::default()
    }
}

/// Major and all faults of a run.
fn faults(result: &TasksResult) -> Faults {
    (result.major(), result.faults())
}

/// Six recorded programs (two chess engines, two ray tracers, two compressions) beside each other in a part of their
/// pages, as `sim --system sap` runs them, under the kernels of section 5.2. Nothing is fitted, but they have so few
/// pages that chance decides.
pub(super) fn recorded(
    traces: &Path,
    ram_percent: f64,
    scheduler: &str,
    list: List,
) -> Result<Vec<Faults>, ExperimentError> {
    let paths = ["chess", "render", "bzip2"].map(|name| (traces.join(format!("{name}.parquet")), Some(1)));
    let twice: Vec<_> = paths.into_iter().flat_map(|path| [path.clone(), path]).collect();
    let all = PREFETCH.into_iter().flat_map(|prefetch| {
        AROUND.map(|percent| settings(format!("{}%", ram_percent * percent / 100.0), scheduler, prefetch, list))
    });
    let results = tasks::run_together(&twice, &all.collect::<Vec<_>>())?;
    let sum = |of: &[TasksResult]| (of.iter().map(|r| faults(r).0).sum(), of.iter().map(|r| faults(r).1).sum());
    Ok(results.chunks(AROUND.len()).map(sum).collect())
}

/// `tasks.prefetch` of section 5.2's kernels.
const PREFETCH: [&str; 3] = ["off", "75", "50"];

/// Five recorded workers of 8 MB in the paper's 32 MB under CFS, for each of the lists.
pub(super) fn workers(traces: &Path, file: &str, lists: &[List]) -> Result<Vec<Vec<Faults>>, ExperimentError> {
    let five = vec![(traces.join(file), Some(1)); super::golden().number("workers") as usize];
    let asked = lists.iter().flat_map(|list| PREFETCH.map(|prefetch| settings(RAM.into(), "cfs", prefetch, *list)));
    // Without prefetching, the list makes no difference.
    let (off, with): (Vec<_>, Vec<_>) = asked.partition(|s| s.tasks.prefetch.as_deref() == Some(PREFETCH[0]));
    let runs: Vec<_> = off.into_iter().take(1).chain(with).collect();
    let results: Vec<Faults> = tasks::run_together(&five, &runs)?.iter().map(faults).collect();
    let beside_off = |with: &[Faults]| [&results[..1], with].concat();
    Ok(results[1..].chunks(PREFETCH.len() - 1).map(beside_off).collect())
}

/// Table 2: a game that takes all the processor it gets, beside a load that goes through 110 % of RAM. The mean time
/// that the game is ready and does not run, and the standard deviation of these times, in milliseconds, and the part of
/// the time until its end that it ran, by kernel.
pub(super) fn game(traces: &Path, list: List) -> Result<Vec<[f64; 3]>, ExperimentError> {
    let both = [(traces.join("game.parquet"), Some(GAMES)), (traces.join("memload.parquet"), None)];
    let kernels = PREFETCH.map(|prefetch| settings(RAM.into(), "cfs", prefetch, list));
    let waited = |result: &TasksResult| {
        let (game, ms) = (&result.tasks[0], |time: Option<Ps>| time.unwrap_or_default().0 as f64 / 1e9);
        [ms(game.wait.mean()), ms(game.wait.deviation()), tasks::share(game, result.time)]
    };
    Ok(tasks::run_together(&both, &kernels)?.iter().map(waited).collect())
}

/// The paper's machine (section 5.2).
const RAM: &str = "32MiB";

/// Games one after the other: longer than the load takes to go through its memory.
const GAMES: u32 = 12;

/// Frames that the workers have with 32 MB; the kernel uses the rest. Fitted to table 1 and section 5.3.
const FRAMES_OF_32_MB: u64 = 5_000;

/// The processor time between two touches, as a multiple of a page's load. Fitted to the same.
const LOADS_A_TOUCH: f64 = 5.0;

/// Memory that a worker allocates: 8 MB (section 5.2).
const WORKER: Bytes = Bytes(8 << 20);

/// A slice that no turn of a worker uses up.
const WHOLE_TURN: Ps = Ps::from_us(10_000_000);

/// LoadStopover and transfer of a page by DMA: 20 us and 37.92 us of the sheet LOBI-NAND. The paper names no device
/// (only an emulated machine's disk). The scheme needs a device that transfers by itself (section 3).
const LOAD: Ps = Ps(57_920_000);

/// The time to program a page, by the same sheet.
const PROGRAM: Ps = Ps::from_us(180);

/// The time that a worker sleeps between two iterations ("accesses allocated memory periodically", section 5.2). The
/// paper does not print the period. Ours comes from our own run of the test on Linux 6.1: five workers, twelve
/// iterations each, 100 ms between them.
const PAUSE: Ps = Ps::from_us(100_000);

/// Iterations of a worker, from the same run.
const ITERATIONS: u32 = 12;

/// Algorithm 1 prints `nr_tasks > 2`.
const READY_MIN: usize = 3;
