//! The paper's experiments on recorded tasks.

use std::path::Path;

use crate::systems::sap;
use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::{Below, Bytes, Ps};
use coldframe_sim::machine::{MachineConfig, Zeros};
use coldframe_sim::scheduler;
use coldframe_sim::tasks::{
    Activation, Cpu, OnFault, Prefetching, Program, Reclaim, Rule, Step, TaskSpec, TasksConfig, TasksResult, CAPS,
};
use coldframe_sim::RunError;
use coldframe_sim::{DeviceTimes, PageRef};
use coldframe_trace::{Reader, Wanted};

use crate::error::ReportError;

/// A kernel of section 5.2, or a variant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    pub name: &'static str,
    pub policy: &'static str,
    pub scheduler: &'static str,
    pub on_fault: OnFault,
    pub prefetching: Prefetching,
    /// The time of a reference.
    pub reference: Ps,
    /// The scheduler's parameter.
    pub slice: Option<Ps>,
    /// The device's times for a page.
    pub device: DeviceTimes,
    /// The kernel's memory management besides faults.
    pub reclaim: Reclaim,
}

/// The readings of `systems/sap/README.md`.
pub(super) const fn kernel(name: &'static str, activation: Activation) -> Kernel {
    let prefetching = Prefetching {
        activation,
        list_max: LIST_MAX,
        idle_max: Some(sap::IDLE_MAX),
        depth: sap::DEPTH,
        ready_min: sap::READY_MIN,
        follow: false,
        renew: false,
        arrival: Arrival::MappedBehindSlice,
    };
    Kernel {
        name,
        policy: "second-chance",
        scheduler: "round-robin",
        on_fault: OnFault::Keeps,
        prefetching,
        reference: sap::REFERENCE,
        slice: None,
        device: DeviceTimes { load: sap::LOAD, program: Some(sap::PROGRAM) },
        reclaim: Reclaim::NONE,
    }
}

/// Section 5.2.
pub(super) const KERNELS: [Kernel; 3] = [
    kernel("vanilla", Activation::Never),
    kernel("prefetch-75", Activation::Tick(0.75)),
    kernel("prefetch-50", Activation::Tick(0.5)),
];

/// Kernels for questions that the paper leaves open or names as future work.
pub(super) fn variants() -> Vec<Kernel> {
    let kernel_with = |name, xi, change: fn(&mut Kernel)| {
        let mut kernel = kernel(name, Activation::Tick(xi));
        change(&mut kernel);
        kernel
    };
    let with = |name, change| kernel_with(name, 0.75, change);
    vec![
        kernel("timer, xi 0.75", Activation::Timer(0.75)),
        kernel("timer, xi 0.5", Activation::Timer(0.5)),
        kernel("timer, xi 0", Activation::Timer(0.0)),
        kernel("adaptive", Activation::Adaptive(Rule::LEARNT)),
        with("exact LRU", |k| k.policy = "fifo-sc:valid=1"),
        kernel_with("exact LRU, xi 0.5", 0.5, |k| k.policy = "fifo-sc:valid=1"),
        with("pages unmapped until touched", |k| k.prefetching.arrival = Arrival::BehindSlice),
        with("pages as recent as others", |k| k.prefetching.arrival = Arrival::Mapped),
        with("listed pages in RAM made recent", |k| k.prefetching.renew = true),
        kernel_with("the same, xi 0.5", 0.5, |k| k.prefetching.renew = true),
        with("pages leave after 1 idle unit", |k| k.prefetching.idle_max = Some(1)),
        with("pages leave after 8 idle units", |k| k.prefetching.idle_max = Some(8)),
        with("pages never leave", |k| k.prefetching.idle_max = None),
        with("also with 2 ready tasks", |k| k.prefetching.ready_min = 2),
        with("prediction followed", |k| k.prefetching.follow = true),
        with("others run during a fault", |k| k.on_fault = OnFault::Sleeps),
        with("CFS", |k| k.scheduler = "cfs"),
        with("EEVDF", |k| k.scheduler = "eevdf"),
    ]
}

pub(super) fn program(path: &Path) -> Result<Program, ReportError> {
    let mut reader = Reader::open(path)?;
    let wanted = Wanted { task: false, count: reader.columns().count, time: false, ..Wanted::ACCESS };
    let shift = sap::PAGE.0.trailing_zeros();
    Program::read(shift, |block| Ok::<_, ReportError>(reader.read(block, wanted)? > 0))
}

/// Runs tasks under a kernel.
pub(super) fn run(kernel: &Kernel, ram: Bytes, specs: &[TaskSpec]) -> Result<TasksResult, ReportError> {
    let scheduler = scheduler::find(kernel.scheduler).expect("the table of variants names schedulers that there are");
    let config = TasksConfig {
        policy: PolicyChoice::parse(kernel.policy)?,
        handler: handler::find("sequential").expect("it is there"),
        frames: (ram.0 / sap::PAGE.0) as usize,
        evict_batch: 1,
        machine: MachineConfig::device(
            sap::prices(kernel.policy.split(':').next().unwrap_or_default()),
            kernel.device,
            Zeros::Once,
        ),
        caps: CAPS,
        area: Below::Homes,
        xip_surplus: Ps::ZERO,
        reference: kernel.reference,
        tick: sap::TICK,
        scheduler,
        slice: kernel.slice,
        on_fault: kernel.on_fault,
        prefetching: kernel.prefetching,
        reclaim: kernel.reclaim,
    };
    Ok(Cpu::new(&config, specs).map_err(RunError::from)?.run())
}

pub(super) fn task(program: &Program, first_page: u32, rounds: Option<u32>) -> TaskSpec {
    let program = program.clone();
    TaskSpec {
        program,
        first_page,
        rounds,
        pause: Ps::ZERO,
        turns: 1,
        fresh: false,
        begins: Ps::ZERO,
        nice: 0,
        job: None,
    }
}

/// Five workers of 8 MB.
pub(super) struct Stress(Program);

impl Stress {
    pub(super) fn read(traces: &Path) -> Result<Stress, ReportError> {
        Ok(Stress(program(&traces.join("worker.parquet"))?))
    }

    pub(super) fn run(&self, ram_mb: u64, kernel: &Kernel) -> Result<TasksResult, ReportError> {
        let worker = |i| TaskSpec { pause: sap::PAUSE, ..task(&self.0, i * self.0.pages, Some(sap::ITERATIONS)) };
        let specs: Vec<_> = (0..sap::golden::read().workers).map(worker).collect();
        run(kernel, Bytes(ram_mb << 20), &specs)
    }

    /// As in `stress` without `--vm-keep`, which the paper's command line does not contain: each iteration has its own
    /// region. One turn writes it (first touches), the next turn checks it (refaults), and then it is freed.
    pub(super) fn run_fresh(ram_mb: u64, kernel: &Kernel) -> Result<TasksResult, ReportError> {
        let (workers, pages) = (sap::golden::read().workers, (WORKER.0 / sap::PAGE.0) as u32);
        let touch = |page, writing| Step { reference: PageRef::new(page, writing, false), times: 1 };
        let (writes, checks) = ((0..pages).map(|page| touch(page, true)), (0..pages).map(|page| touch(page, false)));
        let program = Program::new(writes.chain(checks).collect());
        let worker = |i| TaskSpec {
            pause: sap::PAUSE,
            turns: 2,
            fresh: true,
            ..task(&program, i * pages, Some(sap::ITERATIONS))
        };
        let specs: Vec<_> = (0..workers).map(worker).collect();
        let kernel =
            Kernel { reference: Ps((sap::LOAD.0 as f64 * LOADS_A_TOUCH) as u64), slice: Some(WHOLE_TURN), ..*kernel };
        let held = (32 << 20) - FRAMES_OF_32_MB * sap::PAGE.0;
        run(&kernel, Bytes((ram_mb << 20) - held), &specs)
    }
}

/// Frames that the workers have with 32 MB; the kernel uses the rest. Fitted to table 1 and section 5.3.
pub(super) const FRAMES_OF_32_MB: u64 = 5_000;

/// The processor time between two touches, as a multiple of a page's load. Fitted to the same.
pub(super) const LOADS_A_TOUCH: f64 = 1.5;

/// Memory that a worker allocates: 8 MB (section 5.2).
const WORKER: Bytes = Bytes(8 << 20);

/// A slice that no turn of a worker uses up.
const WHOLE_TURN: Ps = Ps::from_us(10_000_000);

/// A recorded game that uses the whole processor, beside a recorded load on 110 % of RAM: table 2 with a user's
/// settings.
pub(super) struct Interactivity {
    game: Program,
    load: Program,
}

/// Table 2's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Responsiveness {
    pub latency_ms: f64,
    pub deviation_ms: f64,
    pub desired_percent: f64,
}

/// The number of times that the game goes through its eight recorded frames: about 7 s of processor time.
const GAME_ROUNDS: u32 = 20;

impl Interactivity {
    pub(super) fn read(traces: &Path) -> Result<Interactivity, ReportError> {
        let [game, load] = ["game.parquet", "memload.parquet"].map(|name| program(&traces.join(name)));
        Ok(Interactivity { game: game?, load: load? })
    }

    /// As in the text: the prefetcher works with CFS (section 4), and a fault suspends its task (section 1) while
    /// others run.
    pub(super) fn run(&self, kernel: &Kernel) -> Result<(Responsiveness, TasksResult), ReportError> {
        let game = TaskSpec { job: Some(sap::JOB), ..task(&self.game, 0, Some(GAME_ROUNDS)) };
        let load = task(&self.load, self.game.pages, None);
        // Two tasks: algorithm 1's `nr_tasks > 2` counts other tasks of the system, which are not simulated.
        let prefetching = Prefetching { ready_min: 1, ..kernel.prefetching };
        let kernel = Kernel { scheduler: "cfs", on_fault: OnFault::Sleeps, prefetching, ..*kernel };
        let result = run(&kernel, Bytes(32 << 20), &[game, load])?;
        Ok((responsiveness(&result.tasks[0].jobs), result))
    }
}

/// As Interbench computes them. Its standard deviation subtracts mean^2 / n instead of n * mean^2, so it is nearly the
/// root of the mean square. The desired processor time follows from the mean latency.
pub(super) fn responsiveness(jobs: &[Ps]) -> Responsiveness {
    let ms = |time: Ps| time.0 as f64 / 1e9;
    let count = jobs.len().max(1) as f64;
    let latency_ms = jobs.iter().map(|job| ms(*job)).sum::<f64>() / count;
    let squares = jobs.iter().map(|job| ms(*job).powi(2)).sum::<f64>();
    let variance = (squares - latency_ms.powi(2) / count) / (count - 1.0).max(1.0);
    let job = ms(sap::JOB);
    let desired_percent = 100.0 * job / (job + latency_ms);
    Responsiveness { latency_ms, deviation_ms: variance.sqrt(), desired_percent }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: latencies of 0 and 200 ms with jobs of 100 ms give a mean of 100 ms, Interbench's deviation of
    /// sqrt((200^2 - 100^2 / 2) / 1) = 187.08 ms, and half of the processor.
    #[test]
    fn latency_deviation_and_share_of_jobs() {
        let r = responsiveness(&[Ps::ZERO, Ps::from_us(200_000)]);
        assert_eq!((r.latency_ms, r.desired_percent), (100.0, 50.0));
        assert!((r.deviation_ms - 35_000f64.sqrt()).abs() < 1e-9, "{}", r.deviation_ms);
    }
}
