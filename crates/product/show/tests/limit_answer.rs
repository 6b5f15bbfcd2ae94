//! What a person reads of an answer that was measured in memory groups: each row of a table is a program on a fake
//! machine, and what is said of it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use coldframe_answer::bench::alone::Alone;
use coldframe_answer::bench::fake::{Behaviour, Fake};
use coldframe_answer::bench::fit::InGroup;
use coldframe_answer::bench::limit_answer::LimitAnswer;
use coldframe_answer::bench::log::RunLog;
use coldframe_answer::bench::plan::carry_out;
use coldframe_answer::run::runs::Way;
use coldframe_answer::run::streams::Output;
use coldframe_answer::{GroupUse, Limits, Run, Silent};
use coldframe_show::html::{Html, Page};
use coldframe_show::limit_answer::words;

const MIB: u64 = 1 << 20;

/// A program with so many MiB of anonymous memory, files and shared memory, fast from some on and killed below others.
fn program([anonymous, files, shared]: [u64; 3], fast: u64, lives: u64) -> Fake {
    let peak = anonymous + files + shared;
    let group = GroupUse {
        peak_bytes: peak * MIB,
        anonymous_bytes: anonymous * MIB,
        files_bytes: files * MIB,
        shared_bytes: shared * MIB,
        kernel_bytes: MIB / 4,
        fixed_bytes: (anonymous + shared) * MIB,
        ..GroupUse::default()
    };
    let limit =
        Behaviour { table: vec![(4 * peak, 1.0, 0), (fast - 1, 2.5, 0)], killed_below: lives, ..Behaviour::default() };
    Fake { group: Some(group), limit, ..Fake::new(1.0) }
}

fn answer(mut fake: Fake, others: Vec<Way>, cold: &[&str], given: Option<u64>) -> LimitAnswer {
    let output = Some(Output::digest(fake.prints[0]));
    let mut runs = RunLog::after(Run { seconds: 1.0, status: fake.status, output, ..Run::default() });
    let cold: Rc<[PathBuf]> = cold.iter().map(PathBuf::from).collect();
    let alone = Alone { first_seconds: 1.0, cold: Rc::clone(&cold) };
    let until = carry_out(&alone, &mut runs, &mut fake, &Silent).until;
    let guess = fake.group.map(|group| group.fixed_bytes);
    let limits = Limits { ram: given, ..Limits::default() };
    let plan = InGroup { guess, given, others, runtime: None, cold, limits, until };
    let fit = carry_out(&plan, &mut runs, &mut fake, &Silent);
    LimitAnswer::new("./app --all", &runs, fit, &limits, Vec::new())
}

fn joined(answer: &LimitAnswer) -> String {
    let text = words(answer, Some(Path::new("app.coldframe/report.html")), "");
    assert!(text.lines().count() <= 16, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_kind_of_program_has_its_sentences() {
    let table: [(Fake, &[&str]); 6] = [
        (
            program([80, 20, 0], 90, 85),
            &[
                "app takes 1.00 s, with at most 100 MiB. It runs in 9",
                "as fast; it lives from 8",
                "* 9",
                " MiB none 1.00 s (2 of 2) 1.00 recommended",
                "killed",
                "no shared memory, no tmpfs",
            ],
        ),
        // All of it is needed.
        (program([48, 0, 0], 48, 48), &["app takes 1.00 s, with at most 48 MiB. It needs all of it: "]),
        // 60 MiB in a tmpfs.
        (program([4, 6, 60], 68, 67), &["60 MiB shared memory and tmpfs"]),
        (Fake { status: 3, ..program([80, 20, 0], 90, 85) }, &["It ended with exit code 3."]),
        // It prints another word in each run, and its kills are kills.
        (Fake { prints: vec!["a", "b", "c"], ..program([80, 20, 0], 90, 85) }, &["It runs in 9", "killed"]),
        (
            Fake { signal_at: Some(1), ..program([80, 20, 0], 90, 85) },
            &["A limit cannot be told: no run in less RAM has ended."],
        ),
    ];
    for (fake, wanted) in table {
        let printed = joined(&answer(fake, vec![], &["/lib/libc.so"], None));
        for wanted in wanted {
            assert!(printed.contains(wanted), "{printed}\nwanted: {wanted}");
        }
    }
}

#[test]
fn a_line_to_paste_has_a_margin_that_is_said_and_none_is_there_without_a_recommendation() {
    let answered = answer(program([80, 20, 0], 90, 85), vec![], &[], None);
    let enough = answered.limit.fast_bytes.expect("a limit is recommended").div_ceil(MIB);
    assert!((90..=95).contains(&enough), "fast from 90 MiB on, recommended {enough}");
    let hard = (enough * 11).div_ceil(10);
    let printed = joined(&answered);
    for wanted in [
        "With 10 % on top, as a hard limit".to_owned(),
        format!("docker run --memory {hard}m"),
        format!("compose mem_limit: {hard}m"),
        format!("Kubernetes limits: {{memory: {hard}Mi}} · systemd MemoryMax={hard}M · MemoryHigh={enough}M"),
    ] {
        assert!(printed.contains(&wanted), "{printed}\nwanted: {wanted}");
    }
    let none = joined(&answer(Fake { signal_at: Some(1), ..program([80, 20, 0], 90, 85) }, vec![], &[], None));
    assert!(!none.contains("docker"), "{none}");
}

#[test]
fn a_program_that_sizes_itself_by_its_limit_is_said_to() {
    let mut fake = program([380, 20, 0], 56, 50);
    let small = GroupUse { anonymous_bytes: 21 * MIB, fixed_bytes: 21 * MIB, ..fake.group.unwrap() };
    fake.limit.group = Some(small);
    let answer = answer(fake, vec![], &[], None);
    assert!(answer.limit.sizes_itself);
    let printed = joined(&answer);
    assert!(printed.contains("MiB it had 21 MiB beside files, without a limit 380 MiB."), "{printed}");
}

#[test]
fn less_with_swap_has_its_row_and_its_command_and_a_given_size_is_marked() {
    let zram = Way::kernel(Some("zram".into()));
    let mut fake = program([80, 20, 0], 90, 85);
    fake.kernel = Behaviour { table: vec![(100, 1.0, 0), (40, 9.0, 0)], ..Behaviour::default() };
    let printed = joined(&answer(fake, vec![zram], &[], Some(70 * MIB)));
    assert!(printed.contains("zram 1.00 s"), "{printed}");
    assert!(printed.contains("70 MiB none killed as asked"), "{printed}");
    assert!(printed.contains("coldframe run --ram ") && printed.contains(" --swap zram -- ./app --all"), "{printed}");
}

#[test]
fn the_page_has_every_size_that_was_run() {
    let answer = answer(program([80, 20, 0], 90, 85), vec![], &[], None);
    let page = Page::limit(&answer).html().unwrap();
    assert!(page.contains("app takes 1.00 s, with at most 100 MiB.") && page.contains("MemoryMax="), "{page}");
    let rows = page.matches("<tr>").count();
    assert!(rows >= answer.runs.len(), "{rows} rows of {} kinds of runs", answer.runs.len());
}
