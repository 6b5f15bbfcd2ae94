//! The plan of `fit` on a fake runner.

use super::counted::{HowManyFit, JobsEnd};
use super::plan::HowMany;
use crate::bench::fake::Fake;
use crate::bench::log::RunLog;
use crate::bench::plan::carry_out;
use crate::bench::trial::Refusal;
use crate::listener::Silent;
use crate::run::runs::Way;

fn plan(program: &str, served: Option<f64>, up_to: u32) -> HowMany {
    let program = program.split(' ').map(String::from).collect();
    HowMany { program, way: Way::limit(), ram_bytes: 1 << 30, served, prepare: None, up_to }
}

fn fitted(plan: &HowMany, fake: &mut Fake) -> Result<HowManyFit, Refusal> {
    let mut runs = RunLog::default();
    carry_out(plan, &mut runs, fake, &Silent)?;
    Ok(plan.counted(&runs))
}

/// The numbers that were run, in their order.
fn ran(fake: &Fake) -> Vec<u32> {
    fake.trials.iter().filter_map(|trial| trial.jobs).collect()
}

/// A build: 100 MiB that all share, 150 for each job; 3 at a time are fastest.
fn build() -> Fake {
    let times = [60.0, 32.0, 22.0, 30.0, 31.0, 33.0];
    let row = |(at, seconds): (usize, &f64)| (at as u32 + 1, *seconds, 100 + 150 * (at as u64 + 1));
    let mut jobs: Vec<_> = times.iter().enumerate().map(row).collect();
    jobs.push((7, 34.0, 1150));
    Fake { jobs, ..Fake::new(10.0) }
}

#[test]
fn the_fastest_number_and_the_largest_that_lives_are_found_with_few_runs() {
    let mut fake = build();
    let counted = fitted(&plan("make -j{n}", None, 64), &mut fake).unwrap();
    assert_eq!((counted.fastest, counted.largest), (Some(3), Some(6)));
    assert_eq!(ran(&fake), [1, 2, 4, 8, 6, 7, 3]);
    let dead = counted.dead().unwrap();
    assert_eq!((dead.jobs, dead.end), (7, JobsEnd::Killed));
    assert_eq!((counted.each_more_bytes, counted.shared_bytes), (Some(150 << 20), Some(100 << 20)));
    assert_eq!((counted.name(3), counted.short(4)), ("make -j3".into(), "-j4".into()));
}

#[test]
fn numbers_that_differ_by_less_than_the_noise_are_as_fast_and_the_least_of_them_counts() {
    // Two processors: from two jobs on nothing is gained.
    let jobs = vec![(1, 20.0, 100), (2, 10.0, 200), (3, 10.2, 300), (4, 9.9, 400)];
    let best = |seed| {
        let mut fake = Fake { jobs: jobs.clone(), noise: 0.1, seed, ..Fake::new(10.0) };
        fitted(&plan("make -j{n}", None, 8), &mut fake).unwrap().fastest.unwrap()
    };
    let two = (0..100).filter(|seed| best(*seed) == 2).count();
    assert!(two >= 95, "{two} of 100");
}

#[test]
fn single_runs_that_are_near_are_repeated_and_repeats_take_no_longer_than_first_runs() {
    let jobs = vec![(1, 20.0, 100), (2, 10.0, 200), (3, 10.8, 300), (4, 30.0, 400)];
    let mut fake = Fake { jobs, ..Fake::new(10.0) };
    let counted = fitted(&plan("make -j{n}", None, 4), &mut fake).unwrap();
    assert_eq!(ran(&fake), [1, 2, 4, 3, 2, 3, 2, 3]);
    let (two, three) = (counted.size(2).unwrap(), counted.size(3).unwrap());
    assert!(three.is_slower(two, false) && two.runs == 3 && counted.size(4).unwrap().runs == 1);
}

#[test]
fn copies_count_by_the_time_of_one_of_them() {
    let jobs = vec![(1, 10.0, 50), (2, 11.0, 100), (3, 18.0, 150), (4, 25.0, 200), (8, 52.0, 400)];
    let counted = fitted(&plan("./job", None, 8), &mut Fake { jobs, ..Fake::new(10.0) }).unwrap();
    assert!(counted.copies && counted.fastest == Some(2) && counted.largest == Some(8), "{counted:?}");
    assert_eq!((counted.name(1), counted.short(2)), ("1 copy of ./job".into(), "2 copies".into()));
}

#[test]
fn a_server_lives_if_it_was_not_killed_in_its_time_and_has_no_fastest_number() {
    let jobs = (1..=20).map(|jobs| (jobs, f64::INFINITY, 64 * u64::from(jobs))).collect();
    let mut fake = Fake { jobs, ..Fake::new(f64::INFINITY) };
    fake.seconds = 4.0;
    let counted = fitted(&plan("gunicorn -w {n} app", Some(20.0), 64), &mut fake).unwrap();
    assert_eq!((counted.fastest, counted.largest, counted.dead().map(|dead| dead.jobs)), (None, Some(16), Some(17)));
    assert_eq!((counted.short(17), counted.short(3)), ("-w 17".into(), "-w 3".into()));
    // Each run of one that lives takes that long, and none is repeated.
    assert_eq!(ran(&fake), [1, 2, 4, 8, 16, 32, 24, 20, 18, 17]);
    let ended = Fake { jobs: vec![(1, 0.5, 10)], ..Fake::new(1.0) };
    let why = fitted(&plan("ls", Some(20.0), 64), &mut { ended }).unwrap_err();
    assert!(why.code == 3 && why.message.contains("without --for"), "{why:?}");
}

#[test]
fn one_that_does_not_live_or_fails_ends_it() {
    let counted = fitted(&plan("make -j{n}", None, 8), &mut Fake { jobs: vec![(1, 9.0, 2000)], ..build() }).unwrap();
    assert_eq!((counted.fastest, counted.largest, counted.sizes.len()), (None, None, 1));
    let why = fitted(&plan("make -j{n}", None, 8), &mut Fake { status: 2, ..build() }).unwrap_err();
    assert_eq!((why.code, why.message.as_str()), (3, "make -j1 ended with exit code 2: mend it, and fit again"));
    let why = fitted(&plan("make -j{n}", None, 8), &mut Fake { signal_at: Some(2), ..build() }).unwrap_err();
    assert_eq!(why.code, 130);
}

#[test]
fn a_program_that_finds_its_work_done_is_no_answer_unless_it_is_undone_before() {
    let again = || Fake { again: 0.001, ..build() };
    let mut fake = again();
    let why = fitted(&plan("make -j{n}", None, 8), &mut fake).unwrap_err();
    assert!(why.code == 6 && why.message.contains("make -j1 took 60.00 s, and 0.06 s"), "{why:?}");
    assert!(why.message.contains("--prepare") && ran(&fake) == [1, 2, 2, 2, 1], "{why:?}");
    let prepared = HowMany { prepare: Some("make clean".into()), ..plan("make -j{n}", None, 2) };
    // Its files were cold at first: the median of three counts.
    let mut fake = Fake { again: 0.3, ..build() };
    let counted = fitted(&prepared, &mut fake).unwrap();
    assert!(ran(&fake).starts_with(&[1, 2, 1, 1]) && counted.size(1).unwrap().seconds < 20.0, "{counted:?}");
}

#[test]
fn what_swap_hid_is_not_said() {
    let swapped = HowMany { way: Way::kernel(Some("zram".into())), ..plan("make -j{n}", None, 8) };
    let jobs = vec![(1, 10.0, 500), (2, 10.0, 1024)];
    let counted = fitted(&swapped, &mut Fake { jobs, ..Fake::new(10.0) }).unwrap();
    assert_eq!((counted.each_more_bytes, counted.swap.as_str()), (None, "zram"));
}
