//! Several tasks on one processor. Faults are counted as Linux counts them. Prefetching helps, or is dropped. Each task
//! makes the same references as alone.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::{Below, Ps};
use coldframe_device::StagePrices;
use coldframe_journal::replay;
use coldframe_sim::machine::{MachineConfig, Zeros};
use coldframe_sim::scheduler;
use coldframe_sim::tasks::bound::{Job, Schedule};
use coldframe_sim::tasks::{
    Activation, Cpu, OnFault, PageOut, Prefetching, Program, Queue, Reclaim, ReclaimCounts, Rule, Step, TaskSpec,
    TasksConfig, TasksResult, Watermarks, CAPS,
};
use coldframe_sim::DeviceTimes;
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
        evict_batch: 1,
        machine: MachineConfig::device(
            StagePrices::uniform(Ps::from_ns(100)),
            DeviceTimes { load: Ps::from_us(100), program: Some(Ps::from_us(50)) },
            Zeros::Once,
        ),
        caps: CAPS,
        area: Below::Homes,
        xip_surplus: Ps::ZERO,
        reference: Ps::from_ns(100),
        tick: MS,
        scheduler: scheduler::find(scheduler).unwrap(),
        slice: None,
        on_fault: OnFault::Sleeps,
        prefetching,
        reclaim: Reclaim::default(),
    }
}

/// `pages` pages in turn, each referenced this many times.
fn sweep(pages: u32, times: u32, writing: bool) -> Program {
    Program::new((0..pages).map(|page| Step { reference: PageRef::new(page, writing, false), times }).collect())
}

fn tasks(n: u32, program: &Program, rounds: u32) -> Vec<TaskSpec> {
    let task = |i| TaskSpec {
        program: program.clone(),
        first_page: i * program.pages,
        rounds: Some(rounds),
        pause: Ps::ZERO,
        turns: 1,
        fresh: false,
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
    let (kept, fresh) = (with(false), with(true));
    assert_eq!((kept.major(), kept.faults()), (8, 12));
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

    /// In every setting: all references are made, every fault is counted, and the engine's invariants hold.
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
            [Activation::Never, Activation::Tick(xi), Activation::Timer(xi), Activation::Adaptive(Rule::LEARNT)][how];
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
            Just(Activation::Adaptive(Rule::LEARNT)),
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

    /// In any fixed schedule of jobs: each page faults once before it is on a list. Afterwards, the faults in a round
    /// stay within the bound.
    #[test]
    fn faults_left_in_a_job_stay_within_the_real_time_bound(
        sizes in prop::collection::vec(5..60u32, 2..6),
        spare in 0..40u64,
        times in 200..4_000u32,
        xi in 0.0..1.0f64,
        timer in any::<bool>(),
    ) {
        prop_assert_eq!(real_time(&sizes, spare, times, xi, timer).2, None);
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

/// Runs jobs of these sizes in turn, in RAM for the two largest neighbours and `spare` pages. Returns the faults of all
/// jobs, the bound on them without first faults, and the first job that exceeds its bound.
fn real_time(sizes: &[u32], spare: u64, times: u32, xi: f64, timer: bool) -> (u64, u64, Option<String>) {
    const ROUNDS: u32 = 8;
    const DEPTH: u32 = 4;
    let mut specs = sweeps(sizes, times, true, ROUNDS);
    // A job ends with its round, and its task is ready again at once.
    specs.iter_mut().for_each(|spec| spec.pause = Ps(1));
    let pairs = sizes.iter().zip(sizes.iter().cycle().skip(1)).map(|(a, b)| u64::from(a + b));
    let frames = pairs.max().unwrap() + spare;
    let activation = if timer { Activation::Timer(xi) } else { Activation::Tick(xi) };
    let config = TasksConfig {
        policy: PolicyChoice::parse("fifo-sc:valid=1").unwrap(),
        on_fault: OnFault::Keeps,
        tick: Ps::from_us(100),
        slice: Some(Ps::from_us(10_000_000)),
        ..config((frames + u64::from(DEPTH)) as usize, "round-robin", Prefetching { activation, depth: DEPTH, ..NONE })
    };
    let result = run(&config, &specs);
    // Each change of page is a fault of at most six stages, at 0.1 us each.
    let job = |pages: &u32| Job {
        pages: u64::from(*pages),
        work: Ps::from_ns(100) * u64::from(*pages * times),
        overhead: Ps::from_ns(600) * u64::from(*pages),
    };
    let jobs: Vec<Job> = sizes.iter().map(job).collect();
    // A run of references to one page is not interrupted, so a tick can be late by one run.
    let tick = config.tick + Ps::from_ns(100) * u64::from(times);
    let schedule = Schedule { jobs: &jobs, frames, transfer: Ps::from_us(150), queue: u64::from(DEPTH), xi, tick };
    let (mut all, mut bounds, mut broken) = (0, 0, None);
    for (i, task) in result.tasks.iter().enumerate() {
        let left = schedule.faults_left(i).expect("neighbours fit");
        let (faults, bound) = (task.major + task.in_flight, u64::from(ROUNDS - 2) * left);
        all += faults;
        bounds += bound;
        // The first round's pages are zeros, and the lists are empty in the second round.
        if faults > bound + jobs[i].pages {
            broken = Some(format!("job {i}: {faults} faults, bound {bound} and {} first ones", jobs[i].pages));
        }
    }
    (all, bounds, broken)
}

/// By hand: four jobs of 40 pages, RAM for two of them. At 1 ms a page, a job takes 40 ms. Its second half is 20 ms,
/// less two for tick and stages. That is time for over 100 transfers of 0.15 ms, more than the 40 needed: only each
/// page's first fault remains. Without prefetching, each page faults in each round but the first.
#[test]
fn a_schedule_with_time_for_all_loads_has_first_faults_only() {
    let (faults, bound, broken) = real_time(&[40; 4], 0, 10_000, 0.5, true);
    assert_eq!((faults, bound, broken), (160, 0, None));
    let (faults, bound, broken) = real_time(&[40; 4], 0, 10_000, 1.0, true);
    assert_eq!((faults, bound, broken), (4 * 40 * 7, 4 * 40 * 6, None));
}

/// All parts of the kernel, with a nap of 10 ms.
fn kernel(frames: usize) -> Reclaim {
    Reclaim {
        token: true,
        kswapd: Some(Watermarks::linux(frames, 4096)),
        page_out: PageOut::Behind,
        nap: MS * 10,
        queue: Queue::InOrder,
        cluster: 8,
    }
}

/// One task sweeps 400 pages in 200 frames, so FIFO always misses. First touches do not wait. kswapd does not preempt,
/// so it leaves their 200 evictions to the faults. The first load finds no free frame either. kswapd runs during that
/// load, and then no fault searches.
#[test]
fn kswapd_frees_frames_while_tasks_wait() {
    let specs = tasks(1, &sweep(400, 10, false), 3);
    let base = TasksConfig { policy: PolicyChoice::parse("fifo").unwrap(), ..config(200, "cfs", NONE) };
    let kswapd = Some(Watermarks::linux(200, 4096));
    let alone = run(&base, &specs);
    let with = run(&TasksConfig { reclaim: Reclaim { kswapd, ..Reclaim::default() }, ..base }, &specs);
    assert_eq!((alone.major(), with.major()), (800, 800));
    assert_eq!((alone.tasks.len(), with.tasks.len()), (1, 1));
    assert_eq!(alone.reclaim, ReclaimCounts::default());
    assert_eq!(with.counts.evictions - with.reclaim.pages, 201);
}

/// Four tasks that only wait: a load takes 0.1 ms and the write for its frame 0.05 ms. Each task waits for the
/// transfers of all four: 0.6 ms with the writes, 0.4 ms without. A pause lets the first round's writes end. The second
/// round's writes fit in the queue.
#[test]
fn pages_are_written_behind_the_loads_of_others() {
    let stall = |page_out| {
        let config = TasksConfig { reclaim: Reclaim { page_out, ..Reclaim::default() }, ..config(20, "cfs", NONE) };
        let specs: Vec<_> =
            tasks(4, &sweep(30, 1, true), 2).into_iter().map(|spec| TaskSpec { pause: MS * 100, ..spec }).collect();
        run(&config, &specs).tasks[0].stall.mean().unwrap().0 as f64 / 1e6
    };
    let (waits, behind) = (stall(PageOut::Waits), stall(PageOut::Behind));
    assert!((waits - 600.0).abs() < 60.0 && (behind - 400.0).abs() < 60.0, "{waits} {behind}");
}

/// Four sweeps of 40 pages in 60 frames; each waits for the loads of all. Only the task that has the token has fewer
/// faults: its pages stay while it waits. The other tasks have as many faults as before.
#[test]
fn the_token_keeps_its_holders_pages() {
    let specs: Vec<_> =
        tasks(4, &sweep(40, 10, false), 10).into_iter().map(|spec| TaskSpec { pause: MS, ..spec }).collect();
    let with = |token| {
        run(&TasksConfig { reclaim: Reclaim { token, ..Reclaim::default() }, ..config(60, "cfs", NONE) }, &specs)
    };
    let (free, held) = (with(false), with(true));
    assert_eq!((free.reclaim.token_moves, free.reclaim.token_spared), (0, 0));
    assert!(held.reclaim.token_spared > 0);
    let fewer = free.tasks.iter().zip(&held.tasks).filter(|(free, held)| held.major < free.major);
    assert_eq!((held.reclaim.token_moves, fewer.count()), (1, 1));
    assert!(free.tasks.iter().zip(&held.tasks).all(|(free, held)| held.major <= free.major));
}

/// 400 pages in order, twice, in 200 frames. FIFO evicts each page just before it is needed. With clusters of 8, every
/// eighth page is a major fault.
#[test]
fn a_cluster_is_read_together() {
    let base = TasksConfig { policy: PolicyChoice::parse("fifo").unwrap(), ..config(200, "cfs", NONE) };
    let prefetching = Prefetching { arrival: Arrival::Mapped, ..NONE };
    let major = |cluster| {
        let reclaim = Reclaim { cluster, ..Reclaim::NONE };
        run(&TasksConfig { reclaim, prefetching, ..base.clone() }, &tasks(1, &sweep(400, 1, false), 2)).major()
    };
    assert_eq!((major(1), major(8)), (400, 50));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// In every setting of the kernel, each task makes its references, and a replay of the journal gives the same
    /// commands.
    #[test]
    fn a_kernel_loses_no_reference_and_its_journal_replays(
        frames in 8..80usize,
        sizes in prop::collection::vec(2..60u32, 1..4),
        (token, kswapd, behind, in_order, nap) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0..3u64),
        (prefetch, cluster) in (any::<bool>(), 1..9u32),
    ) {
        let all = kernel(frames);
        let reclaim = Reclaim {
            token,
            kswapd: all.kswapd.filter(|_| kswapd),
            page_out: if behind { all.page_out } else { PageOut::Waits },
            nap: MS * nap,
            queue: if in_order { all.queue } else { Queue::DemandFirst },
            cluster,
        };
        let activation = if prefetch { Activation::Tick(0.5) } else { Activation::Never };
        let config = TasksConfig { reclaim, ..config(frames, "cfs", Prefetching { activation, ..NONE }) };
        let specs = sweeps(&sizes, 20, true, 4);
        let mut cpu = Cpu::new(&config, &specs).unwrap();
        cpu.keep_journal();
        let mut journal = Vec::new();
        let result = cpu.run_with_journal(&mut |bytes| { journal.extend_from_slice(bytes); Ok::<_, ()>(()) }).unwrap();
        cpu.check();
        let references: u64 = sizes.iter().map(|pages| u64::from(*pages) * 20 * 4).sum();
        prop_assert_eq!(result.references, references);
        prop_assert!(result.tasks.iter().all(|task| task.ended.is_some()));
        replay(&journal).unwrap();
    }
}
