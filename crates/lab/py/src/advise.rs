//! Advice.

use std::path::PathBuf;

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_experiment::ExperimentError;
use coldframe_plots::board_answer;
use coldframe_search::limits::{percent, years};
use coldframe_search::{json, Limits, Question};
use coldframe_sheet::quantity::{self, QuantityError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::raise;
use crate::settings::{checked, shown};
use crate::watch::watched;

/// The answer: as `coldframe-lab advise --format json` prints it, as one sentence, as the whole text, and the advised
/// settings if there are some. `question_json`: limits and lists as JSON.
#[pyfunction]
#[pyo3(signature = (path, config, question_json, progress=None))]
pub fn advise(
    py: Python<'_>,
    path: PathBuf,
    config: &str,
    question_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, String, Option<String>)> {
    let question = question(config, question_json).map_err(raise)?;
    let advice = watched(py, progress, |tell| coldframe_search::advise(&path, &question, tell))?;
    let settings = advice.best.as_ref().map(|best| best.point.config.settings()).transpose().map_err(raise)?;
    Ok((
        json::Answer::new(&advice).json().to_string(),
        board_answer::sentence(&advice),
        board_answer::words(&advice),
        settings.as_ref().map(shown),
    ))
}

fn question(config: &str, question_json: &str) -> Result<Question, ExperimentError> {
    let question_json: Value = serde_json::from_str(question_json).expect("the package writes JSON");
    let text = |key: &str| question_json[key].as_str();
    let list = |key: &str| -> Vec<String> {
        question_json[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
    };
    let bytes = |key| quantity_of(key, text(key), quantity::bytes);
    let limits = Limits {
        slowdown: text("max_slowdown").map(|t| percent("max_slowdown", t)).transpose()?,
        p99: quantity_of::<Ps>("max_p99", text("max_p99"), quantity::time)?,
        life: text("min_life").map(|t| years("min_life", t)).transpose()?,
        energy: quantity_of::<Pj>("max_energy", text("max_energy"), quantity::energy)?,
        ram: bytes("max_ram")?,
    };
    Ok(Question {
        base: checked(config)?,
        limits,
        devices: list("devices"),
        policies: list("policies"),
        handlers: list("handlers"),
        collectors: list("collectors"),
        schedulers: list("schedulers"),
        prefetches: list("prefetches"),
        read_aheads: question_json["read_aheads"].as_array().into_iter().flatten().filter_map(pages).collect(),
        swap_area: quantity_of::<Bytes>("swap_area", text("swap_area"), quantity::bytes)?,
        program_time: quantity_of::<Ps>("program_time", text("program_time"), quantity::time)?,
        work_max: question_json["work"].as_u64(),
    })
}

/// A number of pages, limited to what a setting can hold.
fn pages(value: &Value) -> Option<u32> {
    value.as_u64().map(|pages| u32::try_from(pages).unwrap_or(u32::MAX))
}

fn quantity_of<T>(
    name: &str,
    text: Option<&str>,
    read: fn(&str) -> Result<T, QuantityError>,
) -> Result<Option<T>, ExperimentError> {
    text.map(read).transpose().map_err(|e| ExperimentError::quantity(name, e))
}
