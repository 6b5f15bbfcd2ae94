//! Simulations.

use std::path::PathBuf;

use coldframe_experiment::resolve::{drive, string as plan, Drive};
use coldframe_experiment::sim_result::SimResult;
use coldframe_experiment::systems;
use coldframe_experiment::systems::front_end::FrontKey;
use coldframe_experiment::{string, ExperimentError, Settings};
use coldframe_store::Reader;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::policy::Teacher;
use crate::settings::checked;
use crate::watch::watched;

/// Settings whose results come from the paging engine.
fn all(configs: &[String]) -> Result<Vec<Settings>, ExperimentError> {
    let fit = |settings: Settings| match (drive(&settings), systems::of(&settings)) {
        (Drive::String, _) => Ok(settings),
        (Drive::Tasks | Drive::Foreground | Drive::SwapTrace, system) => {
            let named = system.map(|system| format!(" --system {}", system.name)).unwrap_or_default();
            let reason = format!(
                "several tasks have results of another kind than one string of references; run `coldframe-lab \
                 sim{named}` instead"
            );
            Err(ExperimentError::setting("system", reason))
        }
    };
    configs.iter().map(|config| checked(config).and_then(fit)).collect()
}

/// Resolves every configuration for a trace and runs none. So unknown names and impossible quantities are found
/// before the work begins.
#[pyfunction]
pub fn check(path: PathBuf, configs: Vec<String>) -> PyResult<()> {
    let resolved = || {
        let trace = Reader::open(&path)?.provenance().clone();
        // RAM in percent of the most pages that the trace can touch; the true number would take a pass over it.
        let mut pages = |front: &FrontKey| Ok(front.pages_max(&trace));
        all(&configs)?.iter().try_for_each(|settings| plan(settings, &trace, &mut pages).map(drop))
    };
    resolved().map_err(raise)
}

/// The results of every configuration over a trace, each as `coldframe-lab sim --format json` prints it. One pass over
/// the trace serves all configurations.
#[pyfunction]
#[pyo3(signature = (path, configs, progress=None))]
pub fn simulate(
    py: Python<'_>,
    path: PathBuf,
    configs: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let all = all(&configs).map_err(raise)?;
    let results = watched(py, progress, |report| string::run(&path, &all, report))?;
    Ok(results.iter().map(|result| SimResult::from(result).json().to_string()).collect())
}

/// Like [`simulate`], for one configuration with a policy that is a Python object, made by `make(frames)`.
#[pyfunction]
#[pyo3(signature = (path, config, name, make, progress=None))]
pub fn simulate_policy(
    py: Python<'_>,
    path: PathBuf,
    config: &str,
    name: String,
    make: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let settings = checked(config).map_err(raise)?;
    let teacher = Teacher::new(make);
    let result = watched(py, progress, |report| {
        let mut make = |frames, _| teacher.policy(frames);
        let mut stopping = |p: coldframe_experiment::Progress| {
            if teacher.has_failed() {
                p.stop();
            }
            report(p);
        };
        string::run_with_policy(&path, &settings, (&name, &mut make), &mut stopping)
    });
    match teacher.failure() {
        Some(error) => Err(error),
        None => result.map(|result| SimResult::from(&result).json().to_string()),
    }
}
