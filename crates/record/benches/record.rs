//! How fast programs are recorded: `cargo bench -p coldframe-record --bench record`.
//!
//! bzip2 -9 on generated text, to the finished and synced Parquet file. Beside it, from the same run, the floors: the
//! program natively, under QEMU alone, and under QEMU with a plugin that is called as ours is and does nothing.
//!
//! Targets (two cores): 20 M references/s at the exact level, 100 M instructions/s at page level.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use coldframe_record::{Level, Outcome};
use coldframe_toolbox::{have, BZIP2, QEMU};
use common::{order, plugin, run};

const REFERENCES_TARGET: f64 = 20e6;
const INSTRUCTIONS_TARGET: f64 = 100e6;

fn main() {
    // `cargo test --all-targets` runs benches too, unoptimised: nothing to learn there.
    if !std::env::args().any(|a| a == "--bench") || !have(&[QEMU, BZIP2]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (small, large) = (dir.path().join("small"), dir.path().join("large"));
    std::fs::write(&small, text(600_000)).expect("room for text");
    std::fs::write(&large, text(3_000_000)).expect("room for text");
    let tool = |front: &[&str], input: &Path| seconds(front, input);

    println!("{:34} {:>9} {:>10} {:>12} {:>12} {:>10}", "bzip2 -9", "seconds", "times", "instr/s", "refs/s", "MB");
    let empty = format!("{},empty=on", plugin().display());
    let mut results = Vec::new();
    for (input, size, levels) in [
        (&small, "0.6 MB", &[("exact", Level::Exact)][..]),
        (&large, "3 MB", &[("pages of 1 KiB", Level::Pages(1024)), ("pages of 4 KiB", Level::Pages(4096))]),
    ] {
        let native = tool(&[], input);
        let floors = [
            ("native", native),
            ("qemu", tool(&["qemu-x86_64"], input)),
            ("qemu, empty plugin", tool(&["qemu-x86_64", "-plugin", &empty], input)),
        ];
        let recorded: Vec<(&str, Outcome)> =
            levels.iter().map(|(name, level)| (*name, record(*level, input, dir.path()))).collect();
        let instructions = recorded[0].1.instructions as f64;
        for (name, seconds) in floors {
            println!(
                "{:34} {seconds:>9.3} {:>10.1} {:>12}",
                format!("{size}, {name}"),
                seconds / native,
                mega(instructions / seconds)
            );
        }
        for (name, outcome) in recorded {
            println!(
                "{:34} {:>9.3} {:>10.1} {:>12} {:>12} {:>10.1}",
                format!("{size}, recorded, {name}"),
                outcome.seconds,
                outcome.seconds / native,
                mega(outcome.instructions as f64 / outcome.seconds),
                mega(outcome.references_per_second),
                outcome.bytes as f64 / 1e6,
            );
            results.push((name, outcome));
        }
    }
    for (name, outcome) in results {
        let (what, reached, target) = match name {
            "exact" => ("references/s", outcome.references_per_second, REFERENCES_TARGET),
            _ => ("instructions/s", outcome.instructions as f64 / outcome.seconds, INSTRUCTIONS_TARGET),
        };
        let verdict = if reached >= target { "reached" } else { "MISSED" };
        println!("{name}: {} {what}, target {}: {verdict}", mega(reached), mega(target));
    }
}

fn mega(value: f64) -> String {
    format!("{:.1} M", value / 1e6)
}

/// The program's own time in front of nothing, or under a tool.
fn seconds(front: &[&str], input: &Path) -> f64 {
    let bzip2 = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|p| p.join("bzip2"))
        .find(|p| p.is_file());
    let bzip2 = bzip2.expect("bzip2, which have() saw");
    let mut command = match front {
        [] => Command::new(&bzip2),
        [tool, args @ ..] => {
            let mut command = Command::new(tool);
            command.args(args).arg(&bzip2);
            command
        }
    };
    let start = Instant::now();
    let status = command.args(["-9", "-k", "-f"]).arg(input).stdout(Stdio::null()).status();
    assert!(status.is_ok_and(|s| s.success()), "{front:?} failed");
    start.elapsed().as_secs_f64()
}

fn record(level: Level, input: &Path, dir: &Path) -> Outcome {
    let out = dir.join("t.parquet");
    let input = input.to_str().expect("a plain path");
    let mut order = order(Path::new("bzip2"), &["-9", "-k", "-f", input], &out);
    order.level = level;
    let outcome = run(&order).expect("a recording");
    std::fs::remove_file(out).expect("the recording");
    outcome
}

/// Text with repetitions at several distances: words by a linear congruence.
fn text(bytes: usize) -> String {
    let words = [
        "page", "frame", "the", "fault", "of", "a", "swap", "clock", "and", "slot", "is", "dirty", "hand", "load",
        "evict", "to",
    ];
    let mut state = 1u32;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(state >> 28) as usize]);
        if state >> 24 & 15 == 0 {
            text.push_str(&(state >> 12).to_string());
        }
        text.push(if state >> 20 & 15 == 0 { '\n' } else { ' ' });
    }
    text
}
