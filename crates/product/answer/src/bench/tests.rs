//! The plans on a fake runner: what is decided, and after which runs.

use std::path::PathBuf;
use std::rc::Rc;

use super::alone::{Alone, Yardstick};
use super::compare::{InTurn, Named};
use super::compared::Compared;
use super::fake::{Behaviour, Fake};
use super::fit::{Fit, InGroup};
use super::limit::InLimit;
use super::limit_answer::LimitAnswer;
use super::log::RunLog;
use super::plan::{carry_out, Plan, Step};
use super::search::{Found, LessRam};
use super::trial::{Outcome, Refusal, Trial};
use super::verdict::Verdict;
use crate::listener::Silent;
use crate::predict::question::Limits;
use crate::run::looks::group::GroupUse;
use crate::run::runs::{By, Run, Runs, Way};
use crate::run::streams::Output;

const MIB: u64 = 1 << 20;

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
    carry_out(&Alone { first_seconds: fake.seconds, cold: Rc::new([]) }, runs, fake, &Silent)
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

/// The verdict of `check --max-ram 50MiB`, with this swap.
fn checked_with(fake: &mut Fake, way: Way) -> Result<Verdict, Refusal> {
    let plan = InLimit { limit: Some((way.clone(), 50 * MIB)), slowdown: 0.1, cold: Rc::new([]) };
    let first = Run { seconds: fake.seconds, output: Some(Output::digest(fake.prints[0])), ..Run::default() };
    let mut runs = RunLog::after(first);
    carry_out(&plan, &mut runs, fake, &Silent)?;
    Ok(Verdict::new("app", 0.1, fake.seconds).in_limit(&runs, &way, 50 * MIB))
}

fn checked(fake: &mut Fake) -> Result<Verdict, Refusal> {
    checked_with(fake, Way::limit())
}

fn compared(fake: &mut Fake) -> Result<Compared, Refusal> {
    compared_in(fake, &["50%"])
}

fn compared_in(fake: &mut Fake, sizes: &[&str]) -> Result<Compared, Refusal> {
    let ram: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let named = |name, way| Named { name, way, options: vec![] };
    let ways = vec![named("our pager", Way::pager()), named("zram", Way::kernel(Some("zram".into())))];
    let plan = InTurn { ram: &ram, runs: 3, max_time: None, ways, cold: Rc::new([]), seen_bytes: 60 * MIB };
    let mut runs = RunLog::default();
    let memory = carry_out(&plan, &mut runs, fake, &Silent)?;
    Ok(plan.compared(&runs, memory, &["program".into()], vec![]))
}

#[test]
fn a_plan_is_a_pure_function_of_the_runs_and_of_the_time() {
    let plan = Alone { first_seconds: 0.5, cold: Rc::new([]) };
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
    let once = "it was not run any more";
    let cases: [(Fake, String); 4] = [
        (
            Fake { prints: vec!["done", "done", "there already"], ..Fake::new(0.2) },
            format!("when it ran again, its output was another one: {once}"),
        ),
        (
            Fake { status: 3, ..Fake::new(0.2) },
            format!("when it ran again, it ended with exit code 3 instead of 0: {once}"),
        ),
        (Fake::new(60.0), format!("when it ran again, it took over 28 s: {once}")),
        (Fake { signal_at: Some(1), ..Fake::new(0.2) }, "stopped by a signal: further runs are missing".into()),
    ];
    for (mut fake, remark) in cases {
        // As it was recorded: in less than a second, with exit code 0.
        let output = Some(Output::digest("done"));
        let mut runs = RunLog::after(Run { seconds: 0.2, output, ..Run::default() });
        let plan = Alone { first_seconds: 0.2, cold: Rc::new([]) };
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

/// A program whose group has 100 MiB, and that takes so long in a limit.
fn limited(limit: Behaviour) -> Fake {
    let group = Some(GroupUse { peak_bytes: 100 * MIB, ..GroupUse::default() });
    Fake { limit, group, ..Fake::new(2.0) }
}

#[test]
fn a_check_far_from_the_limit_takes_one_run_and_one_near_it_or_a_no_by_time_more() {
    let counts = |limit: Behaviour| {
        let verdict = checked(&mut limited(limit)).unwrap();
        let of = |runs: Option<Runs>| runs.unwrap().runs.len();
        (verdict.lives, of(verdict.plain), of(verdict.limited))
    };
    let takes = |seconds: f64| Behaviour { table: vec![(100, seconds, 5)], ..Behaviour::default() };
    assert_eq!(counts(takes(1.9)), (Some(true), 1, 1), "within");
    assert_eq!(counts(takes(2.15)), (Some(true), 5, 5), "near the limit");
    assert_eq!(counts(takes(3.0)), (Some(false), 5, 5), "another program may have delayed it");
    assert_eq!(counts(takes(4.0)), (Some(false), 2, 2), "clearly slow");
    assert_eq!(counts(takes(90.0)), (Some(false), 2, 2), "it does not end");
    assert_eq!(counts(Behaviour { killed_below: 60, ..takes(1.9) }), (Some(false), 1, 1), "killed");
    assert_eq!(counts(Behaviour { status: 3, ..takes(1.9) }), (Some(false), 2, 2), "it ends otherwise");
}

#[test]
fn a_limit_above_the_peak_is_a_yes_after_one_run_however_long_that_took() {
    let mut fake = limited(Behaviour { table: vec![(100, 3.0, 5)], ..Behaviour::default() });
    fake.group = Some(GroupUse { peak_bytes: 49 * MIB, ..GroupUse::default() });
    let verdict = checked(&mut fake).unwrap();
    assert_eq!((verdict.lives, verdict.limited.unwrap().runs.len()), (Some(true), 1));
    // Unless it is killed.
    fake.limit.killed_below = 60;
    assert_eq!(checked(&mut fake).unwrap().lives, Some(false));
}

#[test]
fn a_check_on_a_busy_machine_is_decided_by_work_and_one_of_an_unsteady_program_is_not_told() {
    for (seconds, lives) in [(2.0, true), (3.0, false)] {
        let mut busy = limited(Behaviour { table: vec![(100, seconds, 5)], ..Behaviour::default() });
        busy.group = busy.group.map(|group| GroupUse { others: 1.0, ..group });
        busy.delays = vec![0.0, 1.9, 0.3, 2.4, 0.1];
        let verdict = checked(&mut busy).unwrap();
        assert_eq!((verdict.lives, verdict.by_work), (Some(lives), true), "{verdict:?}");
    }
    let unsteady =
        |seed| Fake { noise: 1.0, seed, ..limited(Behaviour { table: vec![(100, 2.1, 5)], ..Behaviour::default() }) };
    let told: Vec<_> = (0..60).map(|seed| checked(&mut unsteady(seed)).unwrap()).collect();
    let doubt = told.iter().find(|verdict| !verdict.certain).expect("one of them cannot be told");
    assert!(doubt.why.as_ref().unwrap().contains("varies by") && doubt.lives.is_none() && !doubt.within);
}

#[test]
fn swap_lets_a_program_live_that_is_killed_without() {
    let mut fake = limited(Behaviour { killed_below: 60, ..Behaviour::default() });
    fake.kernel = Behaviour { table: vec![(100, 2.1, 5)], ..Behaviour::default() };
    assert_eq!(checked(&mut fake).unwrap().lives, Some(false));
    assert_eq!(checked_with(&mut fake, Way::kernel(Some("zram".into()))).unwrap().lives, Some(true));
}

#[test]
fn a_program_whose_output_is_another_one_each_time_is_judged_by_its_time() {
    let prints = vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut fake = Fake { limit: good_from_40(), prints: prints.clone(), ..Fake::new(2.0) };
    assert_eq!(checked(&mut fake).unwrap().lives, Some(true));
    let mut fake = Fake { pager: good_from_40(), kernel: good_from_40(), prints, ..Fake::new(2.0) };
    let compared = compared(&mut fake).unwrap();
    assert!(compared.varies && compared.fastest.is_some(), "{compared:?}");
    assert_eq!(compared.sizes[0].ways[0].output(compared.varies), "not compared");
}

#[test]
fn a_check_of_a_program_that_fails_or_is_stopped_has_no_verdict() {
    let mut fake = Fake { status: 2, ..Fake::new(1.0) };
    let failed = checked(&mut fake).unwrap_err();
    assert!(failed.code == 3 && failed.message.contains("exit code 2"), "{failed:?}");
    let mut fake = Fake { signal_at: Some(1), ..Fake::new(2.0) };
    assert_eq!(checked(&mut fake).unwrap_err(), Refusal::stopped());
    let refused = Behaviour { refused: Some("no right"), ..Behaviour::default() };
    assert_eq!(checked(&mut limited(refused)).unwrap_err().message, "no right");
}

#[test]
fn one_program_that_prints_another_word_when_our_pager_pages_it_has_one_answer() {
    let pager = Behaviour { output: Some("paged"), ..good_from_40() };
    let fake = Fake { pager, kernel: good_from_40(), peak: 60, ..Fake::new(1.0) };
    let (found, runs) = searched(&mut fake.clone());
    assert_eq!(found.size.good.map(|(_, by)| by), Some(By::Kernel), "the answer recommends the kernel");
    let failed = |runs: &Runs| runs.failed.clone().unwrap_or_default();
    assert_eq!(failed(&runs.kinds()[0].1), "its output was another one");
    let compared = compared(&mut fake.clone()).unwrap();
    assert_eq!(compared.fastest.map(|fastest| fastest.name).as_deref(), Some("zram"), "so does compare");
    assert_eq!(failed(&compared.sizes[0].ways[0].runs), "its output was another one");
}

#[test]
fn a_comparison_drops_a_way_that_is_late_or_refused() {
    let slow = Behaviour { table: vec![(99, 90.0, 7)], ..Behaviour::default() };
    let mut fake = Fake { pager: slow, kernel: good_from_40(), ..Fake::new(1.0) };
    fake.kernel.table = vec![(99, 1.2, 0)];
    let all = compared(&mut fake).unwrap();
    let [pager, kernel] = &all.sizes[0].ways[..] else { panic!("{all:?}") };
    assert_eq!((pager.output(false), pager.runs.runs.len()), ("1 of 1 late".into(), 1));
    assert_eq!((kernel.output(false), kernel.runs.runs.len()), ("same".into(), 3));
    assert_eq!(all.plain.runs.len(), 3);
    // Nor is it run in less RAM, whichever size comes first.
    for sizes in [["50%", "40%"], ["40%", "50%"]] {
        let all = compared_in(&mut Fake { clock: 0.0, trials: vec![], ..fake.clone() }, &sizes).unwrap();
        let ran = |way: usize| Vec::from_iter(all.sizes.iter().map(|size| size.ways[way].runs.runs.len()));
        assert_eq!(ran(0), if sizes[0] == "50%" { [1, 0] } else { [1, 1] });
        assert_eq!(ran(1), [3, 3]);
    }
    let mut fake = Fake { kernel: Behaviour { refused: Some("no swap"), ..good_from_40() }, ..fake };
    (fake.clock, fake.trials) = (0.0, vec![]);
    let all = compared(&mut fake).unwrap();
    assert_eq!((all.sizes[0].ways[1].output(false), all.fastest), ("failed".into(), None));
}

#[test]
fn percentages_of_a_comparison_are_of_the_groups_peak_and_else_of_what_was_seen() {
    let group = Some(GroupUse { peak_bytes: 85 * MIB, ..GroupUse::default() });
    let all = compared(&mut Fake { group, ..Fake::new(1.0) }).unwrap();
    assert_eq!((all.peak_bytes, all.in_group, all.sizes[0].ram_bytes), (85 * MIB, true, 43 * MIB));
    let all = compared(&mut Fake::new(1.0)).unwrap();
    assert_eq!((all.peak_bytes, all.in_group, all.sizes[0].ram_bytes), (60 * MIB, false, 30 * MIB));
}

#[test]
fn a_trial_says_who_runs_in_what() {
    assert_eq!(Trial::plain(None).words(), "running it alone");
    assert_eq!(Trial::paged(&Way::pager(), 12 * MIB, 9.0).words(), "running it in 12 MiB");
    assert!(Trial::plain(Some(1.0)).cold.is_empty());
}

/// A program that takes so many MiB in its group, a fifth of it files, and is killed below `lives`, slow below `fast`.
fn in_group(peak: u64, fast: u64, lives: u64) -> Fake {
    let group = GroupUse { peak_bytes: peak * MIB, fixed_bytes: peak * MIB / 5 * 4, ..GroupUse::default() };
    let table = vec![(4 * peak, 1.0, 0), (fast - 1, 3.0, 0)];
    let limit = Behaviour { table, killed_below: lives, ..Behaviour::default() };
    Fake { group: Some(group), limit, ..Fake::new(1.0) }
}

/// What the search finds, and the answer.
fn fitted(fake: &mut Fake, others: Vec<Way>, cold: &[&str]) -> (Fit, LimitAnswer) {
    let (mut runs, cold): (_, Rc<[PathBuf]>) = (recorded(fake), cold.iter().map(PathBuf::from).collect());
    let first_seconds = fake.seconds;
    let yardstick = carry_out(&Alone { first_seconds, cold: Rc::clone(&cold) }, &mut runs, fake, &Silent);
    let guess = fake.group.map(|group| group.fixed_bytes);
    let (limits, until) = (Limits::default(), yardstick.until);
    let plan = InGroup { guess, given: None, others, runtime: None, cold, limits, until };
    let fit = carry_out(&plan, &mut runs, fake, &Silent);
    (fit.clone(), LimitAnswer::new("program", &runs, fit, &limits, Vec::new()))
}

/// The limits of all runs, in MiB.
fn sizes(fake: &Fake) -> Vec<Option<u64>> {
    fake.trials.iter().map(|trial| mib(trial.ram_bytes)).collect()
}

fn mib(bytes: Option<u64>) -> Option<u64> {
    bytes.map(|bytes| bytes / MIB)
}

#[test]
fn the_least_fast_limit_and_the_least_in_which_it_lives_are_found_within_a_twentieth() {
    // Peak, fast from, lives from: a cliff, a slope, all of it, a program that sizes itself.
    for (peak, fast, lives) in
        [(57, 51, 49), (93, 80, 61), (48, 48, 48), (399, 56, 50), (140, 131, 89), (1000, 900, 850)]
    {
        let mut fake = in_group(peak, fast, lives);
        let (fit, answer) = fitted(&mut fake, vec![], &[]);
        let near = |found: Option<u64>, true_mib: u64| {
            let found = mib(found).unwrap() as f64;
            (true_mib as f64..=1.06 * true_mib as f64 + 1.0).contains(&found)
        };
        assert!(near(fit.fast, fast) && near(fit.lives, lives), "{peak} {fast} {lives}: {fit:?}, {:?}", sizes(&fake));
        assert_eq!(answer.limit.recommended_bytes, fit.fast);
        let paste = answer.limit.paste_bytes.unwrap();
        assert!(paste as f64 >= 1.1 * fit.fast.unwrap() as f64, "{paste}");
        assert!(fake.clock < 60.0 && fake.trials.len() < 24, "{} runs, {} s", fake.trials.len(), fake.clock);
    }
}

#[test]
fn a_busy_machine_is_seen_through_by_processor_time_and_an_unsteady_program_is_not_told() {
    let mut busy = in_group(57, 51, 49);
    busy.group = busy.group.map(|group| GroupUse { others: 1.0, ..group });
    busy.delays = vec![0.0, 0.9, 0.3, 1.4, 0.1];
    let (_, answer) = fitted(&mut busy, vec![], &[]);
    assert!(answer.limit.by_work && (51..=54).contains(&mib(answer.limit.recommended_bytes).unwrap()), "{answer:?}");
    // No size below its peak is recommended by chance, and the line to paste is never below what it needs.
    for seed in 0..20 {
        let mut unsteady = Fake { noise: 1.0, seed, ..in_group(57, 51, 49) };
        let (_, answer) = fitted(&mut unsteady, vec![], &[]);
        match answer.limit.recommended_bytes {
            Some(ram) => assert!(ram >= 51 * MIB, "{ram}"),
            None => assert!(answer.limit.cannot_tell.is_some()),
        }
    }
}

#[test]
fn the_last_runs_alone_say_what_is_fast_and_how_much_it_takes() {
    for drift in [-0.005, -0.01, -0.015, -0.02] {
        // The machine gets faster: a size that was as fast as earlier runs alone is slower than the later ones.
        let mut faster = Fake { drift, ..in_group(57, 51, 40) };
        (faster.seconds, faster.limit.table) = (0.5, vec![(228, 0.5, 0), (50, 0.65, 0)]);
        let (_, answer) = fitted(&mut faster, vec![], &[]);
        let recommended = mib(answer.limit.recommended_bytes);
        assert!(recommended >= Some(51), "{drift}: {recommended:?}, {:?}", sizes(&faster));
    }
    // Each limit below its peak is too small, and the peak is another one each time.
    let mut grows = Fake { grows: 9, ..in_group(57, 200, 40) };
    (grows.seconds, grows.limit.table) = (0.5, vec![(300, 0.9, 0)]);
    let (_, answer) = fitted(&mut grows, vec![], &[]);
    assert!(answer.limit.recommended_bytes >= Some(answer.limit.peak_bytes), "{:?}", answer.limit);
}

#[test]
fn a_program_that_sizes_itself_by_its_limit_may_need_more_than_it_takes_without_one() {
    let group = |mib: u64| GroupUse {
        peak_bytes: mib * MIB,
        anonymous_bytes: mib * MIB / 2,
        fixed_bytes: mib * MIB / 5 * 4,
        ..GroupUse::default()
    };
    // In a limit it has half the heap, and is slower below 200 MiB, or below any.
    for (table, expected) in [(vec![(400, 1.0, 0), (199, 1.5, 0)], Some(225)), (vec![(4000, 1.5, 0)], None)] {
        let mut fake = in_group(100, 200, 40);
        fake.group = Some(group(100));
        (fake.limit.table, fake.limit.group) = (table, Some(group(50)));
        let (_, answer) = fitted(&mut fake, vec![], &[]);
        assert_eq!(mib(answer.limit.recommended_bytes), expected, "{:?}", sizes(&fake));
        assert_eq!(answer.limit.cannot_tell.is_some_and(|why| why.contains("sizes itself")), expected.is_none());
    }
}

#[test]
fn a_program_that_takes_less_in_a_small_limit_is_not_given_its_peak() {
    let group = |mib: u64| GroupUse { peak_bytes: mib * MIB, fixed_bytes: mib * MIB / 5 * 4, ..GroupUse::default() };
    for least in [40, 56, 57, 90, 200] {
        let mut fake = in_group(810, least, 30);
        fake.group = Some(group(810));
        (fake.limit.table, fake.limit.group) = (vec![(4000, 0.9, 0), (least - 1, 1.5, 0)], Some(group(50)));
        let (_, answer) = fitted(&mut fake, vec![], &[]);
        let found = mib(answer.limit.recommended_bytes).unwrap();
        assert!((least..=least * 23 / 20).contains(&found), "{least}: {found}, {:?}", sizes(&fake));
    }
}

#[test]
fn files_that_are_in_ram_already_and_swap_are_searched_only_if_they_may_change_something() {
    let zram = Way::kernel(Some("zram".into()));
    let mut fake = in_group(100, 80, 60);
    fake.kernel = Behaviour { table: vec![(100, 1.0, 0), (39, 9.0, 0)], ..Behaviour::default() };
    let (fit, answer) = fitted(&mut fake, vec![zram.clone()], &["/lib/libc.so"]);
    assert!(fake.trials.iter().any(|trial| trial.way == zram), "swap is tried");
    let (way, ram) = fit.swapped.first().unwrap();
    assert!(*way == zram && *ram < 60 * MIB && *ram >= 39 * MIB, "{fit:?}");
    assert!(answer.others().any(|runs| runs.ram_bytes == Some(*ram)));
    let cold = |trial: &&Trial| trial.cold.len() == 1;
    assert!(fake.trials.iter().filter(cold).count() > fake.trials.len() / 2, "files are cold");
    let (_, without) = fitted(&mut in_group(100, 80, 60), vec![], &[]);
    assert_eq!(without.limit.warm_bytes, None, "it maps no file");
}
