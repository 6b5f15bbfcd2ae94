//! Several tasks: the cost of a reference with 100 tasks under each scheduler, compared with one task on the same
//! machine, in one run.
//!
//! Each task goes through a shipped recording, over its own pages; both cases make the same references. RAM has room
//! for all pages and each page is touched often, so the difference comes from scheduling and larger tables, not from
//! faults. The goal: at least half of one task's references per second.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use coldframe_core::fault::handler::sequential;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::Ps;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{Activation, Cpu, Prefetching, Program, TaskSpec, TasksConfig, TraceTasks};
use coldframe_lane::machine::{MachineConfig, Zeros};
use coldframe_lane::DeviceTimes;
use coldframe_sheet::StagePrices;
use coldframe_store::{Reader, Wanted};

const ROUNDS: usize = 3;
const TASKS: u32 = 100;
/// Times that each of the tasks goes through its program.
const LAPS: u32 = 10;

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name);
    let mut reader = Reader::open(path).expect("a shipped trace");
    let wanted = Wanted { task: false, count: reader.columns().count, time: false, ..Wanted::ACCESS };
    let read = TraceTasks::read(12, &Spaces::default(), true, |block| reader.read(block, wanted).map(|rows| rows > 0));
    read.expect("a shipped trace").programs.remove(0).1
}

fn specs(program: &Program, tasks: u32) -> Vec<TaskSpec> {
    (0..tasks).map(|i| TaskSpec::new(program.clone(), i * program.pages, LAPS * TASKS / tasks)).collect()
}

fn config(scheduler: &str, frames: u32, activation: Activation) -> TasksConfig {
    let policy = PolicyChoice::parse("second-chance").expect("our own text");
    let device = DeviceTimes { load: Ps::from_us(58), program: Some(Ps::from_us(180)) };
    let machine = MachineConfig::device(StagePrices::uniform(Ps::from_us(1)), device, Zeros::Once);
    let scheduler = scheduler::find(scheduler).expect("our own name");
    let prefetching = Prefetching {
        activation,
        list_max: LIST_MAX,
        idle_max: Some(2),
        depth: 16,
        ready_min: 2,
        past_switch: true,
        arrival: Arrival::MappedBehindSlice,
        ..Prefetching::NEVER
    };
    TasksConfig { prefetching, ..TasksConfig::new(policy, &sequential::HANDLER, frames as usize, machine, scheduler) }
}

const SETTINGS: [(&str, Activation); 2] =
    [("no prefetching", Activation::Never), ("prefetch-75", Activation::Tick(0.75))];

/// Steps a second: a step is a run of references to one page, what the hot loop goes through.
fn rate(scheduler: &str, specs: &[TaskSpec], activation: Activation) -> f64 {
    let pages: u32 = specs.iter().map(|spec| spec.program.pages).sum();
    let config = config(scheduler, pages, activation);
    let began = Instant::now();
    black_box(Cpu::new(&config, specs).expect("our own configuration").run());
    let seconds = began.elapsed().as_secs_f64();
    let steps: u64 = specs.iter().map(|s| s.program.steps.len() as u64 * u64::from(s.rounds.unwrap_or(0))).sum();
    steps as f64 / seconds
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let trace = "game.parquet";
    let program = program(trace);
    let (one, many) = (specs(&program, 1), specs(&program, TASKS));
    let steps = program.steps.len();
    println!(
        "trace {trace}: {} pages, {steps} runs of references to one page, {LAPS} laps by {TASKS} tasks",
        program.pages
    );
    for (scheduler, _) in scheduler::ALL {
        for (name, activation) in SETTINGS {
            let (mut alone, mut together) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                alone.push(rate(scheduler, &one, activation));
                together.push(rate(scheduler, &many, activation));
            }
            let (alone, together) = (median(alone), median(together));
            println!(
                "{scheduler:<12} {:<18} one task {:>7.1} M/s, {TASKS} tasks {:>7.1} M/s: {:.2} of it (asked: at least 0.5)",
                name,
                alone / 1e6,
                together / 1e6,
                together / alone
            );
        }
    }
}
