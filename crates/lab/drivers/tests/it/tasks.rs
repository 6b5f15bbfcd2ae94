//! Several tasks on one processor. Faults are counted as Linux counts them. Prefetching helps, or is dropped. Each task
//! makes the same references as alone.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::Ps;
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{
    Activation, Cpu, OnFault, Prefetching, Program, Step, TaskSpec, TasksConfig, TasksResult,
};
use coldframe_journal::replay;
use coldframe_lane::machine::{MachineConfig, Zeros};
use coldframe_lane::DeviceTimes;
use coldframe_lane::PageRef;
use coldframe_sheet::StagePrices;
use proptest::prelude::*;

const MS: Ps = Ps::from_us(1_000);

const NONE: Prefetching = Prefetching {
    list_max: 1024,
    depth: 8,
    ready_min: 2,
    past_switch: true,
    arrival: Arrival::BehindSlice,
    ..Prefetching::NEVER
};

fn config(frames: usize, scheduler: &str, prefetching: Prefetching) -> TasksConfig {
    let (policy, handler) = (PolicyChoice::parse("second-chance").unwrap(), handler::find("sequential").unwrap());
    let times = DeviceTimes { load: Ps::from_us(100), program: Some(Ps::from_us(50)) };
    let machine = MachineConfig::device(StagePrices::uniform(Ps::from_ns(100)), times, Zeros::Once);
    let scheduler = scheduler::find(scheduler).unwrap();
    TasksConfig { prefetching, ..TasksConfig::new(policy, handler, frames, machine, scheduler) }
}

/// `pages` pages in turn, each referenced this many times.
fn sweep(pages: u32, times: u32, writing: bool) -> Program {
    Program::new((0..pages).map(|page| Step { reference: PageRef::new(page, writing, false), times }).collect())
}

fn tasks(n: u32, program: &Program, rounds: u32) -> Vec<TaskSpec> {
    (0..n).map(|i| TaskSpec::new(program.clone(), i * program.pages, rounds)).collect()
}

fn run(config: &TasksConfig, specs: &[TaskSpec]) -> TasksResult {
    Cpu::new(config, specs).unwrap().run()
}

#[test]
fn with_ram_for_all_each_page_is_a_minor_fault_once_and_time_is_that_of_the_references() {
    let program = sweep(50, 1_000, true);
    let result = run(&config(500, "cfs", NONE), &tasks(4, &program, 3));
    assert_eq!((result.major(), result.faults(), result.references), (0, 200, 4 * 50 * 1_000 * 3));
    assert_eq!(result.idle, Ps::ZERO);
    let useful: Ps = result.tasks.iter().map(|task| task.useful).sum();
    assert_eq!(useful, Ps::from_ns(100) * result.references);
    // A cold fault passes the stages of the sequential handler, at 0.1 us each. It needs no search and no device.
    assert!(result.time >= useful && result.time <= useful + Ps::from_us(1) * 200, "{:?}", result.time);
}

/// Four pages in two frames, three rounds. A task that keeps its memory loads each page again in the second and third
/// round. A task that returns its memory after each round touches pages of zeros, which no device loads. A page takes a
/// millisecond, so no fault meets a page-out.
#[test]
fn a_task_that_gives_its_memory_back_begins_each_round_in_new_pages() {
    let program = sweep(4, 10_000, true);
    let with = |fresh| run(&config(2, "cfs", NONE), &[TaskSpec { fresh, ..tasks(1, &program, 3).remove(0) }]);
    let (reused, fresh) = (with(false), with(true));
    assert_eq!((reused.major(), reused.faults()), (8, 12));
    assert_eq!((fresh.major(), fresh.faults()), (0, 12));
}

/// Three rounds of two turns are six turns, with a pause between two turns; three rounds of one turn are three turns.
#[test]
fn a_task_pauses_after_each_turn() {
    let program = sweep(4, 10, true);
    let idle = |turns| {
        let spec = TaskSpec { turns, pause: MS, ..tasks(1, &program, 3).remove(0) };
        let result = run(&config(8, "cfs", NONE), &[spec]);
        assert_eq!(result.references, 3 * 4 * 10);
        result.idle
    };
    assert_eq!((idle(1), idle(2), idle(4)), (MS * 2, MS * 5, MS * 11));
}

/// Round robin with slices as long as a sweep. LRU has evicted each task's pages when its turn comes (figure 4), and
/// all of them can be loaded in the second half of the slice before.
fn figure_4(prefetching: Prefetching) -> TasksResult {
    // 100 pages at 1 ms each: one sweep is one slice of 100 ms. Four tasks, RAM for one and a half.
    run(&config(150, "round-robin", prefetching), &tasks(4, &sweep(100, 10_000, false), 5))
}

#[test]
fn prefetching_spares_the_next_task_its_major_faults() {
    // Clean pages that were never written out are zeros, so the sweeps must write.
    let program = sweep(100, 10_000, true);
    let specs = tasks(4, &program, 5);
    let plain = run(&config(150, "round-robin", NONE), &specs);
    let half = Prefetching { activation: Activation::Timer(0.5), ..NONE };
    let assisted = run(&config(150, "round-robin", half), &specs);
    assert!(plain.major() > 1_000, "{plain:?}");
    assert!(assisted.major() * 3 < plain.major() * 2, "{} of {}: {assisted:?}", assisted.major(), plain.major());
    assert!(assisted.prefetched().used > 0 && assisted.prefetch.predicted > 0);
    // A touch of a prefetched page is a minor fault instead of a major one. Without prefetching, only first touches are
    // minor.
    assert_eq!(plain.faults() - plain.major(), 400);
    assert!(assisted.faults() - assisted.major() >= 400 + assisted.prefetched().used);
    assert_eq!(plain.prefetch.activations, 0);
}

#[test]
fn at_xi_one_nothing_is_prefetched() {
    for activation in [Activation::Tick(1.0), Activation::Timer(1.0)] {
        let result = figure_4(Prefetching { activation, ..NONE });
        assert_eq!((result.prefetch.activations, result.counts.prefetches), (0, 0));
    }
}

#[test]
fn a_list_of_no_pages_changes_nothing() {
    let program = sweep(100, 5_000, true);
    let specs = tasks(4, &program, 4);
    let plain = run(&config(250, "cfs", NONE), &specs);
    let empty = Prefetching { activation: Activation::Tick(0.5), list_max: 0, ..NONE };
    let empty = run(&config(250, "cfs", empty), &specs);
    assert_eq!((plain.major(), plain.faults(), plain.time), (empty.major(), empty.faults(), empty.time));
}

/// A page that was loaded for a waiting task may be evicted before the task runs; the task's access still completes.
#[test]
fn five_tasks_in_four_frames_get_on() {
    let specs = tasks(5, &sweep(40, 300, true), 3);
    let result = run(&config(4, "round-robin", NONE), &specs);
    assert_eq!(result.references, 5 * 40 * 300 * 3);
    // A sweep of 40 pages in 4 frames finds no page of the sweep before. First touches are no major faults.
    assert_eq!(result.counts.true_faults, 5 * 40 * 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In every setting: all references are made, every fault is counted, the engine's invariants hold, and a replay of
    /// the journal gives the same commands.
    #[test]
    fn every_setting_ends_with_its_books_in_order(
        sizes in prop::collection::vec(1..60u32, 1..6),
        frames in 4..120usize,
        which in 0..scheduler::ALL.len(),
        xi in 0.0..=1.0f64,
        how in 0..3usize,
        list_max in 0..64usize,
        depth in 1..6u32,
        follow in any::<bool>(),
        writing in any::<bool>(),
    ) {
        let activation = [Activation::Never, Activation::Tick(xi), Activation::Timer(xi)][how];
        let prefetching = Prefetching { activation, list_max, depth, follow, ..NONE };
        let mut specs = sweeps(&sizes, 300, writing, 3);
        if let [.., before, last] = &mut specs[..] {
            last.first_page = before.first_page;
        }
        let config = TasksConfig { tick: Ps::from_us(100), ..config(frames, scheduler::ALL[which].0, prefetching) };
        let mut cpu = Cpu::new(&config, &specs).unwrap();
        cpu.keep_journal();
        let mut journal = Vec::new();
        let result = cpu.run_with_journal(&mut |bytes| { journal.extend_from_slice(bytes); Ok::<_, ()>(()) }).unwrap();
        cpu.check();
        replay(&journal).unwrap();
        prop_assert_eq!(result.references, sizes.iter().map(|pages| u64::from(*pages) * 300 * 3).sum::<u64>());
        prop_assert!(result.tasks.iter().all(|task| task.ended.is_some()));
        let c = result.counts;
        prop_assert_eq!(result.major() + c.cold_faults, c.true_faults);
        prop_assert!(result.prefetched().used + result.prefetched().useless <= c.prefetches);
        prop_assert!(result.device_busy <= result.time + Ps::from_us(150 * 200));
    }

    /// The sweeps only read, so no writes delay faults. A fault takes its own load, the rest of one transfer, and the
    /// stages.
    #[test]
    fn a_prefetch_never_delays_a_demand_load_by_more_than_one_transfer(
        sizes in prop::collection::vec(8..60u32, 2..6),
        frames in 12..120usize,
        which in 0..scheduler::ALL.len(),
        how in prop_oneof![
            (0.0..1.0f64).prop_map(Activation::Tick),
            (0.0..1.0f64).prop_map(Activation::Timer),
        ],
        depth in 1..12u32,
    ) {
        let prefetching = Prefetching { activation: how, depth, ..NONE };
        let config = TasksConfig {
            on_fault: OnFault::Keeps,
            tick: Ps::from_us(100),
            slice: Some(Ps::from_us(5_000)),
            ..config(frames, scheduler::ALL[which].0, prefetching)
        };
        let result = run(&config, &sweeps(&sizes, 300, false, 4));
        let (load, stages) = (Ps::from_us(100), Ps::from_us(1));
        let longest = result.tasks.iter().map(|task| task.stall.max()).max().unwrap();
        prop_assert!(longest <= load + load + stages, "{longest:?}");
    }
}

/// Sweeps of these sizes; each task has its own pages.
fn sweeps(sizes: &[u32], times: u32, writing: bool, rounds: u32) -> Vec<TaskSpec> {
    let mut first_page = 0;
    let spec = |pages: &u32| {
        let spec = TaskSpec { first_page, ..tasks(1, &sweep(*pages, times, writing), rounds).remove(0) };
        first_page += pages;
        spec
    };
    sizes.iter().map(spec).collect()
}
