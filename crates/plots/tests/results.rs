//! A result of each driver is unchanged after writing and reading.

use std::path::{Path, PathBuf};

use coldframe_experiment::drive;
use coldframe_experiment::settings::Settings;
use coldframe_experiment::sim_result::SimResult;
use coldframe_plots::html::Page;
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name)
}

fn settings(sets: &[&str]) -> [Settings; 1] {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_string()).collect();
    [Settings::read(None, &sets).unwrap()]
}

/// Writes, reads and writes again: nothing is lost, also through a file's text.
fn survives(written: &Value, driver: &str) {
    assert_eq!(written["driver"], driver);
    let read: SimResult = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(&read.json(), written);
    assert_eq!(read.config.settings.system.as_deref(), written["config"]["system"].as_str());
    let text: SimResult = serde_json::from_str(&written.to_string()).unwrap();
    assert_eq!(text.json()["counts"], written["counts"]);
}

#[test]
fn a_result_of_another_shape_is_refused_by_file_and_reason() {
    let written = simulated("fft.parquet", &["ram=50%", "policy=clock"]);
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut changed = written.clone();
        change(&mut changed);
        let error = Page::default().add("result.json", changed.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains("result.json") && error.contains("--format json"), "{error}");
        error
    };
    assert!(refused(&|run| run["host"] = Value::Null).contains("expected struct Host"));
    assert!(refused(&|run| drop(run.as_object_mut().unwrap().remove("host"))).contains("missing field `host`"));
    assert!(refused(&|run| run["driver"] = "steam".into()).contains("unknown variant `steam`"));
    assert!(refused(&|run| run["config"]["policy"] = 7.into()).contains("invalid type: integer `7`"));
}

fn simulated(trace: &str, sets: &[&str]) -> Value {
    let path = data(trace);
    let outcomes = drive::run(&path, &settings(sets), None, &mut |_| ()).unwrap();
    outcomes.results(&path).unwrap()[0].json()
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
        survives(&simulated("fft.parquet", sets), "string");
    }
}

#[test]
fn tasks_under_a_scheduler() {
    survives(&simulated("memload.parquet", &["ram=50%", "system=sap"]), "tasks");
}

#[test]
fn tasks_in_the_foreground() {
    survives(&simulated("memload.parquet", &["ram=50%", "system=drswap"]), "tasks");
}

#[test]
fn a_swap_area_under_a_swap_trace() {
    survives(&simulated("swap-desktop.csv.zst", &["swap.blocks=1024"]), "swap-trace");
}
