//! The plans on a fake runner: what is decided, and after which runs.

use super::alone::{Alone, Yardstick};
use super::compare::{InTurn, Named};
use super::compared::Compared;
use super::fake::{Behaviour, Fake};
use super::files::LessCache;
use super::limit::InLimit;
use super::log::RunLog;
use super::plan::{carry_out, Plan, Step};
use super::runner::Ways;
use super::search::{Found, LessRam};
use super::trial::{Outcome, Refusal, Trial};
use crate::listener::Silent;
use crate::predict::common::Common;
use crate::predict::not_paged::NotPaged;
use crate::predict::question::Limits;
use crate::run::runs::{By, Run, Runs, Way};
use crate::run::streams::Output;

const MIB: u64 = 1 << 20;

/// Our pager and the kernel with zram.
fn ways() -> Ways {
    Ways { pager: Ok(Way::pager()), kernel: Ok(Way::kernel(Some("zram".into()))) }
}

/// Good from 40 MiB on, and 1,000 pages come back in less.
fn good_from_40() -> Behaviour {
    Behaviour { table: vec![(100, 1.0, 0), (39, 3.0, 1000)], peak: 60, ..Behaviour::default() }
}

/// The log of a program that was recorded.
fn recorded(fake: &Fake) -> RunLog {
    let output = Some(Output::digest(fake.prints[0]));
    RunLog::after(Run { seconds: fake.seconds, status: fake.status, output, ..Run::default() })
}

fn alone(fake: &mut Fake, runs: &mut RunLog) -> Yardstick {
    carry_out(&Alone { recorded_seconds: fake.seconds, limits: Limits::default() }, runs, fake, &Silent)
}

/// What the search finds from 60 MiB on, of 100, and all runs.
fn searched(fake: &mut Fake) -> (Found, RunLog) {
    let mut runs = recorded(fake);
    let yardstick = alone(fake, &mut runs);
    assert!(yardstick.seconds.is_some(), "{:?}", yardstick.remarks);
    let plan = LessRam {
        ways: vec![Way::pager(), Way::kernel(Some("zram".into()))],
        given: None,
        sizes: (60 * MIB, 100 * MIB),
        limits: Limits::default(),
        until: yardstick.until,
    };
    (carry_out(&plan, &mut runs, fake, &Silent), runs)
}

fn checked(fake: &mut Fake) -> Result<Option<(Runs, Runs)>, Refusal> {
    let plan = InLimit { ways: ways(), ram_bytes: 50 * MIB, slowdown: 0.1 };
    carry_out(&plan, &mut RunLog::default(), fake, &Silent)
}

fn compared(fake: &mut Fake) -> Result<Compared, Refusal> {
    let ram = ["50%".to_string()];
    let named = |name, way| Named { name, way, options: vec![] };
    let ways = vec![named("pager", Way::pager()), named("kernel, zram", Way::kernel(Some("zram".into())))];
    let plan = InTurn { ram: &ram, runs: 3, max_time: None, ways };
    let mut runs = RunLog::default();
    let memory = carry_out(&plan, &mut runs, fake, &Silent)?;
    Ok(plan.compared(&runs, memory, &["program".into()], vec![]))
}

#[test]
fn a_plan_is_a_pure_function_of_the_runs_and_of_the_time() {
    let plan = Alone { recorded_seconds: 0.5, limits: Limits::default() };
    let mut runs = RunLog::after(Run { seconds: 0.5, ..Run::default() });
    let Step::Run(trial) = plan.next(&runs, 0, 0.5) else { panic!("it runs alone first") };
    assert_eq!(plan.next(&runs, 0, 0.5), Step::Run(trial.clone()), "and says the same again");
    runs.add(trial, 0.5, Outcome::Ran(Run { seconds: 1.5, ..Run::default() }));
    let Step::Done(yardstick) = plan.next(&runs, 0, 2.0) else { panic!("a long run is enough") };
    assert_eq!(yardstick.seconds, Some(1.5));
}

#[test]
fn a_short_program_runs_alone_three_times_and_a_long_one_once() {
    for (seconds, count) in [(0.2, 3), (0.99, 3), (1.0, 1), (30.0, 1)] {
        let mut fake = Fake::new(seconds);
        let mut runs = recorded(&fake);
        assert_eq!(alone(&mut fake, &mut runs).seconds, Some(seconds));
        assert_eq!(fake.trials.len(), count, "{seconds} s");
    }
}

#[test]
fn a_program_that_differs_when_it_runs_again_has_no_yardstick_and_says_why() {
    let once = "it was not run any more, and all times are predicted";
    let cases: [(Fake, String); 4] = [
        (
            Fake { prints: vec!["done", "done", "there already"], ..Fake::new(0.2) },
            format!("when it ran again, its output was another one: {once}"),
        ),
        (
            Fake { status: 3, ..Fake::new(0.2) },
            format!("when it ran again, it ended with exit code 3 instead of 0: {once}"),
        ),
        (Fake::new(60.0), format!("when it ran again, it took over 20 s: {once}")),
        (
            Fake { signal_at: Some(1), ..Fake::new(0.2) },
            "stopped by a signal: what was not measured until then is predicted".into(),
        ),
    ];
    for (mut fake, remark) in cases {
        // As it was recorded: in less than a second, with exit code 0.
        let output = Some(Output::digest("done"));
        let mut runs = RunLog::after(Run { seconds: 0.2, output, ..Run::default() });
        let plan = Alone { recorded_seconds: 0.2, limits: Limits::default() };
        let yardstick = carry_out(&plan, &mut runs, &mut fake, &Silent);
        assert_eq!((yardstick.seconds, yardstick.remarks), (None, vec![remark]));
    }
}

#[test]
fn the_search_recommends_the_smallest_good_size_of_the_faster_pager() {
    let mut fake = Fake { pager: good_from_40(), kernel: good_from_40(), ..Fake::new(1.0) };
    fake.kernel.table[0].1 = 1.05;
    let (found, runs) = searched(&mut fake);
    let (ram, by) = found.size.good.unwrap();
    assert!((40..=42).contains(&(ram / MIB)) && by == By::Pager, "{found:?}");
    assert!(found.size.too_slow_bytes.unwrap() < ram && found.remarks.is_empty(), "{found:?}");
    let again = runs.paged(&Way::pager(), ram).unwrap();
    assert_eq!(again.runs.len(), 2, "the recommended size was run once more");
    assert!(runs.paged(&Way::kernel(Some("zram".into())), ram).is_some(), "and by the other pager");
}

#[test]
fn noise_and_drift_below_the_slowdown_change_the_size_little() {
    for seed in 0..20 {
        let mut fake = Fake { pager: good_from_40(), noise: 0.04, drift: 0.001, seed, ..Fake::new(0.3) };
        fake.pager.table.iter_mut().for_each(|row| row.1 *= 0.3);
        fake.kernel.refused = Some("no swap");
        let (found, _) = searched(&mut fake);
        let (ram, _) = found.size.good.expect("a size is good");
        assert!((40..=60).contains(&(ram / MIB)), "seed {seed}: {found:?}");
    }
}

#[test]
fn a_size_whose_runs_end_otherwise_is_not_good() {
    let cases = [
        (Behaviour { output: Some("out of memory"), ..good_from_40() }, "its output was another one"),
        (Behaviour { status: 3, ..good_from_40() }, "it ended with exit code 3 instead of 0"),
        (Behaviour { killed_below: 101, ..good_from_40() }, "the kernel killed it for lack of memory"),
    ];
    for (pager, why) in cases {
        let mut fake = Fake { pager, ..Fake::new(1.0) };
        fake.kernel.refused = Some("no swap");
        let (found, runs) = searched(&mut fake);
        assert_eq!(found.size.good, None, "{why}");
        let failed = runs.kinds().into_iter().filter_map(|(_, runs)| runs.failed).next();
        assert_eq!(failed.as_deref(), Some(why));
    }
}

#[test]
fn a_search_without_time_or_after_a_signal_says_why_it_ended() {
    let slow = Behaviour { table: vec![(100, 50.0, 9)], ..Behaviour::default() };
    let mut fake = Fake { pager: slow.clone(), kernel: slow, ..Fake::new(4.0) };
    let (found, _) = searched(&mut fake);
    assert_eq!(found.remarks, ["further sizes of RAM were not run: no time was left"], "{found:?}");
    let mut fake = Fake { pager: good_from_40(), kernel: good_from_40(), signal_at: Some(3), ..Fake::new(1.0) };
    let (found, _) = searched(&mut fake);
    assert_eq!(found.remarks, ["further sizes of RAM were not run: a signal came"], "{found:?}");
    let refused = Behaviour { refused: Some("no right"), ..Behaviour::default() };
    let mut fake = Fake { pager: refused.clone(), kernel: refused, ..Fake::new(1.0) };
    let (found, _) = searched(&mut fake);
    assert_eq!(found.remarks, ["further sizes of RAM were not run: that run could not be started"]);
}

#[test]
fn an_output_that_differs_in_numbers_is_noted_and_no_fault() {
    let mut fake = Fake { pager: Behaviour { output: Some("took 9 s"), ..good_from_40() }, ..Fake::new(1.0) };
    (fake.prints, fake.kernel.refused) = (vec!["took 1 s"], Some("no swap"));
    let (found, _) = searched(&mut fake);
    assert!(found.size.good.is_some(), "{found:?}");
    assert_eq!(found.remarks, ["its output differs in numbers from run to run"]);
}

#[test]
fn a_check_far_from_the_limit_takes_one_run_and_one_near_it_more() {
    let counts = |seconds: f64| {
        let pager = Behaviour { table: vec![(100, seconds, 5)], ..Behaviour::default() };
        let mut fake = Fake { pager, ..Fake::new(2.0) };
        fake.kernel.refused = Some("no swap");
        let (plain, paged) = checked(&mut fake).unwrap_or(None).unwrap_or_default();
        (plain.runs.len(), paged.runs.len())
    };
    assert_eq!(counts(1.9), (1, 1), "within");
    assert_eq!(counts(2.15), (5, 5), "near the limit");
}

#[test]
fn a_check_tries_the_kernel_where_our_pager_is_slow_killed_or_changes_the_output() {
    let cases = [
        Behaviour { table: vec![(100, 9.0, 5)], ..Behaviour::default() },
        Behaviour { killed_below: 90, ..good_from_40() },
        Behaviour { output: Some("another word"), ..good_from_40() },
        // It does not serve the memory of the program.
        Behaviour { peak: 1, evicts_nothing: true, ..good_from_40() },
    ];
    for pager in cases {
        let mut fake = Fake { pager, kernel: good_from_40(), peak: 60, ..Fake::new(1.0) };
        let (plain, paged) = checked(&mut fake).unwrap().unwrap();
        assert_eq!(paged.by, By::Kernel);
        assert!(paged.within(1.1 * plain.seconds), "{paged:?}");
        // If the kernel cannot, it is no: or nobody can page it.
        let mut fake = Fake { kernel: Behaviour { killed_below: 90, ..good_from_40() }, ..fake.clone() };
        (fake.clock, fake.trials) = (0.0, vec![]);
        let (plain, paged) = checked(&mut fake).unwrap().unwrap();
        assert!(!paged.within(1.1 * plain.seconds), "{paged:?}");
    }
}

#[test]
fn a_program_whose_output_is_another_one_each_time_is_judged_by_its_time() {
    let prints = vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut fake = Fake { pager: good_from_40(), prints: prints.clone(), ..Fake::new(2.0) };
    let (_, paged) = checked(&mut fake).unwrap().unwrap();
    assert!(paged.by == By::Pager && paged.failed.is_none(), "{paged:?}");
    let mut fake = Fake { pager: good_from_40(), kernel: good_from_40(), prints, ..Fake::new(2.0) };
    let compared = compared(&mut fake).unwrap();
    assert!(compared.varies && compared.fastest.is_some(), "{compared:?}");
    assert_eq!(compared.sizes[0].ways[0].output(compared.varies), "not compared");
}

#[test]
fn a_check_of_a_program_that_fails_or_is_stopped_or_runs_once_has_no_verdict() {
    let mut fake = Fake { status: 2, ..Fake::new(1.0) };
    let failed = checked(&mut fake).unwrap_err();
    assert!(failed.code == 3 && failed.message.contains("exit code 2"), "{failed:?}");
    let mut fake = Fake { signal_at: Some(1), ..Fake::new(2.0) };
    assert_eq!(checked(&mut fake), Err(Refusal::stopped()));
    let mut fake = Fake { input_lost: Some("it reads from the terminal"), ..Fake::new(2.0) };
    assert_eq!((checked(&mut fake), fake.trials.len()), (Ok(None), 1));
}

#[test]
fn one_program_that_prints_another_word_when_our_pager_pages_it_has_one_answer() {
    let pager = Behaviour { output: Some("paged"), ..good_from_40() };
    let fake = Fake { pager, kernel: good_from_40(), peak: 60, ..Fake::new(1.0) };
    let (found, runs) = searched(&mut fake.clone());
    assert_eq!(found.size.good.map(|(_, by)| by), Some(By::Kernel), "the answer recommends the kernel");
    let failed = |runs: &Runs| runs.failed.clone().unwrap_or_default();
    assert_eq!(failed(&runs.kinds()[0].1), "its output was another one");
    let (_, paged) = checked(&mut fake.clone()).unwrap().unwrap();
    assert_eq!((paged.by, paged.failed), (By::Kernel, None), "check says yes by the kernel");
    let compared = compared(&mut fake.clone()).unwrap();
    assert_eq!(compared.fastest.map(|fastest| fastest.name).as_deref(), Some("kernel, zram"), "so does compare");
    assert_eq!(failed(&compared.sizes[0].ways[0].runs), "its output was another one");
}

#[test]
fn a_comparison_drops_a_way_that_is_late_or_refused_and_ends_without_memory() {
    let slow = Behaviour { table: vec![(1 << 20, 1.0, 0), (99, 90.0, 7)], peak: 60, ..Behaviour::default() };
    let mut fake = Fake { pager: slow, kernel: good_from_40(), ..Fake::new(1.0) };
    let all = compared(&mut fake).unwrap();
    let [pager, kernel] = &all.sizes[0].ways[..] else { panic!("{all:?}") };
    assert_eq!((pager.output(false), pager.runs.runs.len()), ("1 of 1 late".into(), 1));
    assert_eq!((kernel.output(false), kernel.runs.runs.len()), ("same".into(), 3));
    assert_eq!(all.plain.runs.len(), 3);
    let mut fake = Fake { kernel: Behaviour { refused: Some("no swap"), ..good_from_40() }, ..fake };
    (fake.clock, fake.trials) = (0.0, vec![]);
    let all = compared(&mut fake).unwrap();
    assert_eq!((all.sizes[0].ways[1].output(false), all.fastest), ("failed".into(), None));
    let mut fake = Fake { kernel: good_from_40(), ..Fake::new(1.0) };
    let none = compared(&mut fake).unwrap_err();
    assert!(none.code == 4 && none.message.contains("no memory that can leave"), "{none:?}");
}

/// What runs with less page cache give for a program of 8 MiB and of mapped files of 64 MiB, and why there are no more.
fn less_cache(fake: &mut Fake, way: Result<Way, Option<String>>, until: f64) -> (Vec<Runs>, Option<String>) {
    let (referenced_bytes, files_bytes) = (64 * MIB, 64 * MIB);
    let not_paged = Some(NotPaged { referenced_bytes, files_bytes, ..NotPaged::default() });
    let common = Common { managed_bytes: 8 * MIB, needed_bytes: 9 * MIB, not_paged, ..Common::default() };
    let plan = LessCache::new(&common, &way, 1.1 * fake.seconds, until).expect("files matter");
    carry_out(&plan, &mut recorded(fake), fake, &Silent)
}

#[test]
fn runs_with_less_page_cache_leave_files_cold_and_say_why_there_are_no_more() {
    let in_all = |seconds, peak| Behaviour { table: vec![(1 << 20, seconds, 9)], peak, ..Behaviour::default() };
    let kernel = || Ok(Way::kernel(None));
    let mut fake = Fake { in_all: in_all(2.0, 70), ..Fake::new(1.0) };
    let (runs, why) = less_cache(&mut fake, kernel(), 60.0);
    let sizes: Vec<u64> = runs.iter().filter_map(|runs| runs.ram_bytes).map(|bytes| bytes / MIB).collect();
    assert_eq!((sizes, why), (vec![80, 56, 40], None));
    assert!(fake.trials.iter().all(|trial| trial.way.in_all), "the limit is for all memory");
    let cases = [
        (
            in_all(2.0, 20),
            kernel(),
            60.0,
            0,
            "other programs hold its files in RAM, where no limit on this one \
                                              reaches them",
        ),
        (in_all(99.0, 70), kernel(), 60.0, 1, "to read its files from the disk takes too long for this answer"),
        (in_all(2.0, 70), kernel(), 4.1, 2, "no time was left"),
        (in_all(2.0, 70), kernel(), 0.5, 0, "no time was left"),
        (in_all(2.0, 70), Err(Some("no memory group".into())), 60.0, 0, "no memory group"),
        (
            in_all(2.0, 70),
            Err(None),
            60.0,
            0,
            "only root may make the memory group and the swap that this takes; run \
                                               it as root",
        ),
    ];
    for (in_all, way, until, count, why) in cases {
        let mut fake = Fake { in_all, ..Fake::new(1.0) };
        let (runs, ended) = less_cache(&mut fake, way, until);
        assert_eq!((runs.len(), ended.as_deref()), (count, Some(why)));
    }
}

#[test]
fn a_trial_says_who_runs_in_what() {
    assert_eq!(Trial::plain(None).words(), "running it alone");
    assert_eq!(Trial::paged(&Way::pager(), 12 * MIB, 9.0).words(), "running it in 12 MiB");
    assert!(Trial::plain(Some(1.0)).cold.is_empty());
}
