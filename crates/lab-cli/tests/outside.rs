//! Compares our results with other tools, through traces written for them. If a tool is missing, the test prints its
//! name and is skipped.

use std::path::Path;
use std::process::Command;

use coldframe_toolbox::{have, program_of};
use serde_json::Value;

fn coldframe(args: &[&str], folder: &Path) -> String {
    let out = Command::new(program_of(args)).args(args).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The first rows of a shipped trace.
fn trace(folder: &Path) {
    let sqlite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/sqlite.parquet");
    coldframe(
        &["trace", "cut", sqlite.to_str().unwrap(), "-o", "t.parquet", "--rows", "60000", "--compress", "1"],
        folder,
    );
}

/// The misses that libCacheSim counts for this trace, from `scripts/peer_misses.py`, which describes how.
const LIBCACHESIM: &str = include_str!("golden/libcachesim.json");

/// libCacheSim's Clock inserts a page with its bit clear. Its ARC counts in bytes, so objects of one byte are used for
/// it (see the script).
#[test]
fn libcachesim_counts_the_same_misses_for_fifo_clock_lru_belady_and_arc() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let theirs: Value = serde_json::from_str(LIBCACHESIM).unwrap();
    for (frames, counts) in theirs["misses"].as_object().unwrap() {
        for (policy, misses) in counts.as_object().unwrap() {
            let args =
                ["sim", "t.parquet", "--page", "4KiB", "--frames", frames, "--policy", policy, "--format", "json"];
            let ours: Value = serde_json::from_str(&coldframe(&args, folder.path())).unwrap();
            assert_eq!(ours.pointer("/counts/true_faults"), Some(misses), "{policy}, {frames} frames");
        }
    }
}

#[test]
fn fio_replays_as_many_reads_and_writes_as_the_trace_has() {
    if !have(&[("fio", "fio")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    coldframe(&["trace", "cut", "t.parquet", "-o", "s.parquet", "--rows", "1000", "--compress", "1"], folder.path());
    let args = ["trace", "convert", "s.parquet", "--to", "fio", "-o", "s.iolog", "--page", "4KiB", "--format", "json"];
    let converted: Value = serde_json::from_str(&coldframe(&args, folder.path())).unwrap();
    std::fs::File::create(folder.path().join("disk.img")).unwrap().set_len(64 << 20).unwrap();
    let args = [
        "--name=replay",
        "--read_iolog=s.iolog",
        "--replay_redirect=disk.img",
        "--replay_no_stall=1",
        "--output-format=json",
    ];
    let out = Command::new("fio").args(args).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text} {}", String::from_utf8_lossy(&out.stderr));
    let fio: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let ios = |kind: &str| fio.pointer(&format!("/jobs/0/{kind}/total_ios")).and_then(Value::as_u64).unwrap();
    let info: Value =
        serde_json::from_str(&coldframe(&["trace", "info", "s.parquet", "--format", "json"], folder.path())).unwrap();
    let of = |key: &str| info[key].as_u64().unwrap();
    // The trace has pages of 4 KiB, so each reference is a request.
    assert_eq!(converted["requests"].as_u64(), Some(of("references")));
    assert_eq!((ios("read"), ios("write")), (of("reads") + of("instructions"), of("writes")));
}

/// A heat map of a shipped trace is a PNG of the requested size. Its counts add up to the trace's references.
#[test]
fn a_heat_map_counts_every_reference() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let info: Value =
        serde_json::from_str(&coldframe(&["trace", "info", "t.parquet", "--format", "json"], folder.path())).unwrap();
    let map: Value = serde_json::from_str(&coldframe(
        &["trace", "heatmap", "t.parquet", "-o", "t.png", "--columns", "50", "--rows", "40", "--format", "json"],
        folder.path(),
    ))
    .unwrap();
    let sum = |key: &str| map[key].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("reads") + sum("writes"), info["references"].as_u64().unwrap());
    assert_eq!(sum("writes"), info["writes"].as_u64().unwrap());
    let png = std::fs::read(folder.path().join("t.png")).unwrap();
    assert_eq!(png[16..24], [0, 0, 0, 50, 0, 0, 0, 40]);
}

/// A mix of three programs has three times the references. Each program has its own pages.
#[test]
fn a_mix_multiplies_references_and_pages() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let args = ["trace", "mix", "--task", "t.parquet*3", "--slice", "20000", "-o", "mix.parquet", "--format", "json"];
    let mixed: Value = serde_json::from_str(&coldframe(&args, folder.path())).unwrap();
    let info: Value =
        serde_json::from_str(&coldframe(&["trace", "info", "t.parquet", "--format", "json"], folder.path())).unwrap();
    assert_eq!(mixed["references"].as_u64().unwrap(), 3 * info["references"].as_u64().unwrap());
    let pages = |trace: &str| {
        let args = ["sim", trace, "--page", "4KiB", "--ram", "100%", "--policy", "fifo", "--format", "json"];
        let result: Value = serde_json::from_str(&coldframe(&args, folder.path())).unwrap();
        result.pointer("/counts/true_faults").and_then(Value::as_u64).unwrap()
    };
    // With RAM for all pages, each page faults once.
    assert_eq!(pages("mix.parquet"), 3 * pages("t.parquet"));
}

/// The timeline of a simulation's journal is JSON with a slice for each true fault.
#[test]
fn a_timeline_shows_every_fault_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let args = [
        "sim",
        "t.parquet",
        "--page",
        "4KiB",
        "--frames",
        "16",
        "--policy",
        "clock",
        "--journal",
        "j",
        "--format",
        "json",
    ];
    let result: Value = serde_json::from_str(&coldframe(&args, folder.path())).unwrap();
    coldframe(&["replay", "j", "--timeline", "t.json"], folder.path());
    let text = std::fs::read_to_string(folder.path().join("t.json")).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |name: &str| entries.iter().filter(|entry| entry["name"] == name).count() as u64;
    let true_faults = result.pointer("/counts/true_faults").and_then(Value::as_u64).unwrap();
    let false_faults = result.pointer("/counts/false_faults").and_then(Value::as_u64).unwrap();
    assert_eq!((named("load"), named("fault")), (true_faults, true_faults + false_faults));
}
