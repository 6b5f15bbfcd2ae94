//! How a recording ends: by a limit, by its caller, by the program.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::{compile, order, own_halves, read, ready, run, CC};
use coldframe_record::{record, Level};
use coldframe_store::Reference;
use coldframe_toolbox::QEMU;

#[test]
fn a_killed_program_leaves_all_it_did() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let source = "
        #include <signal.h>
        static volatile short array[3000];
        int main(void) { for (int i = 0; i < 3000; i++) array[i] = 7; raise(SIGKILL); return 0; }";
    let program = compile(dir.path(), "killed", "c", source, &["-O1"]);
    let outcome = run(&order(&program, &[], &out)).unwrap();
    assert_eq!(outcome.status.signal(), Some(9));
    let (rows, provenance) = read(&out);
    assert_eq!(own_halves(&rows, &provenance, 0).len(), 3000);
}

#[test]
fn skipped_and_limited_recordings_are_pieces_of_the_whole() {
    let Some((_dir, out)) = ready(&[QEMU]) else { return };
    let mut order = order(Path::new("sort"), &["/etc/passwd", "-o", "/dev/null"], &out);
    run(&order).unwrap();
    let (whole, _) = read(&out);
    for (skip, max) in
        [(0, 1000), (1, 200_000), (70_000, 7), (65_536, 65_536), (whole.len() as u64 - 1, 5), (whole.len() as u64, 5)]
    {
        order.limits.skip_refs = skip;
        order.limits.max_refs = Some(max);
        let outcome = run(&order).unwrap();
        let end = whole.len().min((skip + max) as usize);
        let (rows, provenance) = read(&out);
        assert!(rows == whole[skip as usize..end], "skip {skip} max {max}: {} rows", rows.len());
        assert_eq!(outcome.limit, (end as u64 == skip + max).then_some("max-refs"), "skip {skip} max {max}");
        assert_eq!(provenance.notes.iter().any(|n| n.contains("max-refs")), outcome.limit.is_some());
    }
}

/// Runs until it is stopped; its file must then be whole.
fn endless(dir: &Path) -> PathBuf {
    let source =
        "int main(void) { volatile int array[1000]; for (unsigned i = 0;; i = i * 5 + 1) array[i % 1000] = i; }";
    compile(dir, "endless", "c", source, &["-O1"])
}

#[test]
fn time_and_the_caller_end_a_recording_and_the_program() {
    let Some((dir, _)) = ready(&[QEMU, CC]) else { return };
    let program = endless(dir.path());
    for level in [Level::Exact, Level::Pages(1024)] {
        for limit in ["max-time", "stopped"] {
            let out = dir.path().join(limit);
            let mut order = order(&program, &[], &out);
            order.level = level;
            order.limits.max_time = (limit == "max-time").then(|| Duration::from_secs(2));
            let stop = order.stop.clone();
            let start = Instant::now();
            let outcome = record(&order, &mut |p| {
                if limit == "stopped" && p.seconds > 2.0 {
                    stop.store(true, Ordering::Relaxed)
                }
            });
            let outcome = outcome.unwrap();
            assert_eq!(outcome.limit, Some(limit));
            assert_eq!(outcome.status.signal(), Some(15), "{limit}");
            assert!(start.elapsed() < Duration::from_secs(60));
            let (rows, provenance) = read(&out);
            assert_eq!(rows.iter().map(|r| u64::from(r.count)).sum::<u64>(), outcome.references);
            assert!(!rows.is_empty() && provenance.notes.iter().any(|n| n.contains(limit)));
            assert!(!out.with_file_name(format!("{limit}.partial")).exists());
        }
    }
}

#[test]
fn a_program_that_ignores_sigterm_is_killed() {
    let Some((_dir, out)) = ready(&[QEMU]) else { return };
    let mut stubborn = order(Path::new("sh"), &["-c", "trap '' TERM; while :; do :; done"], &out);
    stubborn.limits.max_refs = Some(3_000_000);
    assert_eq!(run(&stubborn).unwrap().status.signal(), Some(9));
}

#[test]
fn a_loop_in_one_page_ends_at_the_limit_of_references() {
    let Some((dir, _)) = ready(&[QEMU, CC]) else { return };
    let source = "static volatile int array[1000] __attribute__((aligned(4096)));
        __attribute__((aligned(4096))) int main(void) { for (unsigned i = 0;; i++) array[i % 1000] = i; }";
    let program = compile(dir.path(), "one-page", "c", source, &["-O1"]);
    let mut order = order(&program, &[], &dir.path().join("t.parquet"));
    order.level = Level::Pages(4096);
    order.limits.max_refs = Some(2_000_000);
    let outcome = run(&order).unwrap();
    // Limits count what the program does. A reference over a page's end is one on each of its pages.
    order.level = Level::Exact;
    run(&order).unwrap();
    let (rows, _) = read(&order.out);
    let pages = |row: &Reference| (row.address + u64::from(row.size) - 1) / 4096 - row.address / 4096 + 1;
    assert_eq!(rows.len(), 2_000_000);
    assert_eq!((outcome.limit, outcome.references), (Some("max-refs"), rows.iter().map(pages).sum()));
}
