//! What can go wrong between a command line and a finished trace.

use std::io;
use std::path::PathBuf;

use coldframe_answer::ProgramError;
use coldframe_store::TraceError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The recorder needs a program that is not here.
    #[error("{tool} is not installed; on Debian: apt-get install {package}")]
    MissingTool { tool: String, package: &'static str },
    /// Our own plugin was not found.
    #[error(
        "libcoldframe_plugin.so not found in {places}; build it with `cargo build --release -p coldframe-qemu-plugin`"
    )]
    MissingPlugin { places: String },
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// None of the tools can record this program.
    #[error("{}: a program for {machine}; {remedy}", path.display())]
    WrongMachine { path: PathBuf, machine: String, remedy: String },
    /// QEMU ended before the plugin was in place. QEMU's own message is on stderr.
    #[error("{tool} did not start with the plugin ({version}); its own message is above; {remedy}")]
    NotStarted { tool: String, version: String, remedy: &'static str },
    /// A request that makes no sense.
    #[error("{what}: {problem}; {remedy}")]
    Usage { what: String, problem: String, remedy: String },
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: io::Error },
}

impl RecordError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> RecordError {
        let action = action.into();
        move |source| RecordError::Io { action, source }
    }

    /// The exit code: 126 and 127 as in shells, 4 if this machine lacks something, 2 for a request that makes no
    /// sense, 5 for problems outside of coldframe.
    pub fn code(&self) -> u8 {
        match self {
            RecordError::MissingTool { .. }
            | RecordError::MissingPlugin { .. }
            | RecordError::WrongMachine { .. }
            | RecordError::NotStarted { .. } => 4,
            RecordError::Program(error) => error.code(),
            RecordError::Usage { .. } => 2,
            RecordError::Trace(error) => error.code(),
            RecordError::Io { .. } => 5,
        }
    }
}
