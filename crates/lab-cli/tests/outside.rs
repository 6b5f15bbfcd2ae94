//! Compares our results with those of other tools.

use std::path::Path;
use std::process::Command;

use coldframe_toolbox::program_of;
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
