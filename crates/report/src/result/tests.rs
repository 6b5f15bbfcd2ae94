//! A result of each driver survives being written and read.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::SimResult;
use crate::settings::Settings;
use crate::{experiment, foreground, swap, tasks};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name)
}

fn settings(sets: &[&str]) -> [Settings; 1] {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_string()).collect();
    [Settings::read(None, &sets).unwrap()]
}

/// Written, read, and written again: nothing is lost, through a file's text, too.
fn survives(written: &Value, driver: &str) {
    assert_eq!(written["driver"], driver);
    let read: SimResult = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(&read.json(), written);
    assert_eq!(read.in_force().unwrap().system, written["config"]["system"].as_str().map(Into::into));
    let text: SimResult = serde_json::from_str(&written.to_string()).unwrap();
    assert_eq!(text.json()["counts"], written["counts"]);
}

fn one_string(trace: &str, sets: &[&str]) -> Value {
    experiment::run(&data(trace), &settings(sets), &mut |_| ()).unwrap()[0].json()
}

#[test]
fn one_string_of_references() {
    for sets in [
        &["ram=50%", "system=ddb"][..],
        &["ram=50%", "system=swl"],
        &["ram=25%", "system=lobi"],
        &["ram=50%", "policy=opt"],
        &["ram=100%", "policy=clock"],
    ] {
        survives(&one_string("fft.parquet", sets), "string");
    }
}

#[test]
fn tasks_under_a_scheduler() {
    let all = tasks::run(&data("memload.parquet"), &settings(&["ram=50%", "system=sap"]), &mut |_, _| Ok(())).unwrap();
    survives(&tasks::json(&all)[0], "tasks");
}

#[test]
fn tasks_in_the_foreground() {
    let all = settings(&["ram=50%", "system=drswap"]);
    let stored = foreground::simulate(&data("memload.parquet"), &all, &mut |_| ()).unwrap();
    survives(&foreground::json(&stored)[0], "foreground");
}

#[test]
fn a_swap_area_under_a_swap_trace() {
    let path = data("swap-desktop.csv.zst");
    let all = swap::run(&path, &settings(&["swap.blocks=1024"]), &mut |_, _| {}).unwrap();
    survives(&swap::json(&path, &all).unwrap(), "swap-trace");
}
