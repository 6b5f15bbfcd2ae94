//! Recorders without emulation, on programs whose touches are known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use coldframe_formats::swap;
use coldframe_toolbox::{have, GCC};

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
        (vec!["--via", "swap", "--ram", "4MiB", "--interval", "0ms", "--", "true"], "at least 1ms"),
        (vec!["--via", "swap", "--ram", "4MiB", "--interval", "soon", "--", "true"], "--interval"),
        (vec!["--via", "swap", "--max-refs", "9", "--", "true"], "--max-refs does not go with --via swap"),
        (vec!["--via", "swap", "--", "true"], "needs --ram"),
        (vec!["--via", "swap", "--ram", "4MiB", "--attach", "1"], "keeps the RAM"),
        (vec!["--via", "swap", "--ram", "4MiB", "-o", "x.parquet", "--", "true"], "name it .csv"),
        (vec!["--via", "qemu", "--attach", "1"], "--via perf"),
    ] {
        let output = record(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(reason), "{words:?}: {}", said(&output));
    }
}
