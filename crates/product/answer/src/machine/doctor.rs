//! What this machine allows.

use std::path::Path;

use crate::run::rights::{examine, latency};
pub use crate::run::rights::{Finding, Health, RIGHT};
use schemars::JsonSchema;
use serde::Serialize;

use crate::run::guards::left;
use crate::run::program::find_preload;
use crate::SCHEMA_VERSION;

/// What this machine allows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Doctor {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Whether `coldframe run` works here with our pager.
    pub run_works: bool,
    /// What was examined.
    pub findings: Vec<Finding>,
}

/// Examines this machine, with this folder for the swap file.
pub fn doctor(backing: &Path) -> Doctor {
    let mut findings: Vec<Finding> = examine(backing);
    if !findings.iter().any(|finding| finding.name == "swap file" && finding.health == Health::Missing) {
        findings.push(latency(backing));
    }
    findings.push(preload());
    findings.extend(left().map(|left| Finding {
        name: "guards",
        health: Health::Warning,
        state: format!("one was killed, and has left {}", left.what),
        remedy: left.undo,
    }));
    let run_works = findings.iter().all(|finding| finding.health != Health::Missing);
    Doctor { schema_version: SCHEMA_VERSION, run_works, findings }
}

fn preload() -> Finding {
    let (health, state, remedy) = match find_preload() {
        Ok(path) => (Health::Good, path.display().to_string(), ""),
        Err(why) => (Health::Missing, why.to_string(), "cargo build --release -p coldframe-preload"),
    };
    Finding { name: "preload library", health, state, remedy: remedy.into() }
}
