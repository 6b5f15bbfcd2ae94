//! What all verbs do with results, failures and progress.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use coldframe_experiment::ExperimentError;
use coldframe_show::text::folded;
use coldframe_store::TraceError;

/// Why a verb has failed, and its exit code.
pub struct Failure(String, u8);

impl Failure {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure(message.into(), 2)
    }

    /// Shows it on stderr.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.0);
        ExitCode::from(self.1)
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        Failure(error.to_string(), error.code())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure(error.to_string(), error.code())
    }
}

/// Columns of stdout: from COLUMNS, or the terminal's; 80 without either, and at least 40.
pub fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col.into());
    said.or_else(terminal).filter(|columns| *columns > 0).unwrap_or(80).max(40)
}

/// Writes to the file, or to stdout without one. On stdout, lines of text are wrapped; JSON is not changed.
pub fn write(to: Option<&Path>, text: &str) -> Result<(), Failure> {
    match to {
        None if !text.starts_with(['{', '[']) => exact(None, &folded(text, width())),
        _ => exact(to, text),
    }
}

/// Writes output for a program, or for a tool that wraps lines itself. A reader that closes the pipe early is no error.
pub fn exact(to: Option<&Path>, text: &str) -> Result<(), Failure> {
    let written = match to {
        Some(path) => std::fs::write(path, text),
        None => std::io::stdout().lock().write_all(text.as_bytes()),
    };
    let name = to.map_or("standard output".into(), |path| path.display().to_string());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure(format!("{name}: cannot be written: {error}"), 5))
        }
        _ => Ok(()),
    }
}

/// A JSON value as text with a newline at its end.
pub fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// A progress line on stderr. It appears only on a terminal, and only if the work takes more than two seconds.
pub struct Line {
    began: Instant,
    quiet: bool,
}

impl Line {
    /// A line that is not shown yet.
    pub fn new(quiet: bool) -> Line {
        Line { began: Instant::now(), quiet: quiet || !std::io::stderr().is_terminal() }
    }

    /// Shows these words.
    pub fn show(&mut self, words: &str) {
        if !self.quiet && self.began.elapsed() > Duration::from_secs(2) {
            eprint!("\r\x1b[K{words}");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.show("");
    }
}
