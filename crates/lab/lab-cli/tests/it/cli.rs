//! The command as a user sees it: contract, journals, names.

use coldframe_toolbox::command::{done, json, run, shipped, Folder};
use serde_json::Value;

/// Ten instructions that touch pages 1 and 2, a modify, and a load that crosses from page 4 to page 5.
const LACKEY: &str =
    "==7== lackey\nI  00001000,4\nI  00001004,4\n S 00002000,8\n M 00002008,8\nI  00001008,4\n L 00004ffc,8\n";

#[test]
fn an_imported_trace_is_simulated_with_the_counts_that_its_few_lines_have() {
    let files = Folder::new();
    let (text, trace) = (files.write("few.lk", LACKEY), files.at("few.parquet"));
    let done = json(&format!("trace import lackey:{text} -o {trace}"));
    assert_eq!((&done["references"], &done["instructions"], &done["skipped"]), (&6.into(), &3.into(), &1.into()));
    // Seven page references: the crossing load is two. Under FIFO with 2 frames, pages 1, 2, (1), 4, 5 fault. Page 2 is
    // dirty when it is evicted for page 5; it is the only dirty victim.
    let result = json(&format!("sim {trace} --policy fifo --frames 2"));
    let counts = &result["counts"];
    for (key, expected) in [
        ("references", 7),
        ("true_faults", 4),
        ("cold_faults", 4),
        ("evictions", 2),
        ("dirty_evictions", 1),
        ("false_faults", 0),
    ] {
        assert_eq!(counts[key], expected, "{key}");
    }
    assert_eq!(result["trace"]["pages"], 4);
    assert_eq!(result["trace"]["fidelity"], "exact-references");
}

#[test]
fn json_has_the_fields_that_outside_checks_rely_on() {
    let result = json(&format!("sim {} --system swl --ram 32KiB", shipped("chess.parquet")));
    for (part, keys) in [
        ("", "schema_version version"),
        ("/trace", "path sha256 fidelity references instructions pages"),
        ("/config", "policy handler frames"),
        ("/counts", "references true_faults false_faults cold_faults evictions dirty_evictions walk_sum walk_max"),
        ("/counts", "forced_evictions icache_lookups icache_misses tlb_misses page_loads page_moves"),
        ("/time_ps", "total paging idle"),
        ("/time_ps/stages", "pre_process get_freeframe load_stopover trans_host_mem update_mmu post_process"),
        ("/fault_latency_ps/true", "mean p50 p99 p999 max"),
        ("/host", "seconds references_per_second"),
    ] {
        for key in keys.split(' ') {
            let there = result.pointer(&format!("{part}/{key}")).is_some_and(|value| !value.is_null());
            assert!(there, "{part}/{key} is missing");
        }
    }
    assert!(result.get("energy_pj").is_none(), "energy is not observable here and must be absent");
}

#[test]
fn a_sweep_is_an_array_with_the_policy_outermost_and_each_config_reads_back() {
    let trace = shipped("bzip2.parquet");
    let policies = "clock,pa-clock:budget=13,lru";
    let sweep = format!("sim {trace} --system swl --policy {policies} --handler sequential,parallel --frames 64,128");
    let all = json(&sweep);
    let shown: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["config"]["policy"].as_str().unwrap(), r["config"]["frames"].as_u64().unwrap()))
        .collect();
    assert_eq!(shown.len(), 12);
    assert_eq!(shown[0], ("clock:insert-bit=set", 64));
    assert_eq!(shown[1], ("clock:insert-bit=set", 128));
    assert!(shown[4].0.starts_with("pa-clock"));
    let (files, one) = (Folder::new(), &all[5]);
    let again = json(&format!("sim {trace} -c {}", files.write("c.toml", toml(&one["config"]))));
    assert_eq!(again["counts"], one["counts"]);
    assert_eq!(again["config"], one["config"]);
}

/// A result's settings as a configuration file.
fn toml(config: &Value) -> String {
    toml::to_string(config).unwrap()
}

#[test]
fn a_journal_replays_to_the_same_commands_and_a_forged_one_does_not() {
    let (files, trace) = (Folder::new(), shipped("render.parquet"));
    let journal = files.at("j");
    for policy in coldframe_core::policy::texts(3) {
        done(&format!("sim {trace} --stream ID --page 4KiB --frames 20 --policy {policy} --journal {journal}"));
        assert!(json(&format!("replay {journal}"))["commands"].as_u64().unwrap() > 1000, "{policy}");
    }
    let bytes = std::fs::read(&journal).unwrap();
    let text = String::from_utf8_lossy(&bytes[..300]).into_owned();
    let forged = text.lines().find(|line| line.starts_with("policy=")).unwrap();
    let at = text.find(forged).unwrap();
    let mut other = bytes.clone();
    other.splice(at..at + forged.len(), *b"policy=sieve");
    let failed = |bytes: &[u8]| {
        let output = run(&format!("replay {}", files.write("forged", bytes)));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = failed(&other);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("entries that agree"), "{message}");
    let last_resume = bytes.iter().rposition(|byte| *byte == 38).unwrap();
    assert_eq!(failed(&bytes[..last_resume]).0, Some(1), "the last command is missing");
    assert_eq!(failed(&bytes[..bytes.len() - 1]).0, Some(3), "the last command is cut in two");
    assert_eq!(failed(&bytes[..100]).0, Some(3));
    assert_eq!(failed(b"not a journal").0, Some(3));
}

/// Two pages are swapped out, swapped in and freed. Blocks have two slots.
const SWAP: &str =
    "ts_ns,op,slot,pid\n0,out,7,1\n10,out,8,1\n20,in,7,1\n30,in,8,1\n40,free,7,1\n50,out,9,2\n1000,mark,,\n";

#[test]
fn a_swap_trace_is_simulated_with_the_counts_that_its_few_lines_have() {
    let files = Folder::new();
    let trace = files.write("swap.csv", SWAP);
    let area = "--blocks 9 --swap-window block:2 --set swap.slots_per_block=2";
    let result = json(&format!("sim {trace} --system lobi {area}"));
    // The page in slot 8 is read with its neighbour in the block, and is a hit.
    for (key, expected) in [
        ("swap_outs", 3),
        ("touches", 2),
        ("demand_reads", 1),
        ("reads", 2),
        ("read_ahead_hits", 1),
        ("read_ahead_wasted", 0),
        ("invalidations", 1),
        ("valid_slots_max", 2),
        ("erases", 0),
        ("refused", 0),
    ] {
        assert_eq!(result["counts"][key], expected, "{key}");
    }
    assert_eq!((&result["cost"], &result["life_years"]), (&2.into(), &Value::Null));
    let info = json(&format!("trace info {trace}"));
    assert_eq!((&info["swap_outs"], &info["processes"][0]["pid"]), (&3.into(), &1.into()));
}

#[test]
fn the_paging_engine_writes_to_a_swap_area() {
    let trace = shipped("sqlite.parquet");
    let of = |blocks: &str| json(&format!("sim {trace} --system lobi --ram 25% --blocks {blocks}"));
    let (small, large) = (of("8"), of("2048"));
    assert_eq!(small["counts"], large["counts"], "what is paged does not depend on where it goes");
    assert_eq!(large["swap"]["programs"], large["counts"]["dirty_evictions"]);
    assert_eq!((&large["swap"]["copies"], &large["swap"]["erases"]), (&0.into(), &0.into()));
}

#[test]
fn the_readings_of_the_front_end_are_nested() {
    // Reading C sets fewer bits than A, and D more; the look-ups are the same.
    let trace = shipped("render.parquet");
    let run = |reading: &str| {
        json(&format!("sim {trace} --system swl --policy fifo --ram 64KiB --set front_end.reading={reading}"))
    };
    let (a, c, d) = (run("A"), run("C"), run("D"));
    let count = |v: &Value, key: &str| v["counts"][key].as_u64().unwrap();
    for other in [&c, &d] {
        assert_eq!(count(&a, "icache_misses"), count(other, "icache_misses"));
    }
    assert_eq!(count(&a, "references"), count(&a, "icache_misses"));
    assert!(count(&c, "references") < count(&a, "references"));
    assert_eq!(count(&d, "references"), count(&d, "icache_lookups"));
    // FIFO uses no bits, so the reading changes only what a cache hit hides.
    assert_eq!(count(&a, "true_faults"), count(&c, "true_faults"));
}

#[test]
fn a_limit_counts_accesses_below_the_front_end() {
    let trace = shipped("render.parquet");
    let result = json(&format!("sim {trace} --system swl --ram 64KiB --set limit.accesses=500"));
    assert_eq!(result["counts"]["icache_misses"], 500);
    let result = json(&format!("sim {trace} --ram 64KiB --set limit.accesses=500"));
    assert_eq!(result["counts"]["references"], 500);
}

/// The first thing with a name is found by it, so a second one could never be found. One flag takes both policies and
/// oracles.
#[test]
fn no_name_is_of_two_things() {
    let all = json("policies");
    let of = |kind: &str| -> Vec<String> {
        all[kind].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_string()).collect()
    };
    let devices: Vec<String> = coldframe_sheet::sheet::all().into_iter().map(|sheet| sheet.name).collect();
    let backings = coldframe_experiment::systems::backing::all().map(|backing| backing.name.to_string()).collect();
    for names in [[of("policies"), of("oracles")].concat(), of("handlers"), of("systems"), devices, backings] {
        assert!(names.len() > 2, "{names:?}");
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "`{name}` is there twice");
        }
    }
}

#[test]
fn a_delayed_run_carries_its_ledger_and_its_config_reads_back() {
    let trace = shipped("djpeg.parquet");
    let one = json(&format!("sim {trace} --system ddb --ram 12KiB --set limit.accesses=20000"));
    let number = |path: &str| one.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is missing"));
    let terms = ["page_load", "page_move", "main_read", "xip_read", "main_write"];
    for part in ["/ledger/time_ps", "/energy_pj"] {
        let sum: u64 = terms.iter().map(|term| number(&format!("{part}/{term}"))).sum();
        assert_eq!(sum, number(&format!("{part}/paging")));
    }
    let n = |name: &str| number(&format!("/ledger/counts/{name}"));
    assert_eq!(n("N_rdmain") + n("N_rdxip") + n("N_wrmain"), 20_000, "the limit counts accesses below the caches");
    assert_eq!((n("N_pm"), n("N_pmdual") + 1), (0, n("N_pl")), "all moves are hidden and one page is still held");
    assert!(n("N_rdxip") > 0);
    // Table 3: a load takes 29.33 us and 1295.48 nJ. The clock, which does not use the equations, gives the same.
    assert_eq!(number("/ledger/time_ps/page_load"), 29_330_000 * n("N_pl"));
    assert_eq!(number("/energy_pj/page_load"), 1_295_480 * n("N_pl"));
    assert_eq!(number("/ledger/time_ps/total"), number("/time_ps/total"));
    let files = Folder::new();
    let again = json(&format!("sim {trace} -c {}", files.write("c.toml", toml(&one["config"]))));
    assert_eq!(again["ledger"], one["ledger"]);
    assert_eq!(again["config"], one["config"]);
}

#[test]
fn a_delayed_runs_journal_replays_with_writes_and_more_buffers() {
    let (files, trace) = (Folder::new(), shipped("djpeg.parquet"));
    let journal = files.at("j");
    for handler in ["delayed-dual-buffering", "delayed-dual-buffering-search-first"] {
        for buffers in [1, 2, 4] {
            let how = format!("--system ddb --handler {handler} --policy pa-fifo-sc:valid=50% --ram 24KiB");
            let sets = format!("--set machine.buffers={buffers} --set front_end.paged=all");
            done(&format!("sim {trace} {how} {sets} --journal {journal}"));
            let replayed = json(&format!("replay {journal}"));
            assert!(replayed["commands"].as_u64().unwrap() > 1000, "{handler}, {buffers} buffers");
        }
    }
}

#[test]
fn a_sheet_without_energies_leaves_the_energy_out_and_says_so() {
    let files = Folder::new();
    let sheet = std::fs::read_to_string(shipped("../sheets/kfg5616.toml")).unwrap();
    let (times, _) = sheet.split_once("[energy]").unwrap();
    let path = files.write("plain.toml", times);
    let one = json(&format!("sim {} --system ddb --ram 12KiB --device {path}", shipped("djpeg.parquet")));
    assert!(one.get("energy_pj").is_none() && one["ledger"]["time_ps"]["total"].as_u64() > Some(0));
    assert!(one["notes"].to_string().contains("energy.load"), "{}", one["notes"]);
}
