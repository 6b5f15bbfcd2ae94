//! Each sentence that a verdict, a recommendation or a comparison can print, as rows: a fake program on a fake machine,
//! the plans that decide about it, and what is printed then.

use std::rc::Rc;

use coldframe_answer::bench::alone::Alone;
use coldframe_answer::bench::compare::{InTurn, Named};
use coldframe_answer::bench::fake::{Behaviour, Fake};
use coldframe_answer::bench::jobs::plan::HowMany;
use coldframe_answer::bench::limit::InLimit;
use coldframe_answer::bench::log::RunLog;
use coldframe_answer::bench::measure::with_less;
use coldframe_answer::bench::need::Heap;
use coldframe_answer::bench::plan::carry_out;
use coldframe_answer::bench::runner::Ways;
use coldframe_answer::run::runs::Way;
use coldframe_answer::run::streams::Output;
use coldframe_answer::{Answer, By, Common, GroupUse, Limits, Need, Point, Recorded, Run, Silent, Verdict, Watched};
use coldframe_show::{compared, machine_answer, verdict_answer};

const MIB: u64 = 1 << 20;

/// The words without line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn zram() -> Way {
    Way::kernel(Some("zram".into()))
}

fn ways() -> Ways {
    Ways { pager: Ok(Way::pager()), kernel: Ok(zram()) }
}

/// The same time in any RAM.
fn takes(seconds: f64) -> Behaviour {
    Behaviour { table: vec![(1 << 20, seconds, 3)], peak: 100, ..Behaviour::default() }
}

/// That time below 60 MiB, and 1 s in more.
fn slow_below_60(seconds: f64) -> Behaviour {
    Behaviour { table: vec![(1 << 20, 1.0, 0), (59, seconds, 999)], peak: 100, ..Behaviour::default() }
}

fn refused() -> Behaviour {
    Behaviour { refused: Some("no swap is on"), ..Behaviour::default() }
}

/// What `check --max-ram 50MiB` prints, with this swap.
fn checked(mut fake: Fake, way: &Way) -> String {
    let plan = InLimit { limit: Some((way.clone(), 50 * MIB)), slowdown: 0.1, cold: Rc::new([]) };
    let output = Some(Output::digest(fake.prints[0]));
    let mut runs = RunLog::after(Run { seconds: fake.seconds, output, ..Run::default() });
    match carry_out(&plan, &mut runs, &mut fake, &Silent) {
        Ok(()) => {
            let mut verdict = Verdict::new("app", 0.1, fake.seconds).in_limit(&runs, way, 50 * MIB);
            verdict.run_count = runs.count();
            joined(&verdict_answer::words(&verdict))
        }
        Err(why) => why.message,
    }
}

#[test]
fn each_verdict_of_runs_has_its_sentence() {
    let group = |mib: u64| Some(GroupUse { peak_bytes: mib * MIB, ..GroupUse::default() });
    let fake = |limit: Behaviour| Fake { limit, group: group(100), ..Fake::new(2.0) };
    let app = "app in 50 MiB without swap:";
    let alone = "without a limit 2.00 s";
    let one = "Its peak without a limit is 100 MiB. It ran 3 times; compared: without a limit one run; in it one run.";
    let rows = [
        (fake(takes(1.9)), format!("yes: {app} it takes 1.90 s, {alone} (-5 %; at most +10 %). {one}")),
        (
            fake(takes(3.0)),
            format!(
                "no: {app} it takes 3.00 s, {alone} (+50 %; at most +10 %). Its peak without a limit is 100 MiB. It \
                 ran 11 times; compared: without a limit 5 runs, 2.00 s to 2.00 s; in it 5 runs, 3.00 s to 3.00 s."
            ),
        ),
        (
            fake(takes(60.0)),
            format!(
                "no: {app} it takes more than 5.40 s, {alone}. Its peak without a limit is 100 MiB. It ran 5 times; \
                 compared: without a limit 2 runs, 2.00 s to 2.00 s; in it 2 runs, 5.40 s to 5.40 s."
            ),
        ),
        // Neither its time nor a percent: it did not do its work.
        (
            fake(Behaviour { killed_below: 90, ..takes(2.0) }),
            format!(
                "no: {app} the kernel killed it for lack of memory; without a limit it takes 2.00 s. Its peak without \
                 a limit is 100 MiB. It ran 3 times; compared: without a limit one run; in it one run, killed."
            ),
        ),
        (
            fake(Behaviour { status: 7, ..takes(2.0) }),
            format!("no: {app} it ended with exit code 7 instead of 0; without a limit it takes 2.00 s."),
        ),
        (
            fake(Behaviour { output: Some("other"), ..takes(2.0) }),
            format!("no: {app} its output was another one; without a limit it takes 2.00 s."),
        ),
        (
            Fake { group: group(49), ..fake(takes(3.0)) },
            format!("yes: {app} it takes 3.00 s, {alone} (+50 %; at most +10 %). Its peak without a limit is 49 MiB."),
        ),
        (
            Fake {
                group: group(100).map(|group| GroupUse { others: 1.0, ..group }),
                delays: vec![0.0, 1.0],
                ..fake(takes(2.0))
            },
            "it takes 3.00 s, without a limit 2.00 s (+0 % by processor time and waits; at most +10 %)".into(),
        ),
        (
            Fake { status: 3, ..fake(takes(2.0)) },
            "the program ended with exit code 3, so there is no verdict: mend it, and check again".into(),
        ),
        (Fake { signal_at: Some(0), ..fake(takes(2.0)) }, "stopped; nothing is left behind".into()),
    ];
    for (fake, sentence) in rows {
        let printed = checked(fake, &Way::limit());
        assert!(printed.contains(&sentence), "{printed}\nwanted: {sentence}");
        assert!(!printed.contains("killed it") || !printed.contains('%'), "{printed}");
    }
    let doubt = (0..60).map(|seed| Fake { noise: 1.0, seed, ..fake(takes(2.1)) });
    let doubt = doubt.map(|fake| checked(fake, &Way::limit())).find(|printed| printed.starts_with("cannot tell: "));
    assert!(doubt.is_some_and(|printed| printed.contains("%), but its own time varies by ")));
    // With swap it lives.
    let fake = Fake { kernel: takes(2.1), ..fake(Behaviour { killed_below: 90, ..takes(2.0) }) };
    assert!(checked(fake, &zram()).starts_with("yes: app in 50 MiB with swap in zram: it takes 2.10 s"));
}

#[test]
fn a_verdict_without_a_group_is_estimated_and_says_how_it_is_measured() {
    let why = || "no memory group can be made here (no right)".to_string();
    let rows = [
        (20, "yes, estimated: app in 50 MiB: it had at most 20 MiB when it ran without a limit. Estimated: no memory"),
        (40, "cannot tell, estimated: app in 50 MiB: it had at most 40 MiB when it ran without a limit."),
        (90, "cannot tell, estimated: app in 50 MiB: it had at most 90 MiB when it ran without a limit."),
        (0, "cannot tell, estimated: app in 50 MiB: it was too short to be seen."),
        (0, "run it as root, or with `systemd-run --user --scope` before it."),
    ];
    for (mib, sentence) in rows {
        let verdict = Verdict { run_count: 1, ..Verdict::new("app", 0.1, 1.0).estimated(50 * MIB, mib * MIB, why()) };
        let printed = joined(&verdict_answer::words(&verdict));
        assert!(printed.contains(sentence), "{printed}\nwanted: {sentence}");
        assert!(printed.contains("(no right). It ran once."), "{printed}");
    }
}

fn need(mib: u64, heap: u64) -> Need {
    let group = GroupUse { peak_bytes: mib * MIB, anonymous_bytes: (mib - 1) * MIB, ..GroupUse::default() };
    Need::new("app", &[group], &[Heap { bytes: heap * MIB, processes: Vec::new() }], false)
}

#[test]
fn each_verdict_of_peaks_has_its_sentence() {
    let before = need(60, 50);
    let limits = "at most +2 %, or 1 MiB)";
    let app =
        |verdict: &str, mib: u64, heap: u64| format!("{verdict}: app takes {mib} MiB at its peak, {heap} MiB of heap");
    let rows = [
        (need(60, 50), app("yes", 60, 50) + &format!("; need.json has 60 MiB (+0.0 %; {limits}.")),
        (need(180, 170), app("no", 180, 170) + &format!("; need.json has 60 MiB (+200.0 %; {limits}.")),
        (
            need(180, 170),
            "Grew since need.json: peak of its group: 60 MiB to 180 MiB (+200.0 %) heap at its peak: 50 MiB to 170 MiB \
             (+240.0 %) anonymous memory: 59 MiB to 179 MiB (+203.4 %)"
                .into(),
        ),
        (need(60, 55), app("no", 60, 55)),
        (
            Need { peak_bytes: None, ..need(60, 50) },
            format!("yes: app takes 50 MiB of heap; need.json has 50 MiB (+0.0 %; {limits}."),
        ),
    ];
    for (now, sentence) in rows {
        let printed =
            joined(&verdict_answer::words(&Verdict::new("app", 0.1, 1.0).since(now, Some(("need.json", &before)))));
        assert!(printed.contains(&sentence), "{printed}\nwanted: {sentence}");
    }
    let written = joined(&verdict_answer::words(&Verdict::new("app", 0.1, 1.0).since(need(60, 50), None)));
    assert!(written.starts_with("app takes 60 MiB at its peak, 50 MiB of heap."), "{written}");
    // Both a limit and a baseline: a word for each.
    let both = Verdict::new("app", 0.1, 1.0).estimated(500 * MIB, 20 * MIB, "no group".into());
    let printed = joined(&verdict_answer::words(&both.since(need(180, 170), Some(("need.json", &before)))));
    assert!(
        printed.starts_with("yes, estimated: app in 500 MiB") && printed.contains("no: app takes 180 MiB"),
        "{printed}"
    );
}

fn common() -> Common {
    let point = |ram_mib: u64, seconds: f64| Point {
        ram_bytes: ram_mib * MIB,
        seconds,
        seconds_low: seconds,
        seconds_high: Some(seconds),
        ..Point::default()
    };
    Common {
        program: "app".into(),
        command: Some("app".into()),
        program_seconds: 1.0,
        managed_bytes: 100 * MIB,
        needed_bytes: 101 * MIB,
        ram_bytes: Some(70 * MIB),
        slowdown_percent: 10.0,
        curve: vec![point(101, 1.0), point(70, 1.05), point(35, 3.0)],
        processes: 1,
        exit: Some(0),
        ..Common::default()
    }
}

fn recorded() -> Recorded {
    Recorded {
        common: common(),
        trace: String::new(),
        kernel: None,
        policy: "clock".into(),
        read_ahead: 0,
        evict_batch: 1,
        sampled: None,
        window_pages: 0,
        memory_use: None,
    }
}

/// The answer of `coldframe -- app`, and its remarks.
fn measured(prediction: Answer, mut fake: Fake, ways: &Ways) -> (Answer, Vec<String>) {
    let limits = Limits::default();
    let output = Some(Output::digest(fake.prints[0]));
    let mut runs = RunLog::after(Run { seconds: fake.seconds, output, ..Run::default() });
    let alone = Alone { first_seconds: fake.seconds, cold: Rc::new([]) };
    let yardstick = carry_out(&alone, &mut runs, &mut fake, &Silent);
    match yardstick.seconds {
        Some(_) => with_less(prediction, yardstick, ways, &mut runs, &limits, &mut fake, &Silent),
        None => (prediction, yardstick.remarks),
    }
}

/// What `coldframe -- app` prints, with its remarks.
fn answered(prediction: Answer, fake: Fake, ways: &Ways) -> String {
    let (answer, remarks) = measured(prediction, fake, ways);
    joined(&(machine_answer::words(&answer, None, "") + &remarks.join(". ")))
}

// Five faults of an answer that were once found by hand.

#[test]
fn pages_that_were_only_read_are_no_need() {
    let fake = Fake { pager: takes(1.0), kernel: refused(), peak: 40, ..Fake::new(1.0) };
    let (answer, _) = measured(Answer::Recorder(recorded()), fake, &ways());
    // 40 of 100 parts of 101 MiB, rounded up to a whole one.
    assert_eq!((answer.managed_bytes / MIB, answer.needed_bytes / MIB), (40, 41));
    assert!(answer.notes.iter().any(|note| note.contains("60 MiB of heap were read and never written")));
}

#[test]
fn the_first_size_is_run_by_both_pagers_and_the_search_goes_on_by_the_faster_one() {
    let fake = Fake { pager: takes(3.0), kernel: slow_below_60(3.0), peak: 100, ..Fake::new(1.0) };
    let (answer, _) = measured(Answer::Recorder(recorded()), fake, &ways());
    let sizes = |by: By| answer.runs.iter().filter(|runs| runs.by == by).count();
    assert!(answer.by == Some(By::Kernel) && sizes(By::Kernel) >= 3, "{:?}", answer.runs);
    assert_eq!(sizes(By::Pager), 2, "the first size, and the recommended one");
}

#[test]
fn all_of_its_ram_has_what_is_not_paged_once() {
    let prediction = Recorded { common: Common { not_paged_bytes: 11 * MIB, ..common() }, ..recorded() };
    let fake = Fake { pager: takes(3.0), kernel: refused(), peak: 100, ..Fake::new(1.0) };
    let printed = answered(Answer::Recorder(prediction), fake, &ways());
    assert!(printed.contains("Recommended: all of its 101 MiB, unpaged"), "{printed}");
    assert!(printed.contains("Kubernetes limits: {memory: 112Mi}"), "{printed}");
}

#[test]
fn a_size_that_only_runs_know_is_shown_and_recommended() {
    let fake = Fake { pager: slow_below_60(3.0), kernel: refused(), peak: 100, ..Fake::new(1.0) };
    let (answer, _) = measured(Answer::Recorder(recorded()), fake, &ways());
    let ram = answer.ram_bytes.expect("a size is good");
    assert!(answer.curve.iter().all(|point| point.ram_bytes != ram), "the curve does not have it");
    let printed = joined(&machine_answer::words(&answer, None, ""));
    let size = coldframe_sheet::quantity::ram_size(ram);
    let limit = coldframe_sheet::quantity::human_size(ram);
    assert!(printed.contains(&format!("* {limit}")), "{printed}");
    assert!(printed.contains(&format!("Recommended: --ram {size}:")) && !printed.contains("none"), "{printed}");
}

#[test]
fn a_short_program_that_takes_some_milliseconds_more_is_fast_enough() {
    let fake = Fake { pager: takes(0.018), kernel: refused(), peak: 100, ..Fake::new(0.01) };
    let prediction = Recorded { common: Common { program_seconds: 0.01, ..common() }, ..recorded() };
    let printed = answered(Answer::Recorder(prediction), fake, &ways());
    assert!(printed.contains("8.00 ms longer than alone."), "{printed}");
}

#[test]
fn each_recommendation_has_its_sentence() {
    let nobody = Ways { pager: Err("static".into()), kernel: Err(None) };
    let fake = |pager: Behaviour, kernel: Behaviour| Fake { pager, kernel, peak: 100, ..Fake::new(1.0) };
    let killed = Behaviour { killed_below: 200, ..takes(1.0) };
    let other = Behaviour { output: Some("paged"), ..takes(1.0) };
    let once = || Fake { seconds: 0.5, prints: vec!["done", "there already"], ..fake(takes(1.0), takes(1.0)) };
    let rows = [
        (fake(slow_below_60(3.0), refused()), ways(), "as fast as alone."),
        (fake(slow_below_60(3.0), refused()), ways(), "Recommended: --ram 6"),
        (fake(slow_below_60(1.08), refused()), ways(), "8 % slower than alone."),
        (fake(takes(2.0), slow_below_60(1.0)), ways(), "--by kernel --swap zram: 1.00 s"),
        (fake(takes(2.0), slow_below_60(1.0)), ways(), "By our pager: --ram"),
        (fake(slow_below_60(3.0), slow_below_60(4.0)), ways(), "By the kernel (--by kernel --swap zram): --ram"),
        (
            fake(takes(2.0), refused()),
            ways(),
            "Recommended: all of its 101 MiB, unpaged; paged, it is over 10 % slower: --ram",
        ),
        (fake(takes(2.0), refused()), ways(), "--ram 96MiB takes 2.00 s, 100 % slower than alone."),
        (fake(takes(70.0), refused()), ways(), "--ram 96MiB takes over 2.54 s, 154 % slower than alone."),
        (fake(killed, refused()), ways(), "Recommended: all of its 101 MiB, unpaged; no run in less was possible."),
        (fake(other, takes(1.0)), ways(), "fails: its output was another one."),
        (
            fake(refused(), refused()),
            ways(),
            "Recommended: --ram 70MiB: 1.05 s (no paging), predicted, at most 10 % slower",
        ),
        (fake(refused(), refused()), ways(), "further sizes of RAM were not run: that run could not be started"),
        (fake(takes(1.0), takes(1.0)), nobody, "Recommended: --ram 70MiB: 1.05 s (no paging), predicted"),
        (once(), ways(), "when it ran again, its output was another one: it was not run any more"),
        (once(), ways(), "Recommended: --ram 70MiB: 1.05 s (no paging), predicted"),
        (Fake { signal_at: Some(0), ..once() }, ways(), "stopped by a signal: further runs are missing"),
    ];
    for (fake, ways, sentence) in rows {
        let printed = answered(Answer::Recorder(recorded()), fake, &ways);
        assert!(printed.contains(sentence), "{printed}\nwanted: {sentence}");
    }
    // No size is within the slowdown, and nothing was run.
    let none = Recorded { common: Common { ram_bytes: None, ..common() }, ..recorded() };
    let printed = joined(&machine_answer::words(&Answer::Recorder(none), None, ""));
    assert!(printed.contains("Recommended: none; no size keeps it within 10 % of its own time."), "{printed}");
    // Watched programs are run by the kernel alone.
    let watched = Answer::ReferencedBits(Watched { common: common(), ..Watched::default() });
    let printed = answered(watched, fake(takes(1.0), slow_below_60(3.0)), &ways());
    assert!(printed.contains("--by kernel --swap zram: 1.00 s (1.00 to 1.00 s in 2 runs), as fast as"), "{printed}");
    assert!(!printed.contains("our pager"), "{printed}");
}

/// What `compare --ram 50% -- app` prints.
fn compare(mut fake: Fake, left_out: &[&str]) -> String {
    let ram = ["50%".to_string()];
    let named = |name, way| Named { name, way, options: vec![] };
    let ways = vec![named("our pager", Way::pager()), named("zram", zram())];
    let plan = InTurn { ram: &ram, runs: 3, max_time: None, ways, cold: Rc::new([]), seen_bytes: 100 * MIB };
    let mut runs = RunLog::default();
    let left_out = left_out.iter().map(ToString::to_string).collect();
    match carry_out(&plan, &mut runs, &mut fake, &Silent) {
        Ok(memory) => joined(&compared::words(&plan.compared(&runs, memory, &["app".into()], left_out))),
        Err(why) => why.message,
    }
}

#[test]
fn each_comparison_has_its_sentence() {
    let fake = |pager: Behaviour, kernel: Behaviour| Fake { pager, kernel, ..Fake::new(1.0) };
    let other = Behaviour { output: Some("paged"), ..takes(1.0) };
    let late = Behaviour { table: vec![(1 << 20, 1.0, 0), (99, 90.0, 7)], peak: 100, ..Behaviour::default() };
    let prints = vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let none = "No way ended as the plain run did, with its output, in each run at each size.";
    let rows = [
        (
            fake(takes(1.2), takes(1.5)),
            "without a limit: 1.00 s (1.00 to 1.00 s), with at most 100 MiB in RAM, as seen from outside; 3 runs",
        ),
        (fake(takes(1.2), takes(1.5)), "Fastest with equal memory: our pager, 1.20 times the plain run's time."),
        (fake(takes(1.2), takes(1.5)), "same"),
        (fake(other.clone(), takes(1.5)), "3 of 3 other"),
        (fake(other, takes(1.5)), "Fastest with equal memory: zram, 1.50 times"),
        (fake(late, takes(1.5)), "1 of 1 late"),
        (fake(takes(1.2), Behaviour { killed_below: 90, ..takes(1.0) }), "3 of 3 killed"),
        (fake(Behaviour { status: 9, ..takes(1.0) }, refused()), none),
        (fake(takes(1.2), refused()), "Failed: zram: no swap is on."),
        (
            Fake { prints, ..fake(takes(1.2), takes(1.5)) },
            "The plain run's output is another one each time, so outputs were not compared.",
        ),
        (
            Fake {
                group: Some(GroupUse { peak_bytes: 80 * MIB, ..GroupUse::default() }),
                ..fake(takes(1.2), takes(1.5))
            },
            "with at most 80 MiB; 3 runs of each kind, in turn",
        ),
        (
            Fake {
                group: Some(GroupUse { peak_bytes: 85 * MIB, ..GroupUse::default() }),
                ..fake(takes(1.2), takes(1.5))
            },
            "43 MiB 51 %",
        ),
        (Fake { signal_at: Some(2), ..fake(takes(1.2), takes(1.5)) }, "stopped; nothing is left behind"),
    ];
    for (fake, sentence) in rows {
        let printed = compare(fake, &["our pager: it is linked statically"]);
        assert!(printed.contains(sentence), "{printed}\nwanted: {sentence}");
    }
    let printed = compare(fake(takes(1.2), takes(1.5)), &["our pager: it is linked statically"]);
    assert!(printed.contains("Left out: our pager: it is linked statically."), "{printed}");
    assert!(printed.ends_with("coldframe run --ram 50MiB -- app"), "{printed}");
}

/// What `fit --ram 1GiB -- PROGRAM` prints of a program with these times and MiB by number.
fn fitted(program: &str, served: Option<f64>, up_to: u32, jobs: &[(u32, f64, u64)]) -> String {
    let program = program.split(' ').map(String::from).collect();
    let plan = HowMany { program, way: Way::limit(), ram_bytes: 1 << 30, served, prepare: None, up_to };
    let (mut runs, mut fake) = (RunLog::default(), Fake { jobs: jobs.to_vec(), ..Fake::new(10.0) });
    carry_out(&plan, &mut runs, &mut fake, &Silent).unwrap();
    let text = compared::fit::words(&plan.counted(&runs));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    joined(&text)
}

/// A command, the time that servers run, the most jobs, the jobs' runs (how many, seconds, MiB), and the sentence.
type JobsRow<'a> = (&'a str, Option<f64>, u32, &'a [(u32, f64, u64)], &'a str);

#[test]
fn how_many_fit_says_the_fastest_the_largest_and_what_one_takes() {
    let build = [(1, 61.0, 225), (2, 31.0, 400), (3, 21.0, 575), (4, 30.0, 750), (5, 31.0, 925), (6, 31.0, 1100)];
    let inf = f64::INFINITY;
    let rows: [JobsRow; 9] = [
        ("make -j{n}", None, 64, &build, "make -j3: 21.0 s in 1 GiB; -j4 is slower, -j6 is killed."),
        (
            "make -j{n}",
            None,
            64,
            &build,
            "The largest that lives: -j5. -j1 takes 225 MiB beside files, and each more 175 MiB on average up to -j5: \
             50 MiB are shared, or not in use at the same time.",
        ),
        ("make -j{n}", None, 4, &build[..2], "make -j2: 31.0 s in 1 GiB; -j3 is no faster, more than 4 was not run"),
        ("make -j{n}", None, 2, &build, "make -j2: 31.0 s in 1 GiB; more was not run (--up-to)."),
        ("make -j{n}", None, 8, &[(1, 9.0, 1500)], "make -j1 is killed in 1 GiB; give more --ram."),
        (
            "./job",
            None,
            4,
            &[(1, 10.0, 50), (2, 11.0, 100), (3, 18.0, 150), (4, 25.0, 200)],
            "2 copies of ./job at a time: 5.50 s for each in 1 GiB; 3 copies are slower",
        ),
        (
            "srv -w {n}",
            Some(20.0),
            64,
            &[(1, inf, 400), (2, inf, 600), (3, inf, 1100)],
            "srv -w 2 lives for 20.0 s in 1 GiB; -w 3 is killed.",
        ),
        ("srv {n}", Some(20.0), 2, &[(1, inf, 4)], "srv 2 lives for 20.0 s in 1 GiB; more was not run (--up-to)."),
        ("make -j{n}", None, 8, &[(1, 1.0, 5), (2, 1.0, 5), (4, 90.0, 9)], "-j2 is no faster, -j4 took over 15.0 s."),
    ];
    for (program, served, up_to, jobs, sentence) in rows {
        let text = fitted(program, served, up_to, jobs);
        assert!(text.contains(sentence), "{program}, {up_to}: {text}");
    }
}
