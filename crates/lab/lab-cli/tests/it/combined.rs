//! Parts of the five systems in one run: every driver with every area and handler and with a failing device. Each run's
//! journal replays.

use coldframe_toolbox::command::{self, done, json, Folder};
use serde_json::Value;

const WORKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/traces/worker.parquet");
const SWAPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/traces/swap-desktop.csv.zst");

/// Runs `sim` with these words; returns its only result.
fn sim(trace: &str, words: &str) -> Value {
    match json(&format!("sim {trace} {words}")) {
        Value::Array(mut all) => all.remove(0),
        one => one,
    }
}

/// The same, with a journal that a fresh engine repeats; also returns the number of commands.
fn journaled(folder: &Folder, trace: &str, words: &str) -> (Value, u64) {
    let path = folder.at("run.journal");
    let result = sim(trace, &format!("{words} --journal {path}"));
    let replayed = json(&format!("replay {path}"));
    (result, replayed["commands"].as_u64().unwrap_or_else(|| panic!("{replayed}")))
}

/// Three workers that take turns.
fn mix(folder: &Folder) -> String {
    let path = folder.at("mix.parquet");
    done(&format!("trace mix --task {WORKER}*3 --slice 2000 -o {path}"));
    path
}

fn count(result: &Value, name: &str) -> u64 {
    result["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", result["counts"]))
}

#[test]
fn all_five_systems_in_one_run() {
    let folder = Folder::new();
    let words = "--ram 20% --handler delayed-dual-buffering --set machine.buffers=4 --scheduler eevdf --prefetch 75 \
                 --swap-device nvm-dr --swap-size 16MiB --collector cba";
    let (result, commands) = journaled(&folder, &mix(&folder), words);
    let config = &result["config"];
    assert_eq!((&config["handler"], &config["swap"]["backing"]), (&"delayed-dual-buffering".into(), &"nvm-dr".into()));
    assert_eq!(config["swap"]["collector"], "cost-benefit-age:1");
    assert_eq!((&config["tasks"]["scheduler"], &config["tasks"]["prefetch"]), (&"eevdf".into(), &"75".into()));
    // Each part has worked: pages ran from buffers, were written to the log, and were read in their slots.
    assert!(count(&result, "xip_reads") > 0 && count(&result, "reads_in_slots") > 0, "{}", result["counts"]);
    assert!(result["swap"]["programs"].as_u64() > Some(1_000) && commands > 10_000, "{}", result["swap"]);
}

/// With one task and no prefetching, neither the place of a page nor the driver changes the policy's decisions.
#[test]
fn every_driver_finds_the_same_faults() {
    let same = |words: &str| {
        let result = sim(WORKER, &format!("--frames 300 --policy clock --handler sequential {words}"));
        (count(&result, "evictions"), count(&result, "cold_faults"), result)
    };
    let (evictions, cold, string) = same("--device LOBI-NAND");
    let dirty = count(&string, "dirty_evictions");
    for (words, same_dirty) in [
        ("--system lobi --blocks 256", true),
        ("--scheduler round-robin --prefetch off", true),
        ("--scheduler eevdf --prefetch off --system lobi --blocks 256", true),
        // A page that is loaded to RAM frees its slot and is dirty from then on.
        ("--scheduler cfs --prefetch off --swap-device emmc --swap-size 64MiB", false),
        ("--swap-device emmc --swap-size 64MiB", false),
        ("--swap-device emmc --swap-size 64MiB --collector greedy", true),
    ] {
        let (e, c, result) = same(words);
        assert_eq!((e, c), (evictions, cold), "{words}");
        assert_eq!(count(&result, "dirty_evictions") == dirty, same_dirty, "{words}");
        let faults = |r: &Value| {
            r["counts"]["true_faults"].as_u64().unwrap_or_else(|| count(r, "major_faults") + count(r, "minor_faults"))
        };
        assert_eq!(faults(&result), faults(&string), "{words}");
    }
}

#[test]
fn every_driver_and_area_keeps_a_journal_that_replays_also_on_a_device_that_fails() {
    let folder = Folder::new();
    let trace = mix(&folder);
    for driver in ["--handler parallel", "--scheduler cfs --prefetch 75", "--swap-device dram --swap-size 20%"] {
        for area in [
            "",
            "--system lobi --blocks 96",
            "--swap-device nvm-dr --swap-size 10%",
            "--swap-device nvm-dr --swap-size 24MiB --collector greedy",
        ] {
            // Otherwise this option would be given twice.
            if driver.contains("--swap-device") && !area.is_empty() {
                continue;
            }
            for fail in ["", " --fail 0.5%:7"] {
                let words = format!("--ram 10% {driver} {area}{fail}");
                let (result, commands) = journaled(&folder, &trace, &words);
                assert!(commands > 1_000, "{words}: {commands} commands");
                let failures = result["counts"]["failures"].as_u64().unwrap_or(0);
                assert_eq!(failures > 0, !fail.is_empty(), "{words}: {failures} failures");
            }
        }
    }
}

/// zram is a folder and one line in a table, and works with every driver.
#[test]
fn compressed_ram_is_a_backing_like_any_other() {
    let folder = Folder::new();
    // 1 400 KiB of pages take 400 KiB at a ratio of 3.5, and there are fewer frames by that much.
    let (result, _) = journaled(&folder, WORKER, "--system zram --ram 2MiB --swap-size 1400KiB");
    assert_eq!(result["config"]["frames"], (2048 - 400) / 4);
    assert_eq!(result["config"]["swap"]["ratio"], 3.5);
    assert!(count(&result, "swap_outs") > 0 && count(&result, "swap_ins") > 0, "{}", result["counts"]);
    // A faster store with a higher ratio has the same faults in the same frames, in less time.
    let paging = |backing: &str, size: &str, ratio: &str| {
        let result =
            sim(WORKER, &format!("--ram 2MiB --swap-device {backing} --swap-size {size} --set swap.ratio={ratio}"));
        (result["config"]["frames"].clone(), result["foreground"]["time_ps"]["paging"].as_u64().expect("a time"))
    };
    let (lz4, zstd) = (paging("zram-lz4", "4MiB", "4"), paging("zram-zstd", "4MiB", "4"));
    assert!(lz4.0 == zstd.0 && lz4.1 < zstd.1, "{lz4:?} {zstd:?}");
    assert!(paging("zram-lz4", "4MiB", "8").0.as_u64() > lz4.0.as_u64());
    let (result, _) = journaled(
        &folder,
        WORKER,
        "--scheduler cfs --swap-device zram-zstd --frames 300 --swap-size 4MiB --set swap.ratio=8",
    );
    assert_eq!(result["config"]["frames"], 300 - 128, "4 MiB take 128 pages at a ratio of 8");
    for system in ["zram", "drswap"] {
        let (result, _) =
            journaled(&folder, WORKER, &format!("--system {system} --scheduler cfs --frames 400 --swap-size 1MiB"));
        assert!(count(&result, "swap_outs") > 0, "{system}: {}", result["counts"]);
    }
}

/// A swap trace drives a swap area without paging. Its journal replays, even if programs, copies and erases fail.
#[test]
fn a_swap_traces_area_keeps_a_journal_that_replays_also_on_a_device_that_fails() {
    let folder = Folder::new();
    for words in ["--collector cba:4", "--layout linux-ftl --collector greedy", "--layout linux"] {
        let words = format!("--blocks 1024 {words}");
        let (result, commands) = journaled(&folder, SWAPS, &words);
        let commanded = ["programs", "copies", "erases"].map(|name| count(&result, name)).iter().sum::<u64>();
        assert_eq!(commanded, commands, "{words}: {}", result["counts"]);
        let (failing, _) = journaled(&folder, SWAPS, &format!("{words} --fail 0.05%:3"));
        assert!(count(&failing, "bad_blocks") > 0, "{words}: {}", failing["counts"]);
        assert!(result["counts"]["bad_blocks"].is_null());
        assert!(done(&format!("sim {SWAPS} {words} --fail 0.05%:3")).contains("The device failed"), "{words}");
    }
    // With another slot in one program, the area does something else.
    let path = folder.path("run.journal");
    let mut bytes = std::fs::read(&path).expect("a journal");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let replay = format!("replay {}", folder.write("run.journal", bytes));
    assert!(!command::run(&replay).status.success());
}

#[test]
fn a_seed_decides_what_fails() {
    let run = |fail: &str| {
        sim(WORKER, &format!("--frames 200 --policy clock --system lobi --blocks 128 --fail {fail}"))["counts"].clone()
    };
    assert_eq!(run("1%:3"), run("0.01:3"));
    assert_ne!(run("1%:3"), run("1%:4"));
    // About one in a hundred of the 6 200 loads and writes, within five standard deviations.
    let failures = run("1%:3")["failures"].as_u64().expect("a number");
    assert!((20..105).contains(&failures), "{failures}");
}

#[test]
fn a_device_that_fails_always_stops_the_program_at_its_first_fault_and_says_so() {
    let result = sim(WORKER, "--frames 200 --policy clock --fail 100%");
    // One page, with three attempts.
    assert_eq!((count(&result, "true_faults"), count(&result, "failures"), count(&result, "halts")), (1, 3, 1));
    assert!(result["notes"].to_string().contains("stopped after"), "{}", result["notes"]);
}

#[test]
fn the_tables_say_what_failed() {
    for driver in ["--frames 200", "--frames 200 --scheduler cfs", "--frames 200 --swap-device nvm"] {
        let table = |fail: &str| done(&format!("sim {WORKER} {driver} {fail}"));
        assert!(table("--fail 1%").contains("The device failed"), "{driver}");
        assert!(!table("").contains("failed"), "{driver}");
    }
}
