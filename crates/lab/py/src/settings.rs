//! Settings as JSON text, in the words of `config.toml`.

use std::path::{Path, PathBuf};

use coldframe_experiment::{string, ExperimentError, Settings};
use coldframe_sheet::quantity;
use pyo3::prelude::*;
use sha2::{Digest, Sha256};

use crate::errors::raise;

/// Reads settings that were checked before, so its message is not meant for people.
pub fn checked(json: &str) -> Result<Settings, ExperimentError> {
    serde_json::from_str(json).map_err(|e| bad("Config", e))
}

fn bad(origin: &str, error: impl ToString) -> ExperimentError {
    ExperimentError::Config { origin: origin.into(), reason: error.to_string() }
}

/// The settings in the order in which they are declared, so that equal settings give equal texts.
pub fn shown(settings: &Settings) -> String {
    serde_json::to_string(settings).expect("settings are plain data")
}

/// Checks the names and types of settings, and sorts them into their order.
#[pyfunction]
#[pyo3(name = "settings")]
pub fn settings(json: &str) -> PyResult<String> {
    let read = || {
        let table: toml::Table = serde_json::from_str(json).map_err(|e| bad("Config", e))?;
        // Through TOML, so that the message is that of a configuration file.
        let text = toml::to_string(&table).map_err(|e| bad("Config", e))?;
        Settings::read(Some(("Config", &text)), &[])
    };
    read().map(|s| shown(&s)).map_err(raise)
}

/// The settings of a configuration file, then those of `KEY.PATH=VALUE` texts.
#[pyfunction]
pub fn settings_file(path: PathBuf, sets: Vec<String>) -> PyResult<String> {
    let name = path.display().to_string();
    let io = |e: std::io::Error| ExperimentError::Io { path: name.clone(), reason: e.to_string() };
    let read = || Settings::read(Some((&name, &std::fs::read_to_string(&path).map_err(io)?)), &sets);
    read().map(|s| shown(&s)).map_err(raise)
}

/// Checked settings as a configuration file.
#[pyfunction]
pub fn settings_toml(json: &str) -> PyResult<String> {
    checked(json).and_then(|settings| settings.to_toml()).map_err(raise)
}

/// Bytes of a size such as `64KiB`.
#[pyfunction]
pub fn size(text: &str) -> PyResult<u64> {
    quantity::bytes(text).map(|bytes| bytes.0).map_err(|e| raise(ExperimentError::quantity("size", e)))
}

/// The key of a result: this build, the trace, every setting, and the sheets that the settings name as files.
#[pyfunction]
pub fn key(build: &str, trace_sha256: &str, json: &str) -> PyResult<String> {
    let of = || {
        let settings = checked(json)?;
        let mut text = format!("{build}|{trace_sha256}|{}", shown(&settings));
        let sheets = [&settings.device, &settings.main_memory];
        for sheet in sheets.into_iter().flatten().filter(|name| name.ends_with(".toml")) {
            text += &format!("|{}", string::sha256(Path::new(sheet))?);
        }
        Ok(Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
    };
    of().map_err(raise)
}
