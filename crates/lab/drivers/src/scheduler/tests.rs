//! Tests of the schedulers: `next` predicts `switch`, shares are equal, and sleepers are placed as the kernel
//! places them.

use proptest::prelude::*;

use super::*;

const MS: Ps = Ps::from_us(1_000);

fn times(time: Ps, n: u64) -> Ps {
    Ps(time.0 * n)
}

/// Runs tasks that are always ready for this many ticks of a millisecond. Returns each task's ticks.
fn shares(scheduler: &mut dyn Scheduler, tasks: usize, ticks: u64) -> Vec<u64> {
    (0..tasks).for_each(|task| scheduler.wake(task));
    let mut had = vec![0; tasks];
    let mut running = scheduler.switch().unwrap();
    for _ in 0..ticks {
        had[running] += 1;
        scheduler.charge(MS);
        if scheduler.used() >= scheduler.slice() {
            running = scheduler.switch().unwrap();
        }
    }
    had
}

#[test]
fn equal_tasks_have_equal_time_under_every_scheduler() {
    for (name, make) in ALL {
        let had = shares(&mut *make(5, None), 5, 10_000);
        assert!(had.iter().all(|time| time.abs_diff(2_000) <= 100), "{name}: {had:?}");
    }
}

#[test]
fn a_cfs_slice_is_a_share_of_a_period_that_stretches_with_more_than_five_tasks() {
    let mut cfs = find("cfs").unwrap()(10, None);
    cfs.wake(0);
    cfs.switch();
    assert_eq!(cfs.slice(), times(MS, 20));
    (1..5).for_each(|task| cfs.wake(task));
    assert_eq!(cfs.slice(), times(MS, 4));
    (5..10).for_each(|task| cfs.wake(task));
    assert_eq!(cfs.slice(), times(MS, 4), "40 ms for ten");
}

#[test]
fn a_cfs_sleeper_is_credited_one_latency_and_preempts() {
    let mut cfs = find("cfs").unwrap()(2, None);
    cfs.wake(0);
    assert_eq!(cfs.switch(), Some(0));
    cfs.charge(MS);
    cfs.block();
    cfs.wake(1);
    assert_eq!(cfs.switch(), Some(1));
    cfs.charge(times(MS, 100));
    cfs.wake(0);
    // 20 ms behind, and the granularity is 10 ms.
    assert!(cfs.preempts(0));
    assert_eq!(cfs.switch(), Some(0));
    cfs.charge(times(MS, 19));
    assert_eq!(cfs.next(Ps::ZERO), Some(0));
    assert_eq!(cfs.next(times(MS, 2)), Some(1), "after two more milliseconds it is ahead of the other");
}

#[test]
fn round_robin_keeps_the_rest_of_a_slice_over_a_sleep() {
    let mut queue = find("round-robin").unwrap()(2, None);
    queue.wake(0);
    queue.wake(1);
    queue.switch();
    queue.charge(times(MS, 30));
    queue.block();
    assert_eq!(queue.switch(), Some(1));
    queue.wake(0);
    assert_eq!((queue.switch(), queue.used()), (Some(0), times(MS, 30)));
    assert!(!queue.preempts(1));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Charge(u64),
    Switch,
    Block,
    Wake(usize),
    Follow(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..9u64).prop_map(Step::Charge),
        2 => Just(Step::Switch),
        1 => Just(Step::Block),
        2 => (0..6usize).prop_map(Step::Wake),
        1 => (0..6usize).prop_map(Step::Follow),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn next_has_no_side_effect_and_is_what_switch_then_does(
        steps in steps(),
        which in 0..ALL.len(),
    ) {
        let make = ALL[which].1;
        let (mut predicting, mut silent) = (make(6, None), make(6, None));
        let (mut ready, mut running) = ([false; 6], None);
        for step in steps {
            match step {
                Step::Charge(ms) if running.is_some() => {
                    let ahead = predicting.next(times(MS, ms));
                    [&mut predicting, &mut silent].into_iter().for_each(|s| s.charge(times(MS, ms)));
                    prop_assert_eq!(ahead, predicting.next(Ps::ZERO));
                }
                Step::Switch => {
                    let predicted = predicting.next(Ps::ZERO);
                    running = predicting.switch();
                    prop_assert_eq!(predicted, running);
                    prop_assert_eq!(running, silent.switch());
                }
                Step::Block if running.is_some() => {
                    ready[running.take().unwrap()] = false;
                    [&mut predicting, &mut silent].into_iter().for_each(|s| s.block());
                }
                Step::Wake(task) if !ready[task] => {
                    ready[task] = true;
                    [&mut predicting, &mut silent].into_iter().for_each(|s| s.wake(task));
                    prop_assert_eq!(predicting.preempts(task), silent.preempts(task));
                }
                Step::Follow(task) if predicting.waits(task) => {
                    running = Some(task);
                    [&mut predicting, &mut silent].into_iter().for_each(|s| s.run(Some(task)));
                }
                _ => {}
            }
            prop_assert_eq!(predicting.ready(), ready.iter().filter(|r| **r).count());
            prop_assert_eq!(predicting.used(), silent.used());
            prop_assert!(ready.iter().any(|r| *r) == predicting.next(Ps::ZERO).is_some(), "a ready task can run");
        }
    }
}
