//! `advise` and `check` as a user sees them. The answer's own configuration gives its numbers, limits hold, and
//! questions without an answer are refused.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn coldframe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coldframe-lab"))
        .args(args)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "240")
        .output()
        .expect("the command runs")
}

fn shipped(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name).display().to_string()
}

/// The exit code and the answer.
fn json(args: &[&str]) -> (i32, Value) {
    let output = coldframe(&[args, &["--format", "json"]].concat());
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("no signal"), value)
}

fn refused(args: &[&str]) -> (i32, String) {
    let output = coldframe(args);
    (output.status.code().expect("no signal"), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Two policies, so a search takes a second.
const FEW: [&str; 5] = ["--policy", "clock,sieve", "--handler", "parallel", "--no-cache"];

#[test]
fn sim_with_the_advised_configuration_gives_the_advised_numbers_and_less_ram_misses() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml").display().to_string();
    let trace = shipped("bzip2.parquet");
    let (code, advice) = json(&[&["advise", &trace, "--max-slowdown", "5%", "-o", &config], &FEW[..]].concat());
    assert_eq!(code, 0);
    let best = &advice["best"];
    let (code, result) = json(&["sim", &trace, "-c", &config]);
    assert_eq!(code, 0);
    assert_eq!(result["counts"]["true_faults"], best["true_faults"]);
    assert_eq!(result["time_ps"]["paging"], best["paging_ps"]);
    assert_eq!(result["time_ps"]["idle"], best["own_time_ps"]);
    assert_eq!(result["fault_latency_ps"]["true"]["p99"], best["p99_ps"]);
    // The slowdown by hand: the time in faults, less that with RAM for all pages, as a share of the program's own time.
    let whole = ["sim", &trace, "-c", &config, "--ram", "100%"];
    let paging = |value: &Value| value["time_ps"]["paging"].as_f64().unwrap();
    let extra = paging(&result) - paging(&json(&whole).1);
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
fn check_says_yes_or_no_and_names_what_binds() {
    let trace = shipped("bzip2.parquet");
    let answer = |limits: &[&str]| {
        let output = coldframe(&[&["check", &trace], limits, &FEW[..]].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = answer(&["--max-slowdown", "5%", "--max-ram", "360KiB"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("yes: ") && text.lines().count() == 1, "{text}");
    let (code, text) = answer(&["--max-slowdown", "5%", "--max-ram", "16KiB"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("no: ") && text.contains("slowdown is") && text.contains("above 5 %"), "{text}");
    // A fault takes a load of at least 25 us.
    let (code, text) = answer(&["--max-p99", "1us"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("p99 of a fault is"), "{text}");
}

#[test]
fn a_limit_that_trace_or_sheet_cannot_answer_is_refused_with_what_it_needs() {
    let trace = shipped("bzip2.parquet");
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.parquet").display().to_string();
    let swap = shipped("swap-desktop.csv.zst");
    for (args, code, message) in [
        (vec!["advise", &trace, "--max-energy", "1mJ", "--device", "LOBI-NAND"], 2, "energy.load"),
        (
            vec!["advise", &trace, "--read-ahead", "8", "--handler", "delayed-dual-buffering", "--set", "page=2KiB"],
            2,
            "machine.read_ahead",
        ),
        (vec!["advise", &trace, "--min-life", "5y", "--device", "KFG5616"], 2, "endurance.cycles"),
        (vec!["advise", &trace, "--max-slowdown", "-3%"], 2, "max-slowdown"),
        (vec!["advise", &trace, "--max-p99", "200"], 2, "unit"),
        (vec!["advise", &trace, "--min-life", "long"], 2, "5y"),
        (vec!["check", &trace, "--max-ram", "1KiB"], 2, "less than one page of 4KiB"),
        (vec!["advise", &trace, "--policy", "opt"], 2, "knows the future"),
        (vec!["advise", &trace, "--system", "swl", "--program-time", "1s"], 2, "for the front end none"),
        (vec!["advise", &trace, "--policy", "clok"], 2, "did you mean `clock`"),
        (vec!["advise", &trace, "--device", "nothing"], 2, "nothing"),
        (vec!["advise", &swap], 3, "references"),
        (vec!["advise", &absent], 5, "absent.parquet"),
    ] {
        let (exit, text) = refused(&args);
        assert_eq!(exit, code, "{args:?}: {text}");
        assert!(text.contains(message), "{args:?}: {text}");
    }
}

#[test]
fn energy_and_life_are_answered_on_the_default_sheet_and_are_its_numbers() {
    let trace = shipped("game.parquet");
    let limits = ["--max-slowdown", "50%", "--max-energy", "1J", "--min-life", "0.0001y"];
    let (code, advice) = json(&[&["advise", &trace], &limits[..], &FEW[..]].concat());
    assert_eq!((code, &advice["best"]["config"]["device"]), (0, &Value::from("NAND01GW3B2B")));
    let best = &advice["best"];
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
    let (code, text) = {
        let output = coldframe(&[&["check", &trace, "--max-energy", "1nJ"], &FEW[..]].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(code == Some(1) && text.contains("energy is"), "{text}");
}

#[test]
fn several_tasks_are_scheduled_prefetch_is_searched_and_sim_repeats_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (mix, config) = (path("mix.parquet"), path("config.toml"));
    let (bzip2, game) = (shipped("bzip2.parquet"), shipped("game.parquet"));
    let made =
        coldframe(&["trace", "mix", "--task", &format!("{bzip2}*2"), "--task", &game, "--slice", "20000", "-o", &mix]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let limits = [
        "--system",
        "sap",
        "--policy",
        "second-chance",
        "--handler",
        "sequential",
        "--no-cache",
        "--work",
        "1000000000000",
    ];
    let (code, advice) = json(&[&["advise", &mix, "--max-slowdown", "40%", "-o", &config], &limits[..]].concat());
    assert_eq!(code, 0, "{advice}");
    let names: Vec<&str> = advice["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for when in ["off", "75", "50"] {
        assert!(names.iter().any(|name| name.ends_with(&format!("cfs, prefetch {when}"))), "{names:?}");
    }
    let (best, tasks) = (&advice["best"], advice["regions"].as_array().unwrap());
    assert_eq!(tasks.len(), 3);
    let (code, all) = json(&["sim", &mix, "-c", &config]);
    assert_eq!(code, 0);
    assert_eq!(all[0]["counts"]["major_faults"], best["true_faults"]);
    assert_eq!(all[0]["time_ps"]["total"].as_u64(), sum(best, ["own_time_ps", "paging_ps"]));
    // Each reference takes 100 ns, which the answer assumes.
    assert_eq!(best["own_time_ps"].as_u64(), all[0]["references"].as_u64().map(|n| n * 100_000));
    for (args, message) in [
        (vec!["advise", &bzip2, "--prefetch", "75"], "give the system sap"),
        (vec!["advise", &mix, "--system", "drswap"], "coldframe-lab sim --system drswap"),
        (vec!["advise", &mix, "--system", "sap", "--read-ahead", "16"], "leave out the system sap"),
        (vec!["advise", &mix, "--system", "sap", "--prefetch", "101"], "tasks.prefetch"),
        (vec!["advise", &mix, "--system", "sap", "--scheduler", "cfz"], "did you mean `cfs`"),
    ] {
        let (code, text) = refused(&args);
        assert!(code == 2 && text.contains(message), "{args:?}: {code} {text}");
    }
}

fn sum(of: &Value, fields: [&str; 2]) -> Option<u64> {
    fields.iter().map(|field| of[field].as_u64()).sum()
}

#[test]
fn a_swap_area_of_a_known_size_is_simulated_under_every_collector_and_as_linux_hands_out_slots() {
    let trace = shipped("bzip2.parquet");
    let limits =
        ["--max-slowdown", "20%", "--swap-size", "4MiB", "--policy", "clock", "--handler", "parallel", "--no-cache"];
    let (code, advice) = json(&[&["advise", &trace], &limits[..]].concat());
    assert_eq!(code, 0);
    let names: Vec<&str> = advice["curves"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for part in ["collector greedy", "collector cost-benefit", "collector cost-age-times", "slots of linux"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
    }
    // A system without a front end also has a program time.
    let lobi = ["--system", "lobi", "--device", "NAND01GW3B2B", "--program-time", "1s"];
    assert_eq!(json(&[&["advise", &trace], &limits[..], &lobi[..]].concat()).0, 0);
    // 4 MiB are 32 blocks of the sheet's 128 KiB.
    let swap = &advice["best"]["config"]["swap"];
    assert_eq!((swap["blocks"].as_str(), swap["slots_per_block"].as_u64()), (Some("32"), Some(32)));
}

#[test]
fn read_ahead_is_searched_and_the_advised_run_is_in_the_answer() {
    let trace = shipped("game.parquet");
    let (_, both) = json(&[&["advise", &trace, "--max-slowdown", "50%"], &FEW[..]].concat());
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
fn what_the_cache_knows_is_the_same_and_half_a_line_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().display().to_string();
    let trace = shipped("bzip2.parquet");
    let ask = || json(&["advise", &trace, "--policy", "clock", "--handler", "parallel", "--cache", &cache]).1;
    let (first, second) = (ask(), ask());
    assert_eq!(first["best"], second["best"]);
    assert_eq!(first["search"]["cached"], 0);
    assert_eq!(second["search"]["cached"], second["search"]["configurations"]);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 40]).unwrap();
    let third = ask();
    assert_eq!(first["best"], third["best"]);
    assert!(third["search"]["cached"].as_u64() < second["search"]["cached"].as_u64());
}

#[test]
fn halving_finds_no_smaller_ram_than_trying_all() {
    let trace = shipped("bzip2.parquet");
    let ask = |work: &str| json(&["advise", &trace, "--handler", "parallel", "--no-cache", "--work", work]).1;
    let (halved, all) = (ask("1"), ask("100000000000"));
    assert_eq!(
        (halved["search"]["exhaustive"].as_bool(), all["search"]["exhaustive"].as_bool()),
        (Some(false), Some(true))
    );
    let ram = |advice: &Value| advice["best"]["ram_bytes"].as_u64().unwrap();
    assert!(ram(&halved) >= ram(&all));
    assert!(ram(&halved) > halved["search"]["opt_bound_bytes"].as_u64().unwrap());
}
