//! A failure, its exit code, and its message.

use std::process::ExitCode;

use coldframe_answer::AnswerError;
use coldframe_store::TraceError;
use coldframe_terminal::output::OutputError;

/// Why a verb has failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no answer, or the usage is wrong.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A result cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Failure {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        AnswerError::usage(message).into()
    }

    /// Shows it on stderr, with the line of input that is wrong, if it is one.
    pub fn report(&self) -> ExitCode {
        let (code, bad_line) = match self {
            Failure::Answer(AnswerError::Trace(TraceError::Line(line))) => (3, Some(line.as_ref())),
            Failure::Answer(error) => (error.code(), None),
            Failure::Output(_) => (5, None),
        };
        coldframe_terminal::failure::report(self, code, bad_line)
    }
}
