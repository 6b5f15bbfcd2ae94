//! A failure, its exit code, and its message. For bad input the message shows the source line and underlines the
//! place.

use std::process::ExitCode;

use coldframe_answer::AnswerError;
use coldframe_experiment::ExperimentError;
use coldframe_kernel::KernelError;
use coldframe_live::LiveError;
use coldframe_record::RecordError;
use coldframe_store::TraceError;
use miette::{GraphicalReportHandler, LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::output::OutputError;

/// Why a verb has failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Simulation or configuration.
    #[error(transparent)]
    Report(#[from] ExperimentError),
    /// The answer for this machine.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recording.
    #[error(transparent)]
    Record(#[from] RecordError),
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
            Failure::Report(error) => error.code(),
            Failure::Answer(error) => error.code(),
            Failure::Trace(error) => error.code(),
            Failure::Record(error) => error.code(),
            Failure::Live(error) => error.code(),
            Failure::Kernel(_) => 4,
            Failure::Output(_) => 5,
            Failure::Other { code, .. } => *code,
        }
    }

    /// Shows it on stderr.
    pub fn report(&self) -> ExitCode {
        let bad_line = match self {
            Failure::Trace(TraceError::Line(line))
            | Failure::Answer(AnswerError::Trace(TraceError::Line(line)))
            | Failure::Report(ExperimentError::Trace(TraceError::Line(line))) => Some(line),
            _ => None,
        };
        eprintln!("error: {self}");
        if let Some(line) = bad_line {
            let label = LabeledSpan::at(line.offset..line.offset + line.len, line.found.clone());
            let title = format!("{}, line {}", line.path.display(), line.line);
            let source = NamedSource::new(title, line.text.clone());
            let report =
                Report::new(MietteDiagnostic::new(line.field.to_string()).with_label(label)).with_source_code(source);
            let mut shown = String::new();
            if GraphicalReportHandler::new().render_report(&mut shown, report.as_ref()).is_ok() {
                eprintln!("{shown}");
            }
        }
        ExitCode::from(self.code())
    }
}
