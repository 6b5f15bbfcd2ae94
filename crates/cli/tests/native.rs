//! Recorders without emulation, on programs whose touches are known.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use coldframe_toolbox::{have, GCC};
use coldframe_trace::{swap, Block, Fidelity, Kind, Reader, Wanted};
use serde_json::Value;

/// Writes 1000 pages at a fixed address. Then, for a given number of rounds of a hundredth of a second, writes 50 of
/// them and reads all. Prints when the first part is over, and exits with status 5.
const WRITER: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int main(int count, char **words) {
    volatile char *pages = mmap((void *)0x200000000, 1000 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    madvise((void *)pages, 1000 * 4096, MADV_NOHUGEPAGE);
    for (int i = 0; i < 1000; i++) pages[i * 4096] = 1;
    puts("ready");
    fflush(stdout);
    int sum = 0;
    for (int round = 0; round < atoi(words[1]); round++) {
        for (int i = 0; i < 50; i++) pages[(100 + i) * 4096] = round;
        for (int i = 0; i < 1000; i++) sum += pages[i * 4096];
        nanosleep(&(struct timespec){0, 10000000}, 0);
    }
    return sum < 0 ? 6 : 5;
}"#;
/// Writes 3000 pages at a fixed address in order, three times, slowly enough to be observed.
const SWEEPER: &str = r#"
#define _GNU_SOURCE
#include <sys/mman.h>
#include <time.h>
int main(void) {
    volatile char *pages = mmap((void *)0x200000000, 3000 * 4096L, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3000; i++) {
            for (int at = 0; at < 4096; at += 64) pages[i * 4096L + at] = i * at + round + 1;
            if (i % 50 == 0) nanosleep(&(struct timespec){0, 5000000}, 0);
        }
    return 0;
}"#;
const FIRST: u64 = 0x2_0000_0000 / 4096;

/// Compiles a program; `None`, with a message, if there is no compiler.
fn compiled(folder: &Path, text: &str) -> Option<PathBuf> {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, text).unwrap();
    have(&[GCC]).then(|| {
        let built = Command::new("gcc").arg("-O1").arg("-o").arg(&program).arg(&source).status();
        assert!(built.unwrap().success());
        program
    })
}

fn record(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.arg("record").args(words).env("NO_COLOR", "1").stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine allows processes to be watched. If not, the recorder must print what is missing.
fn watched(output: &Output) -> bool {
    if output.status.code() == Some(4) {
        assert!(said(output).contains("is not available here"), "{}", said(output));
        eprintln!("skipped: {}", said(output));
        return false;
    }
    assert!(output.status.success(), "{}", said(output));
    true
}

/// The pages of the block at the fixed address that the trace has, by interval.
fn intervals(trace: &str) -> Vec<Vec<u64>> {
    let mut reader = Reader::open(trace).unwrap();
    let (provenance, mut block) = (reader.provenance().clone(), Block::new());
    assert_eq!((provenance.fidelity, provenance.page_size), (Fidelity::Sampled, Some(4096)));
    let (mut all, mut time) = (Vec::new(), None);
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        for row in block.iter() {
            assert_eq!((row.kind, row.size), (Kind::Write, 4096));
            if time.replace(row.time) != Some(row.time) {
                all.push(Vec::new());
            }
            let page = (row.address / 4096).wrapping_sub(FIRST);
            all.last_mut().unwrap().extend(Some(page).filter(|page| *page < 1000));
        }
    }
    all
}

#[test]
fn a_running_process_is_watched_while_it_writes_and_goes_on_unharmed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), WRITER) else { return };
    let mut child = Command::new(program).arg("300").stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let out = folder.path().join("t.parquet").display().to_string();
    let stats = folder.path().join("stats.json").display().to_string();
    let pid = child.id().to_string();
    let output = record(&[
        "--via",
        "writes",
        "--attach",
        &pid,
        "--max-time",
        "1s",
        "--interval",
        "50ms",
        "--stats",
        &stats,
        "-o",
        &out,
    ]);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    if !watched(&output) {
        return;
    }
    // Without the pages written before, and without pages that are only read.
    let all = intervals(&out);
    assert!(all.iter().flatten().all(|page| (100..150).contains(page)), "{all:?}");
    assert!(all.iter().any(|pages| *pages == (100..150).collect::<Vec<_>>()), "{all:?}");
    let stats: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    assert!(
        stats["scanning_seconds"].as_f64().unwrap() > 0.0 && stats["intervals"].as_u64().unwrap() >= all.len() as u64
    );
    assert!(said(&output).contains("% of a processor"), "{}", said(&output));
    let sim = Command::new(env!("CARGO_BIN_EXE_coldframe")).args(["sim", &out]).output().unwrap();
    assert_eq!(sim.status.code(), Some(3));
}

#[test]
fn a_program_is_watched_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), WRITER) else { return };
    let out = folder.path().join("t.parquet").display().to_string();
    let output = record(&["--via", "writes", "--interval", "20ms", "-o", &out, "--", program.to_str().unwrap(), "50"]);
    if !watched(&output) {
        return;
    }
    let all = intervals(&out);
    let mut once: Vec<u64> = all.iter().flatten().copied().collect();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once, (0..1000).collect::<Vec<_>>());
    // Each of the other pages is written only once.
    assert!((0..100).all(|page| all.iter().flatten().filter(|other| **other == page).count() == 1));
    assert!(all.iter().filter(|pages| pages.contains(&120)).count() > 3);
}

#[test]
fn what_is_swapped_of_a_program_goes_into_a_swap_trace() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), SWEEPER) else { return };
    let program = program.to_str().unwrap();
    let out = folder.path().join("t.csv").display().to_string();
    let output = record(&["--via", "swap", "--ram", "4MiB", "--interval", "2ms", "-o", &out, "--", program]);
    let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default().lines().count();
    if areas != 2 || !output.status.success() {
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("swap") || said(&output).contains("cgroup"), "{}", said(&output));
        eprintln!("skipped: {}", said(&output));
        return;
    }
    let trace = swap::read(out.as_ref()).unwrap();
    assert!(trace.notes[0].contains("every 2 ms"));
    let ours: Vec<_> = trace.events.iter().filter(|e| (FIRST..FIRST + 3000).contains(&e.page_number)).collect();
    let count = |op| ours.iter().filter(|e| e.op == op).count();
    // Two thirds of each sweep do not fit. These pages of the first two sweeps must come back.
    assert!(count(swap::SwapOp::Out) > 4000 && count(swap::SwapOp::In) > 2000, "{}", said(&output));
    let mut slots = std::collections::HashMap::new();
    for event in &ours {
        match event.op {
            swap::SwapOp::Out => assert!(slots.insert(event.slot, event.page_number).is_none(), "{event:?}"),
            swap::SwapOp::Free => assert_eq!(slots.remove(&event.slot), Some(event.page_number), "{event:?}"),
            _ => assert_eq!(slots.get(&event.slot), Some(&event.page_number), "{event:?}"),
        }
    }
    assert!(slots.is_empty());
}

#[test]
fn what_native_recorders_cannot_do_is_refused() {
    for (words, reason) in [
        (vec!["--via", "writes", "--interval", "0ms", "--", "true"], "at least 1ms"),
        (vec!["--via", "writes", "--interval", "soon", "--", "true"], "--interval"),
        (vec!["--via", "writes", "--max-refs", "9", "--", "true"], "--max-refs does not go with --via writes"),
        (vec!["--via", "writes", "--attach", "4294967295"], "there is no process"),
        (vec!["--via", "swap", "--", "true"], "needs --ram"),
        (vec!["--via", "swap", "--ram", "4MiB", "--attach", "1"], "keeps the RAM"),
        (vec!["--via", "swap", "--ram", "4MiB", "-o", "x.parquet", "--", "true"], "name it .csv"),
        (vec!["--via", "qemu", "--attach", "1"], "--via perf or writes"),
    ] {
        let output = record(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(reason), "{words:?}: {}", said(&output));
    }
}
