//! Several tasks on one processor: faults as Linux counts them, prefetching that helps where it can and is dropped where it cannot, and
//! the same references as alone.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::Ps;
use coldframe_device::StagePrices;
use coldframe_sim::clock::DeviceTimes;
use coldframe_sim::scheduler;
use coldframe_sim::tasks::{Activation, Cpu, OnFault, Prefetching, Program, Step, TaskSpec, TasksConfig, TasksResult};
use coldframe_sim::PageRef;
use proptest::prelude::*;

const MS: Ps = Ps::from_us(1_000);

const NONE: Prefetching = Prefetching {
    activation: Activation::Never,
    list_max: 1024,
    idle_max: Some(2),
    depth: 8,
    ready_min: 2,
    follow: false,
    renew: true,
    arrival: Arrival::BehindSlice,
};

fn config(frames: usize, scheduler: &str, prefetching: Prefetching) -> TasksConfig {
    TasksConfig {
        policy: PolicyChoice::parse("second-chance").unwrap(),
        handler: handler::find("sequential").unwrap(),
        frames,
        prices: StagePrices::uniform(Ps::from_ns(100)),
        device: DeviceTimes { load: Ps::from_us(100), program: Some(Ps::from_us(50)) },
        reference: Ps::from_ns(100),
        tick: MS,
        scheduler: scheduler::find(scheduler).unwrap(),
        slice: None,
        on_fault: OnFault::Sleeps,
        prefetching,
    }
}

/// `pages` pages, each referenced so often in turn.
fn sweep(pages: u32, times: u32, writing: bool) -> Program {
    Program::new((0..pages).map(|page| Step { reference: PageRef::new(page, writing, false), times }).collect())
}

fn tasks(n: u32, program: &Program, rounds: u32) -> Vec<TaskSpec> {
    let task = |i| TaskSpec {
        program: program.clone(),
        first_page: i * program.pages,
        rounds: Some(rounds),
        pause: Ps::ZERO,
        begins: Ps::ZERO,
        nice: 0,
        job: None,
    };
    (0..n).map(task).collect()
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
    // A cold fault goes through the stages of the sequential handler at 0.1 us each, no search among them, and needs no device.
    assert!(result.time >= useful && result.time <= useful + Ps::from_us(1) * 200, "{:?}", result.time);
}

/// Round robin with slices as long as a sweep: LRU has forced out each task's pages when its turn comes (figure 4), and all of them
/// can be loaded in the last half of the slice before.
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
    // A prefetched page that is touched is a minor fault instead of a major one; without prefetching only first touches are minor.
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

#[test]
fn a_job_takes_its_processor_time_and_what_others_take() {
    let alone = TaskSpec { job: Some(MS), ..tasks(1, &sweep(4, 1_000, false), 100).remove(0) };
    let result = run(&config(16, "cfs", NONE), std::slice::from_ref(&alone));
    assert_eq!(result.tasks[0].jobs.len(), 40, "100 rounds of 0.4 ms");
    assert!(result.tasks[0].jobs.iter().skip(1).all(|surplus| *surplus == Ps::ZERO));
    let mut two = vec![alone, tasks(2, &sweep(4, 1_000, false), 200).remove(1)];
    two[1].first_page = 4;
    let result = run(&config(16, "cfs", NONE), &two);
    let surplus: Ps = result.tasks[0].jobs.iter().copied().sum();
    assert!(surplus.0.abs_diff(result.tasks[0].ended.unwrap().0 / 2) < 11 * MS.0, "half of the time is the other's");
}

/// A page that comes for a task while others run may leave before its turn; the access that it came for has been made all the same.
#[test]
fn five_tasks_in_four_frames_get_on() {
    let specs = tasks(5, &sweep(40, 300, true), 3);
    let result = run(&config(4, "round-robin", NONE), &specs);
    assert_eq!(result.references, 5 * 40 * 300 * 3);
    // A sweep of 40 pages in 4 frames finds nothing of the last one; first touches are no major faults.
    assert_eq!(result.counts.true_faults, 5 * 40 * 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the setting: all references are made, every fault is accounted for, the engine's invariants hold.
    #[test]
    fn every_setting_ends_with_its_books_in_order(
        sizes in prop::collection::vec(1..60u32, 1..6),
        frames in 4..120usize,
        which in 0..scheduler::ALL.len(),
        xi in 0.0..=1.0f64,
        how in 0..4usize,
        list_max in 0..64usize,
        depth in 1..6u32,
        follow in any::<bool>(),
        writing in any::<bool>(),
    ) {
        let activation =
            [Activation::Never, Activation::Tick(xi), Activation::Timer(xi), Activation::Adaptive][how];
        let prefetching = Prefetching { activation, list_max, depth, follow, ..NONE };
        let mut first_page = 0;
        let specs: Vec<TaskSpec> = sizes.iter().enumerate().map(|(i, pages)| {
            let spec = TaskSpec { first_page, ..tasks(1, &sweep(*pages, 300, writing), 3).remove(0) };
            // The last two tasks share pages.
            first_page += if i + 2 == sizes.len() { 0 } else { *pages };
            spec
        }).collect();
        let config = TasksConfig { tick: Ps::from_us(100), ..config(frames, scheduler::ALL[which].0, prefetching) };
        let mut cpu = Cpu::new(&config, &specs).unwrap();
        let result = cpu.run();
        cpu.check();
        prop_assert_eq!(result.references, sizes.iter().map(|pages| u64::from(*pages) * 300 * 3).sum::<u64>());
        prop_assert!(result.tasks.iter().all(|task| task.ended.is_some()));
        let c = result.counts;
        prop_assert_eq!(result.major() + c.cold_faults, c.true_faults);
        prop_assert!(result.prefetched().used + result.prefetched().useless <= c.prefetches);
        prop_assert!(result.device_busy <= result.time + Ps::from_us(150 * 200));
    }
}
