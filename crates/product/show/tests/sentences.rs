//! Each sentence that a verdict, a recommendation or a comparison can print, as rows: a fake program on a fake machine,
//! the plans that decide about it, and what is printed then.

use coldframe_answer::bench::alone::Alone;
use coldframe_answer::bench::compare::{InTurn, Named};
use coldframe_answer::bench::fake::{Behaviour, Fake};
use coldframe_answer::bench::limit::InLimit;
use coldframe_answer::bench::log::RunLog;
use coldframe_answer::bench::measure::with_less;
use coldframe_answer::bench::need::NOISE;
use coldframe_answer::bench::plan::carry_out;
use coldframe_answer::bench::runner::Ways;
use coldframe_answer::run::runs::Way;
use coldframe_answer::run::streams::Output;
use coldframe_answer::{Answer, By, Common, Limits, Method, Need, Point, Recorded, Run, Silent, Verdict, Watched};
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

/// What `check --max-ram 50MiB` prints.
fn checked(mut fake: Fake) -> String {
    let plan = InLimit { ways: ways(), ram_bytes: 50 * MIB, slowdown: 0.1 };
    match carry_out(&plan, &mut RunLog::default(), &mut fake, &Silent) {
        Ok(Some((plain, paged))) => {
            let verdict = Verdict::by_runs("app".into(), 0.1, Some(50 * MIB), plain, paged);
            joined(&verdict_answer::words(&verdict))
        }
        Ok(None) => "nobody can page it".into(),
        Err(why) => why.message,
    }
}

#[test]
fn each_verdict_of_runs_has_its_sentence() {
    let fake = |pager: Behaviour, kernel: Behaviour| Fake { pager, kernel, peak: 100, ..Fake::new(2.0) };
    let other = Behaviour { output: Some("paged"), ..takes(2.0) };
    let killed = Behaviour { killed_below: 90, ..takes(2.0) };
    let failing = Behaviour { status: 7, ..takes(2.0) };
    let alone = "alone 2.00 s";
    let rows = [
        (
            fake(takes(1.9), refused()),
            format!("yes: app in 50 MiB: it takes 1.90 s, {alone} (-5 %; the limit is +10 %)."),
            "Measured: alone one run; by our pager: one run.",
        ),
        (
            fake(takes(3.0), takes(3.5)),
            format!("no: app in 50 MiB: it takes 3.00 s, {alone} (+50 %; the limit is +10 %)."),
            "Measured: alone one run; by our pager: one run.",
        ),
        (
            fake(takes(3.0), takes(2.1)),
            format!("yes: app in 50 MiB: it takes 2.10 s, {alone} (+5 %; the limit is +10 %)."),
            "Measured: alone 5 runs, 2.00 s to 2.00 s; by the kernel: 5 runs, 2.10 s to 2.10 s.",
        ),
        (
            fake(takes(60.0), takes(70.0)),
            format!("no: app in 50 MiB: it takes more than 5.40 s, {alone} (+170 %; the limit is +10 %)."),
            "Measured: alone one run; by our pager: one run.",
        ),
        (
            fake(killed.clone(), killed.clone()),
            format!("no: app in 50 MiB: the kernel killed it for lack of memory, {alone} (+0 %; the limit is +10 %)."),
            "Measured: alone one run; by our pager: one run.",
        ),
        (
            fake(failing.clone(), failing),
            format!("no: app in 50 MiB: it ended with exit code 7 instead of 0, {alone} (+0 %; the limit is +10 %)."),
            "Measured: alone one run; by our pager: one run.",
        ),
        // Whether the program or its pager changes the output, a second run alone tells.
        (
            fake(other.clone(), other.clone()),
            format!("no: app in 50 MiB: its output was another one, {alone} (+0 %; the limit is +10 %)."),
            "Measured: alone 2 runs, 2.00 s to 2.00 s; by our pager: one run.",
        ),
        (
            fake(other, takes(1.9)),
            format!("yes: app in 50 MiB: it takes 1.90 s, {alone} (-5 %; the limit is +10 %)."),
            "Measured: alone 2 runs, 2.00 s to 2.00 s; by the kernel: one run.",
        ),
        (
            Fake { noise: 0.2, ..fake(takes(2.1), refused()) },
            "app in 50 MiB: it takes".into(),
            "Single runs are on both sides of the limit; the medians decide.",
        ),
        (
            Fake { input_lost: Some("it reads from the terminal"), ..fake(takes(2.0), takes(2.0)) },
            "nobody can".into(),
            "",
        ),
        (
            Fake { status: 3, ..fake(takes(2.0), takes(2.0)) },
            "the program ended with exit code 3, so there is no verdict: mend it, and check again".into(),
            "",
        ),
        (Fake { signal_at: Some(0), ..fake(takes(2.0), takes(2.0)) }, "stopped; nothing is left behind".into(), ""),
    ];
    for (fake, sentence, measured) in rows {
        let printed = checked(fake);
        assert!(printed.contains(&sentence) && printed.ends_with(measured), "{printed}\nwanted: {sentence} {measured}");
    }
}

fn need(bytes: u64, method: Method) -> Need {
    let answer = Answer::Recorder(Recorded { common: common(), ..recorded() });
    Need { need_bytes: bytes, method, touched_bytes: 8 * MIB, ..Need::new(&answer, &[], None) }
}

#[test]
fn each_verdict_of_needs_has_its_sentence() {
    let rows = [
        (
            vec![40],
            Method::Recorder,
            "yes: app needs 40 MiB of heap in RAM to be at most 10 % slower, 10 MiB (20.0 \
                                      %) below the limit of 50 MiB.",
        ),
        (
            vec![60, 60, 60],
            Method::Recorder,
            "no: app needs 60 MiB of heap in RAM to be at most 10 % slower, 10 MiB \
                                              (20.0 %) over the limit of 50 MiB.",
        ),
        (vec![40, 60, 60], Method::ReferencedBits, "cannot tell: app needs 60 MiB"),
        (
            vec![40, 42, 44],
            Method::ReferencedBits,
            "Watched by referenced bits, not by the pager: coarser; answers \
                                                    were 10 % apart.",
        ),
    ];
    for (mib, method, sentence) in rows {
        let needs: Vec<Need> = mib.iter().map(|mib| need(mib * MIB, method)).collect();
        let printed = joined(&verdict_answer::words(&Verdict::by_needs(&needs, Some(50 * MIB), None)));
        assert!(printed.contains(sentence), "{printed}\nwanted: {sentence}");
    }
    // With a baseline: what grew since, or that nothing did.
    let before = need(40 * MIB, Method::Recorder);
    for (mib, sentence) in [
        (40, "Nothing grew by more than 2 % since need.json."),
        (44, "Grew since need.json: least RAM: 40 MiB to 44 MiB (+10.0 %)"),
    ] {
        let needs = [need(mib * MIB, Method::Recorder)];
        let limit = (before.need_bytes as f64 * (1.0 + NOISE)) as u64;
        let printed =
            joined(&verdict_answer::words(&Verdict::by_needs(&needs, Some(limit), Some(("need.json", &before)))));
        assert!(printed.contains(sentence), "{printed}\nwanted: {sentence}");
    }
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
    let alone = Alone { first_seconds: fake.seconds, cold: std::rc::Rc::new([]) };
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
    assert_eq!((answer.managed_bytes / MIB, answer.needed_bytes / MIB), (40, 40));
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
    assert!(printed.contains("Recommended: all of its 112 MiB, unpaged"), "{printed}");
    assert!(printed.contains("Kubernetes: memory: 112Mi"), "{printed}");
}

#[test]
fn a_size_that_only_runs_know_is_shown_and_recommended() {
    let fake = Fake { pager: slow_below_60(3.0), kernel: refused(), peak: 100, ..Fake::new(1.0) };
    let (answer, _) = measured(Answer::Recorder(recorded()), fake, &ways());
    let ram = answer.ram_bytes.expect("a size is good");
    assert!(answer.curve.iter().all(|point| point.ram_bytes != ram), "the curve does not have it");
    let printed = joined(&machine_answer::words(&answer, None, ""));
    let size = coldframe_sheet::quantity::ram_size(ram);
    assert!(printed.contains(&format!("* {size}")), "{printed}");
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
    let ways = vec![named("pager", Way::pager()), named("kernel, zram", zram())];
    let plan = InTurn { ram: &ram, runs: 3, max_time: None, ways };
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
            "plain: 1.00 s (1.00 to 1.00 s); 100 MiB of memory that can leave; 3 runs of each",
        ),
        (fake(takes(1.2), takes(1.5)), "Fastest with equal memory: pager, 1.20 times the plain run's time."),
        (fake(takes(1.2), takes(1.5)), "same"),
        (fake(other.clone(), takes(1.5)), "3 of 3 other"),
        (fake(other, takes(1.5)), "Fastest with equal memory: kernel, zram, 1.50 times"),
        (fake(late, takes(1.5)), "1 of 1 late"),
        (fake(takes(1.2), Behaviour { killed_below: 90, ..takes(1.0) }), "3 of 3 killed"),
        (fake(Behaviour { status: 9, ..takes(1.0) }, refused()), none),
        (fake(takes(1.2), refused()), "Failed: kernel, zram: no swap is on."),
        (
            Fake { prints, ..fake(takes(1.2), takes(1.5)) },
            "The plain run's output is another one each time, so outputs were not compared.",
        ),
        (
            fake(Behaviour { peak: 0, ..takes(1.0) }, takes(1.0)),
            "pager has no memory that can leave; give a larger program",
        ),
        (fake(takes(99.0), takes(1.0)), "pager: with all of its memory it took too long; give more --max-time"),
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
