//! Why there is no answer: what is wrong, the remedy, and the exit code.

use std::path::PathBuf;
use std::process::ExitStatus;

use coldframe_core::policy::PolicyError;
use coldframe_kernel::KernelError;
use coldframe_lane::LaneError;
use coldframe_live::LiveError;
use coldframe_proc::ProcError;
use coldframe_sheet::SheetError;
use coldframe_store::TraceError;

use crate::nothing::Nothing;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A device's sheet.
    #[error(transparent)]
    Sheet(#[from] SheetError),
    /// A replacement policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A configuration of the pager that is not possible.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// Our pager.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The kernel's groups and swap.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A process that cannot be watched.
    #[error(transparent)]
    Process(#[from] ProcError),
    /// A program that cannot be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Our pager serves nothing of a program's memory.
    #[error(
        "nothing was recorded: {0}; give a program that works on data, or record its code and stack with --level page"
    )]
    Unserved(String),
    /// The program failed before it used any memory that is recorded.
    #[error("nothing was recorded: the program ended ({0}) before it touched a heap")]
    Failed(ExitStatus),
    /// The program takes so little memory that no size of RAM is less.
    #[error(transparent)]
    Nothing(#[from] Nothing),
    /// Anything else.
    #[error("{message}")]
    Other {
        /// What is wrong, and the remedy.
        message: String,
        /// The exit code.
        code: u8,
    },
}

impl AnswerError {
    /// With an exit code of its own.
    pub fn new(code: u8, message: impl Into<String>) -> AnswerError {
        AnswerError::Other { message: message.into(), code }
    }

    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> AnswerError {
        AnswerError::new(2, message)
    }

    /// The exit code: 2 usage or configuration, 3 bad input data, 4 this machine lacks a feature, 5 I/O; 126 and 127 as
    /// in shells.
    pub fn code(&self) -> u8 {
        match self {
            AnswerError::Trace(error) => error.code(),
            AnswerError::Sheet(SheetError::Io { .. }) => 5,
            AnswerError::Sheet(_) | AnswerError::Policy(_) | AnswerError::Lane(_) => 2,
            AnswerError::Live(error) => error.code(),
            AnswerError::Kernel(_) => 4,
            AnswerError::Process(error) => error.code(),
            AnswerError::Program(error) => error.code(),
            AnswerError::Unserved(_) | AnswerError::Failed(_) => 3,
            AnswerError::Nothing(_) => 1,
            AnswerError::Other { code, .. } => *code,
        }
    }
}

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum ProgramError {
    /// It is not there.
    #[error("{}: no such program", .0.display())]
    NotFound(PathBuf),
    /// It cannot be executed.
    #[error("{}: cannot be executed: {why}", path.display())]
    NotExecutable { path: PathBuf, why: String },
}

impl ProgramError {
    /// The exit code, as in shells.
    pub fn code(&self) -> u8 {
        match self {
            ProgramError::NotFound(_) => 127,
            ProgramError::NotExecutable { .. } => 126,
        }
    }
}
