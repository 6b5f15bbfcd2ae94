//! A failure, its exit code, and its message.

use std::process::ExitCode;

use coldframe_answer::AnswerError;
use coldframe_kernel::KernelError;
use coldframe_live::LiveError;
use coldframe_store::TraceError;
use coldframe_terminal::output::OutputError;

/// Why a verb has failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The answer for this machine.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The live pager.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The kernel's groups and swap.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Writing results.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Anything else, with its exit code.
    #[error("{message}")]
    Other {
        /// What is wrong, and the remedy.
        message: String,
        /// Exit code.
        code: u8,
    },
}

impl Failure {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Other { message: message.into(), code: 2 }
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Answer(error) => error.code(),
            Failure::Trace(error) => error.code(),
            Failure::Live(error) => error.code(),
            Failure::Kernel(_) => 4,
            Failure::Output(_) => 5,
            Failure::Other { code, .. } => *code,
        }
    }

    /// Shows it on stderr.
    pub fn report(&self) -> ExitCode {
        let bad_line = match self {
            Failure::Trace(TraceError::Line(line)) | Failure::Answer(AnswerError::Trace(TraceError::Line(line))) => {
                Some(line)
            }
            _ => None,
        };
        coldframe_terminal::failure::report(self, self.code(), bad_line.map(Box::as_ref))
    }
}
