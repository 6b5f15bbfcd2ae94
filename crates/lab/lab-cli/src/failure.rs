//! A failure, its exit code, and its message.

use std::process::ExitCode;

use coldframe_answer::AnswerError;
use coldframe_experiment::ExperimentError;
use coldframe_record::RecordError;
use coldframe_sheet::quantity::QuantityError;
use coldframe_store::TraceError;
use coldframe_terminal::output::OutputError;

/// Why a verb has failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Simulation or configuration.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An answer about this machine.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Writing results.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Anything else, with its exit code.
    #[error("{message}")]
    Other {
        /// What is wrong, and the remedy.
        message: String,
        code: u8,
    },
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Other { message: message.into(), code: 2 }
    }

    pub fn option<T>(
        name: &str,
        text: Option<&str>,
        read: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Result<Option<T>, Failure> {
        text.map(read).transpose().map_err(|e| Failure::usage(format!("{name}: {e}")))
    }

    pub fn report(&self) -> ExitCode {
        let code = match self {
            Failure::Experiment(error) => error.code(),
            Failure::Answer(error) => error.code(),
            Failure::Trace(error) => error.code(),
            Failure::Record(error) => error.code(),
            Failure::Output(_) => 5,
            Failure::Other { code, .. } => *code,
        };
        let bad_line = match self {
            Failure::Trace(TraceError::Line(line))
            | Failure::Experiment(ExperimentError::Trace(TraceError::Line(line))) => Some(line),
            _ => None,
        };
        coldframe_terminal::failure::report(self, code, bad_line.map(Box::as_ref))
    }
}
