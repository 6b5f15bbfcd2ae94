//! The paper's experiments on recorded tasks.

use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::LIST_MAX;
use coldframe_core::Ps;
use coldframe_sim::clock::DeviceTimes;
use coldframe_sim::scheduler;
use coldframe_sim::tasks::{Activation, Cpu, Prefetching, Program, TaskSpec, TasksConfig, TasksResult};
use coldframe_sim::RunError;
use coldframe_systems::sap;
use coldframe_trace::{Reader, Wanted};

use crate::error::ReportError;

/// A kernel of section 5.2, or a variant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    pub name: &'static str,
    pub scheduler: &'static str,
    pub reference: Ps,
    pub prefetching: Prefetching,
}

/// Algorithm 1 prints `nr_tasks > 2`.
const READY_MIN: usize = 3;

/// The paper does not say when a page leaves a list that is not full. Two time units without use are ours; the variants show others.
const IDLE_MAX: u32 = 2;

const fn kernel(name: &'static str, activation: Activation) -> Kernel {
    let prefetching = Prefetching {
        activation,
        list_max: LIST_MAX,
        idle_max: Some(IDLE_MAX),
        depth: sap::DEPTH,
        ready_min: READY_MIN,
        follow: false,
    };
    Kernel { name, scheduler: "cfs", reference: sap::REFERENCE, prefetching }
}

/// Section 5.2.
pub(super) const KERNELS: [Kernel; 3] = [
    kernel("vanilla", Activation::Never),
    kernel("prefetch-75", Activation::Tick(0.75)),
    kernel("prefetch-50", Activation::Tick(0.5)),
];

/// What the paper leaves open.
pub(super) fn variants() -> Vec<Kernel> {
    let named = |name, activation| kernel(name, activation);
    let with = |name, change: fn(&mut Prefetching)| {
        let mut kernel = kernel(name, Activation::Tick(0.75));
        change(&mut kernel.prefetching);
        kernel
    };
    let under = |name, scheduler| Kernel { scheduler, ..kernel(name, Activation::Tick(0.75)) };
    let at = |name, reference| Kernel { reference, ..kernel(name, Activation::Tick(0.75)) };
    vec![
        named("tick, xi 0.75", Activation::Tick(0.75)),
        named("tick, xi 0.5", Activation::Tick(0.5)),
        named("timer, xi 0.75", Activation::Timer(0.75)),
        named("timer, xi 0.5", Activation::Timer(0.5)),
        named("timer, xi 0", Activation::Timer(0.0)),
        named("adaptive", Activation::Adaptive),
        with("pages leave after 1 idle unit", |p| p.idle_max = Some(1)),
        with("pages leave after 8 idle units", |p| p.idle_max = Some(8)),
        with("pages never leave", |p| p.idle_max = None),
        with("also with 2 ready tasks", |p| p.ready_min = 2),
        with("prediction followed", |p| p.follow = true),
        at("processor ten times as fast", Ps(sap::REFERENCE.0 / 10)),
        at("processor 100 times as fast", Ps(sap::REFERENCE.0 / 100)),
        at("processor 1000 times as fast", Ps(sap::REFERENCE.0 / 1000)),
        at("processor twice as fast", Ps(sap::REFERENCE.0 / 2)),
        at("processor half as fast", Ps(sap::REFERENCE.0 * 2)),
        under("round robin", "round-robin"),
        under("EEVDF", "eevdf"),
    ]
}

fn program(path: &Path) -> Result<Program, ReportError> {
    let mut reader = Reader::open(path)?;
    let wanted = Wanted { task: false, count: reader.columns().count, time: false, ..Wanted::ACCESS };
    let shift = sap::PAGE.0.trailing_zeros();
    Program::read(shift, |block| Ok::<_, ReportError>(reader.read(block, wanted)? > 0))
}

fn run(kernel: &Kernel, ram_mb: u64, specs: &[TaskSpec]) -> Result<TasksResult, ReportError> {
    let scheduler = scheduler::find(kernel.scheduler).expect("the table of variants names schedulers that there are");
    let config = TasksConfig {
        policy: PolicyChoice::parse("second-chance")?,
        handler: handler::find("sequential").expect("it is there"),
        frames: ((ram_mb << 20) / sap::PAGE.0) as usize,
        prices: sap::prices("second-chance"),
        device: DeviceTimes { load: sap::LOAD, program: Some(sap::PROGRAM) },
        reference: kernel.reference,
        tick: sap::TICK,
        scheduler,
        prefetching: kernel.prefetching,
    };
    Ok(Cpu::new(&config, specs).map_err(RunError::from)?.run())
}

fn task(program: &Program, first_page: u32, rounds: Option<u32>, job: Option<Ps>) -> TaskSpec {
    TaskSpec { program: program.clone(), first_page, rounds, begins: Ps::ZERO, nice: 0, job }
}

/// Five workers of 8 MB.
pub(super) struct Stress(Program);

impl Stress {
    pub(super) fn read(traces: &Path) -> Result<Stress, ReportError> {
        Ok(Stress(program(&traces.join("worker.parquet"))?))
    }

    pub(super) fn run(&self, ram_mb: u64, kernel: &Kernel) -> Result<TasksResult, ReportError> {
        let workers = sap::golden::read().workers;
        let specs: Vec<_> = (0..workers).map(|i| task(&self.0, i * self.0.pages, Some(1), None)).collect();
        run(kernel, ram_mb, &specs)
    }
}

/// Interbench: a game that wants all of the processor, beside a load on 110 % of RAM.
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

/// Times that the game goes through its eight recorded frames: about 7 s of processor time.
const GAME_ROUNDS: u32 = 20;

impl Interactivity {
    pub(super) fn read(traces: &Path) -> Result<Interactivity, ReportError> {
        let [game, load] = ["game.parquet", "memload.parquet"].map(|name| program(&traces.join(name)));
        Ok(Interactivity { game: game?, load: load? })
    }

    pub(super) fn run(&self, kernel: &Kernel) -> Result<Responsiveness, ReportError> {
        let game = task(&self.game, 0, Some(GAME_ROUNDS), Some(sap::JOB));
        let load = task(&self.load, self.game.pages, None, None);
        // Two tasks; algorithm 1's `nr_tasks > 2` counts others of the system, which are not simulated.
        let prefetching = Prefetching { ready_min: 1, ..kernel.prefetching };
        let result = run(&Kernel { prefetching, ..*kernel }, 32, &[game, load])?;
        Ok(responsiveness(&result.tasks[0].jobs))
    }
}

fn responsiveness(jobs: &[Ps]) -> Responsiveness {
    let ms = |time: Ps| time.0 as f64 / 1e9;
    let count = jobs.len().max(1) as f64;
    let latency_ms = jobs.iter().map(|job| ms(*job)).sum::<f64>() / count;
    let variance = jobs.iter().map(|job| (ms(*job) - latency_ms).powi(2)).sum::<f64>() / count;
    let job = ms(sap::JOB);
    let desired_percent = 100.0 * job / (job + latency_ms);
    Responsiveness { latency_ms, deviation_ms: variance.sqrt(), desired_percent }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 0 and 200 ms beside jobs of 100 ms are 100 ms in the mean, 100 ms of deviation, and half of the processor.
    #[test]
    fn latency_deviation_and_share_of_jobs() {
        let r = responsiveness(&[Ps::ZERO, Ps::from_us(200_000)]);
        assert_eq!((r.latency_ms, r.deviation_ms, r.desired_percent), (100.0, 100.0, 50.0));
    }
}
