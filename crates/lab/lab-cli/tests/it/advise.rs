//! `advise` and `check` as a user sees them. The answer's own configuration gives its numbers, and limits hold.

use coldframe_toolbox::command::{done, json, run, shipped, Folder};
use serde_json::Value;

/// Two policies, so a search takes a second.
const FEW: &str = "--policy clock,sieve --handler parallel";

#[test]
fn sim_with_the_advised_configuration_gives_the_advised_numbers_and_less_ram_misses() {
    let (folder, trace) = (Folder::new(), shipped("bzip2.parquet"));
    let config = folder.at("config.toml");
    let advice = json(&format!("advise {trace} --max-slowdown 5% -o {config} {FEW}"));
    let best = &advice["best"];
    let result = json(&format!("sim {trace} -c {config}"));
    assert_eq!(result["counts"]["true_faults"], best["true_faults"]);
    assert_eq!(result["time_ps"]["paging"], best["paging_ps"]);
    assert_eq!(result["time_ps"]["idle"], best["own_time_ps"]);
    assert_eq!(result["fault_latency_ps"]["true"]["p99"], best["p99_ps"]);
    // The slowdown by hand: the time in faults, less that with RAM for all pages, as a share of the program's own time.
    let whole = json(&format!("sim {trace} -c {config} --ram 100%"));
    let paging = |value: &Value| value["time_ps"]["paging"].as_f64().unwrap();
    let extra = paging(&result) - paging(&whole);
    let slowdown = 100.0 * extra / result["time_ps"]["idle"].as_f64().unwrap();
    assert!((slowdown - best["slowdown_percent"]["high"].as_f64().unwrap()).abs() < 1e-9 && slowdown <= 5.0);
    // The next smaller size exceeds the limit. It is one page smaller at this footprint.
    let below = &advice["next_smaller"];
    assert!(below["slowdown_percent"]["high"].as_f64().unwrap() > 5.0);
    assert_eq!(best["frames"].as_u64().unwrap() - below["frames"].as_u64().unwrap(), 1);
    // OPT's bound is below the answer.
    assert!(advice["search"]["opt_bound_bytes"].as_u64().unwrap() < best["ram_bytes"].as_u64().unwrap());
    // The slowdown falls along the front.
    let front: Vec<f64> =
        advice["front"].as_array().unwrap().iter().map(|c| c["slowdown_percent"]["high"].as_f64().unwrap()).collect();
    assert!(front.len() > 3 && front.windows(2).all(|two| two[1] < two[0]), "{front:?}");
    assert!(advice["regions"][0]["share"].as_f64().unwrap() >= advice["regions"][1]["share"].as_f64().unwrap());
}

#[test]
fn a_limit_that_no_size_meets_is_a_no() {
    let trace = shipped("bzip2.parquet");
    let code = |limits: &str| run(&format!("advise {trace} {limits} {FEW}")).status.code();
    assert_eq!(code("--max-slowdown 5% --max-ram 360KiB"), Some(0));
    // A fault takes a load of at least 25 us.
    for limits in ["--max-slowdown 5% --max-ram 16KiB", "--max-p99 1us", "--max-energy 1nJ"] {
        assert_eq!(code(limits), Some(1), "{limits}");
    }
}

#[test]
fn energy_and_life_are_answered_on_the_default_sheet_and_are_its_numbers() {
    let trace = shipped("game.parquet");
    let limits = "--max-slowdown 50% --max-energy 1J --min-life 0.0001y";
    let advice = json(&format!("advise {trace} {limits} {FEW}"));
    let best = &advice["best"];
    assert_eq!(best["config"]["device"], "NAND01GW3B2B");
    let of = |name: &str| best[name].as_f64().unwrap();
    let (loads, writes) = (of("page_loads"), of("page_writes"));
    assert!(writes > 0.0);
    // By the sheet's nanojoules, a page of 4 KiB on pages of 2 KiB: load 750, transfer 1843.2, program 6000; 60000 for
    // each 32 pages erased.
    let nj = 2.0 * loads * (750.0 + 1843.2) + 2.0 * writes * (1843.2 + 6000.0) + (writes / 32.0).ceil() * 60_000.0;
    let high = best["energy_joules"]["high"].as_f64().unwrap();
    assert!((high / (nj * 1e-9) - 1.0).abs() < 1e-9, "{high} {nj}");
    // 100,000 times 128 MiB, at the run's rate of writes.
    let seconds = (of("own_time_ps") + of("paging_ps")) / 1e12;
    let years = 100_000.0 * f64::from(128 << 20) / (writes * 4096.0 / seconds) / (365.25 * 86_400.0);
    let life = best["life_years"]["high"].as_f64().unwrap();
    assert!((life / years - 1.0).abs() < 1e-9, "{life} {years}");
}

#[test]
fn several_tasks_are_scheduled_prefetch_is_searched_and_sim_repeats_the_answer() {
    let folder = Folder::new();
    let (mix, config) = (folder.at("mix.parquet"), folder.at("config.toml"));
    let (bzip2, game) = (shipped("bzip2.parquet"), shipped("game.parquet"));
    done(&format!("trace mix --task {bzip2}*2 --task {game} --slice 20000 -o {mix}"));
    let how = "--system sap --policy second-chance --handler sequential --work 1000000000000";
    let advice = json(&format!("advise {mix} --max-slowdown 40% -o {config} {how}"));
    let names: Vec<&str> = advice["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for when in ["off", "75", "50"] {
        assert!(names.iter().any(|name| name.ends_with(&format!("cfs, prefetch {when}"))), "{names:?}");
    }
    let (best, tasks) = (&advice["best"], advice["regions"].as_array().unwrap());
    assert_eq!(tasks.len(), 3);
    let all = json(&format!("sim {mix} -c {config}"));
    assert_eq!(all[0]["counts"]["major_faults"], best["true_faults"]);
    assert_eq!(all[0]["time_ps"]["total"].as_u64(), sum(best, ["own_time_ps", "paging_ps"]));
    // Each reference takes 100 ns, which the answer assumes.
    assert_eq!(best["own_time_ps"].as_u64(), all[0]["references"].as_u64().map(|n| n * 100_000));
}

fn sum(of: &Value, fields: [&str; 2]) -> Option<u64> {
    fields.iter().map(|field| of[field].as_u64()).sum()
}

#[test]
fn a_swap_area_of_a_known_size_is_simulated_under_every_collector_and_as_linux_hands_out_slots() {
    let trace = shipped("bzip2.parquet");
    let limits = "--max-slowdown 20% --swap-size 4MiB --policy clock --handler parallel";
    let advice = json(&format!("advise {trace} {limits}"));
    let names: Vec<&str> = advice["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for part in ["collector greedy", "collector cost-benefit", "collector cost-age-times", "slots of linux"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
    }
    // A system without a front end also has a program time.
    done(&format!("advise {trace} {limits} --system lobi --device NAND01GW3B2B --program-time 1s"));
    // 4 MiB are 32 blocks of the sheet's 128 KiB.
    let swap = &advice["best"]["config"]["swap"];
    assert_eq!((swap["blocks"].as_str(), swap["slots_per_block"].as_u64()), (Some("32"), Some(32)));
}

#[test]
fn read_ahead_is_searched_and_the_advised_run_is_in_the_answer() {
    let trace = shipped("game.parquet");
    let both = json(&format!("advise {trace} --max-slowdown 50% {FEW}"));
    let name = |curve: &Value| curve["name"].as_str().unwrap().to_string();
    let names: Vec<String> = both["curves"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(names.iter().filter(|name| name.contains("read-ahead 16")).count(), 2, "{names:?}");
    // Pages that are read ahead cause no fault of their own, so the same policy has fewer faults at the same size.
    let faults = |ahead: bool| -> u64 {
        let curves = both["curves"].as_array().unwrap().iter();
        let mut own =
            curves.filter(|c| c["policy"] == "clock:insert-bit=set" && name(c).contains("read-ahead") == ahead);
        let points = own.next().unwrap()["points"].as_array().unwrap().clone();
        points.iter().map(|point| point[1].as_u64().unwrap()).sum()
    };
    assert!(faults(true) < faults(false), "{} {}", faults(true), faults(false));
    assert_eq!(both["run"]["counts"]["true_faults"], both["best"]["true_faults"]);
    assert_eq!(both["run"]["config"], both["best"]["config"]);
}

#[test]
fn halving_finds_no_smaller_ram_than_trying_all() {
    let trace = shipped("bzip2.parquet");
    let ask = |work: u64| json(&format!("advise {trace} --handler parallel --work {work}"));
    let (halved, all) = (ask(1), ask(100_000_000_000));
    assert_eq!(
        (halved["search"]["exhaustive"].as_bool(), all["search"]["exhaustive"].as_bool()),
        (Some(false), Some(true))
    );
    let ram = |advice: &Value| advice["best"]["ram_bytes"].as_u64().unwrap();
    assert!(ram(&halved) >= ram(&all));
    assert!(ram(&halved) > halved["search"]["opt_bound_bytes"].as_u64().unwrap());
}
