//! Compares our results with those of other tools.

use coldframe_toolbox::command::{done, json, shipped, Folder};
use serde_json::Value;

/// The first rows of a shipped trace.
fn trace(folder: &Folder) -> String {
    let trace = folder.at("t.parquet");
    done(&format!("trace cut {} -o {trace} --rows 60000 --compress 1", shipped("sqlite.parquet")));
    trace
}

/// The misses that libCacheSim counts for this trace, from `scripts/peer_misses.py`, which describes how.
const LIBCACHESIM: &str = include_str!("../golden/libcachesim.json");

/// libCacheSim's Clock inserts a page with its bit clear. Its ARC counts in bytes, so objects of one byte are used for
/// it (see the script).
#[test]
fn libcachesim_counts_the_same_misses_for_fifo_clock_lru_belady_and_arc() {
    let folder = Folder::new();
    let trace = trace(&folder);
    let theirs: Value = serde_json::from_str(LIBCACHESIM).unwrap();
    for (frames, counts) in theirs["misses"].as_object().unwrap() {
        for (policy, misses) in counts.as_object().unwrap() {
            let ours = json(&format!("sim {trace} --page 4KiB --frames {frames} --policy {policy}"));
            assert_eq!(ours.pointer("/counts/true_faults"), Some(misses), "{policy}, {frames} frames");
        }
    }
}

/// A heat map of a shipped trace is a picture with its addresses and as many cells as requested. Its counts add up to
/// the trace's references.
#[test]
fn a_heat_map_counts_every_reference() {
    let folder = Folder::new();
    let trace = trace(&folder);
    let (info, svg) = (json(&format!("trace info {trace}")), folder.at("t.svg"));
    let map = json(&format!("trace heatmap {trace} -o {svg} --columns 50 --rows 40"));
    let sum = |key: &str| map[key].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("reads") + sum("writes"), info["references"].as_u64().unwrap());
    assert_eq!(sum("writes"), info["writes"].as_u64().unwrap());
    let svg = std::fs::read_to_string(svg).unwrap();
    let low = format!(">{:#x}</text>", map["addresses"][0].as_u64().unwrap());
    assert!(svg.contains("viewBox=\"0 0 50 40\"") && svg.contains(&low) && svg.contains("class=\"written\""), "{svg}");
}

/// A mix of three programs has three times the references. Each program has its own pages.
#[test]
fn a_mix_multiplies_references_and_pages() {
    let folder = Folder::new();
    let trace = trace(&folder);
    let mix = folder.at("mix.parquet");
    let mixed = json(&format!("trace mix --task {trace}*3 --slice 20000 -o {mix}"));
    let info = json(&format!("trace info {trace}"));
    assert_eq!(mixed["references"].as_u64().unwrap(), 3 * info["references"].as_u64().unwrap());
    let pages = |trace: &str| {
        let result = json(&format!("sim {trace} --page 4KiB --ram 100% --policy fifo"));
        result.pointer("/counts/true_faults").and_then(Value::as_u64).unwrap()
    };
    // With RAM for all pages, each page faults once.
    assert_eq!(pages(&mix), 3 * pages(&trace));
}
