//! Runs over a shipped trace, as a caller in another language makes them.

use std::path::PathBuf;

use coldframe_core::policy::PolicyChoice;
use coldframe_experiment::string::{run, run_with_policy};
use coldframe_experiment::{ExperimentError, Settings};

fn trace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/traces/cjpeg.parquet"))
}

fn settings(policy: Option<&str>) -> Settings {
    Settings { policy: policy.map(Into::into), frames: Some(12), ..Settings::default() }
}

#[test]
fn who_watches_a_run_can_end_it() {
    let mut reports = Vec::new();
    let stopped = run(&trace(), &[settings(None)], &mut |p| {
        reports.push((p.done, p.total));
        p.stop();
    });
    let error = stopped.expect_err("it was stopped");
    assert!(matches!(error, ExperimentError::Stopped) && error.code() == 130);
    assert!(matches!(reports[..], [(rows, total)] if 0 < rows && rows < total), "one block, and no more: {reports:?}");
}

#[test]
fn a_policy_object_decides_as_the_policy_of_its_name() {
    let choice = PolicyChoice::parse("sieve").unwrap();
    let mut make = |frames, pages| choice.build(frames, pages).unwrap();
    let object = run_with_policy(&trace(), &settings(None), ("mine", &mut make), &mut |_| ()).unwrap();
    let named = run(&trace(), &[settings(Some("sieve"))], &mut |_| ()).unwrap().remove(0);
    assert_eq!((object.policy.as_str(), object.config.settings.policy.as_deref()), ("mine", Some("mine")));
    assert_eq!(object.lane().unwrap().counts, named.lane().unwrap().counts);
    let error = run_with_policy(&trace(), &settings(Some("fifo")), ("mine", &mut make), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("leave one of them out"), "{error}");
}
