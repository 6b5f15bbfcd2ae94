//! Information about a trace.

use std::path::{Path, PathBuf};

use coldframe_experiment::info::Info;
use coldframe_experiment::{resolve, string, ExperimentError};
use coldframe_store::Reader;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::{raise, raise_trace};
use crate::settings::checked;

/// Origin and totals of a trace, with the path, rows and bytes of its file, as JSON.
#[pyfunction]
pub fn provenance(path: PathBuf) -> PyResult<String> {
    let reader = Reader::open(&path).map_err(raise_trace)?;
    let mut value = serde_json::to_value(reader.provenance()).expect("provenance is plain data");
    value["path"] = json!(path);
    value["rows"] = reader.rows().into();
    value["bytes"] = reader.bytes().into();
    Ok(value.to_string())
}

/// What `coldframe-lab trace info --format json` prints.
#[pyfunction]
pub fn info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Info::read(&path)).map(|info| serde_json::to_string(&info).expect("info is plain data")).map_err(raise)
}

/// The hash of a file, in hexadecimal.
#[pyfunction]
pub fn sha256(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| string::sha256(&path)).map_err(raise)
}

/// The number of different pages that a trace touches under these settings.
#[pyfunction]
pub fn footprint(py: Python<'_>, path: PathBuf, settings: &str) -> PyResult<usize> {
    let settings = checked(settings).map_err(raise)?;
    py.detach(|| pages(&path, &settings)).map_err(raise)
}

fn pages(path: &Path, settings: &coldframe_experiment::Settings) -> Result<usize, ExperimentError> {
    let one = coldframe_experiment::Settings { ram: None, frames: Some(1), ..settings.clone() };
    let trace = Reader::open(path)?.provenance().clone();
    let plan = resolve::string(&one, &trace, &mut |_| Ok(1))?;
    string::pages_touched(path, &plan.front)
}
