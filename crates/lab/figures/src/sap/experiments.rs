//! The paper's stress test: workers that use their memory in turns.

use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::{Bytes, Ps};
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{
    Activation, Cpu, OnFault, Prefetching, Program, Step, TaskSpec, TasksConfig, TasksResult,
};
use coldframe_drivers::RunError;
use coldframe_experiment::settings::{Settings, Tasks};
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

/// As in `stress` without `--vm-keep`, which the paper's command line does not contain: each iteration has its own
/// region. One turn writes it (first touches), the next turn checks it (refaults), and then it is freed.
pub(super) fn stress(ram_mb: u64, (_, activation): Kernel, by: Machine) -> Result<TasksResult, ExperimentError> {
    const POLICY: &str = "second-chance";
    let device = DeviceTimes { load: LOAD, program: Some(PROGRAM) };
    let machine = MachineConfig::device(sap::prices(POLICY), device, Zeros::Once);
    let frames = (((ram_mb - 32) << 20) / sap::PAGE.0 + FRAMES_OF_32_MB) as usize;
    let handler = handler::find("sequential").expect("it is there");
    let (scheduler, slice, on_fault) = match by {
        Machine::Turns => ("round-robin", Some(WHOLE_TURN), OnFault::Keeps),
        Machine::Cfs => ("cfs", None, OnFault::Sleeps),
    };
    let scheduler = scheduler::find(scheduler).expect("it is there");
    let config = TasksConfig {
        reference: Ps((LOAD.0 as f64 * LOADS_A_TOUCH) as u64),
        tick: sap::TICK,
        slice,
        on_fault,
        prefetching: Prefetching {
            activation,
            list_max: LIST_MAX,
            depth: sap::DEPTH,
            ready_min: READY_MIN,
            arrival: Arrival::MappedBehindSlice,
            ..Prefetching::NEVER
        },
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

/// Six recorded programs (two chess engines, two ray tracers, two compressions) beside each other in a part of their
/// pages, as `sim --system sap` runs them, under the kernels of section 5.2. Nothing is fitted.
pub(super) fn recorded(traces: &Path, ram_percent: f64, scheduler: &str) -> Result<Vec<Faults>, ExperimentError> {
    let paths = ["chess", "render", "bzip2"].map(|name| traces.join(format!("{name}.parquet")));
    let twice: Vec<_> = paths.into_iter().flat_map(|path| [path.clone(), path]).collect();
    let settings = |(prefetch, percent): (&str, f64)| Settings {
        system: Some("sap".into()),
        ram: Some(format!("{}%", ram_percent * percent / 100.0)),
        tasks: Tasks { scheduler: Some(scheduler.into()), prefetch: Some(prefetch.into()), follow: None },
        ..Settings::default()
    };
    let all = ["off", "75", "50"].into_iter().flat_map(|prefetch| AROUND.map(|percent| settings((prefetch, percent))));
    let results = tasks::run_together(&twice, &all.collect::<Vec<_>>())?;
    let sum = |of: &[TasksResult]| (of.iter().map(TasksResult::major).sum(), of.iter().map(TasksResult::faults).sum());
    Ok(results.chunks(AROUND.len()).map(sum).collect())
}

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
