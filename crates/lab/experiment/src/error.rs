//! What can go wrong between a name and a result.

use std::path::Path;

use coldframe_core::policy::PolicyError;
use coldframe_core::ConfigError;
use coldframe_drivers::RunError;
use coldframe_lane::LaneError;
use coldframe_sheet::quantity::QuantityError;
use coldframe_sheet::sheet::line_of;
use coldframe_sheet::SheetError;
use coldframe_store::TraceError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A setting is not possible; with the remedy.
    #[error("setting `{field}`: {reason}")]
    Setting {
        /// The setting, `table.key`.
        field: String,
        /// What is wrong, and what is accepted.
        reason: String,
    },
    /// A configuration file or `--set` cannot be read.
    #[error("{origin}: {reason}")]
    Config {
        /// The file, or the `--set` argument.
        origin: String,
        /// Line, column, field and why.
        reason: String,
    },
    /// A policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A device cannot be found or read.
    #[error(transparent)]
    Sheet(#[from] SheetError),
    /// The simulator cannot do it.
    #[error(transparent)]
    Run(RunError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace lacks what the question needs.
    #[error("{path}: {reason}")]
    Unfit {
        path: String,
        /// What it lacks, and the remedy.
        reason: String,
    },
    /// The receiver of the progress has ended the run.
    #[error("stopped before the end of the trace; what is given is given by whole runs only")]
    Stopped,
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    Io { path: String, reason: String },
}

impl From<RunError> for ExperimentError {
    fn from(error: RunError) -> ExperimentError {
        match error {
            RunError::Lane(LaneError::Config(ConfigError::Swap(error))) => {
                ExperimentError::setting("swap", error.to_string())
            }
            other => ExperimentError::Run(other),
        }
    }
}

impl ExperimentError {
    /// A setting that is not possible.
    pub fn setting(field: impl Into<String>, reason: impl Into<String>) -> ExperimentError {
        ExperimentError::Setting { field: field.into(), reason: reason.into() }
    }

    /// A quantity that cannot be read.
    pub fn quantity(field: &str, error: QuantityError) -> ExperimentError {
        ExperimentError::setting(field, error.to_string())
    }

    /// The same, with the line of the setting if it is in the configuration file.
    #[must_use]
    pub fn in_file(self, config: Option<&Path>) -> ExperimentError {
        let text = config.and_then(|path| Some((path, std::fs::read_to_string(path).ok()?)));
        match (self, text) {
            (ExperimentError::Setting { field, reason }, Some((path, text))) => match line_of(&text, &field) {
                Some(line) => {
                    let reason = format!("line {line}: setting `{field}`: {reason}");
                    ExperimentError::Config { origin: path.display().to_string(), reason }
                }
                None => ExperimentError::Setting { field, reason },
            },
            (other, _) => other,
        }
    }

    /// The exit code: 2 usage or configuration, 3 bad input data, 5 I/O.
    pub fn code(&self) -> u8 {
        match self {
            ExperimentError::Setting { .. } | ExperimentError::Config { .. } | ExperimentError::Policy(_) => 2,
            ExperimentError::Sheet(SheetError::Io { .. }) | ExperimentError::Io { .. } => 5,
            ExperimentError::Sheet(_) => 2,
            // As shells report a program that Ctrl-C ended.
            ExperimentError::Stopped => 130,
            ExperimentError::Run(RunError::TooManyPages { .. }) | ExperimentError::Unfit { .. } => 3,
            ExperimentError::Run(RunError::Lane(_)) => 2,
            ExperimentError::Trace(error) => error.code(),
        }
    }
}

/// ` Did you mean ...?` if one of the names is similar.
pub fn nearest(name: &str, names: impl Iterator<Item = &'static str>) -> String {
    let near = names.map(|n| (strsim::damerau_levenshtein(name, n), n)).min();
    near.filter(|(d, n)| *d <= n.len().div_ceil(3)).map(|(_, n)| format!("; did you mean `{n}`?")).unwrap_or_default()
}
