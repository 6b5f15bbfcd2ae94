//! Writes results to stdout or to a file. A reader that closes the pipe early is not an error.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use coldframe_show::text::folded;

/// A result cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: std::io::Error,
}

impl OutputError {
    /// The error of writing to this file.
    pub fn for_path(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> OutputError {
        let path = path.into();
        move |source| OutputError { path, source }
    }
}

/// Columns without a terminal.
const WIDTH: usize = 80;
/// The least width: a narrower terminal is treated as this wide.
const WIDTH_MIN: usize = 40;

/// Columns of stdout: from COLUMNS, or the terminal's; 80 without either.
pub fn width() -> usize {
    from_environment().or_else(|| columns(std::io::stdout())).unwrap_or(WIDTH)
}

fn from_environment() -> Option<usize> {
    let columns: usize = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (columns > 0).then_some(columns.max(WIDTH_MIN))
}

fn columns(terminal: impl AsFd) -> Option<usize> {
    let columns = rustix::termios::tcgetwinsize(terminal).ok()?.ws_col;
    (columns > 0).then_some(usize::from(columns).max(WIDTH_MIN))
}

/// Prints text on stderr, in lines that fit COLUMNS or the terminal.
pub fn tell(text: &str) {
    let columns = from_environment().or_else(|| columns(std::io::stderr()));
    eprint!("{}", columns.map_or_else(|| text.into(), |columns| folded(text, columns)));
}

/// Prints text on stdout, in lines that fit.
///
/// # Errors
/// It cannot be written.
pub fn text(text: &str) -> Result<(), OutputError> {
    exact(None, &folded(text, width()))
}

/// Writes a file.
///
/// # Errors
/// It cannot be written.
pub fn file(path: &Path, text: &str) -> Result<(), OutputError> {
    exact(Some(path), text)
}

/// `--format`.
#[derive(clap::Args, Debug)]
pub struct Form {
    /// How to print the result.
    #[arg(long, value_name = "text|json", value_parser = ["text", "json"], default_value = "text")]
    #[arg(hide_possible_values = true)]
    format: String,
}

impl Form {
    /// Prints a result on stdout: its words, or JSON.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, value: &impl serde::Serialize, words: impl FnOnce() -> String) -> Result<(), OutputError> {
        match self.is_json() {
            true => exact(None, &json(value)),
            false => text(&words()),
        }
    }

    /// Prints the answer about a program that has run with coldframe's stdout. If that is no terminal, it is the
    /// program's alone, and words go to stderr.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print_beside(
        &self,
        value: &impl serde::Serialize,
        words: impl FnOnce() -> String,
    ) -> Result<(), OutputError> {
        if self.is_json() || std::io::stdout().is_terminal() {
            return self.print(value, words);
        }
        let columns = from_environment().or_else(|| columns(std::io::stderr())).unwrap_or(WIDTH);
        let written = std::io::stderr().write_all(folded(&words(), columns).as_bytes());
        written.map_err(OutputError::for_path("standard error"))
    }

    /// Keeps stdout for JSON, if that is wanted: what programs write there goes to stderr from now on.
    ///
    /// # Errors
    /// Standard output cannot be duplicated.
    pub fn keep_apart(&self) -> Result<(), OutputError> {
        let apart = || {
            let stdout = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
            rustix::stdio::dup2_stdout(std::io::stderr())?;
            let _ = RESULTS.set(stdout.into());
            Ok(())
        };
        if self.is_json() {
            apart().map_err(OutputError::for_path("standard output"))
        } else {
            Ok(())
        }
    }

    /// Whether JSON is wanted.
    pub fn is_json(&self) -> bool {
        self.format == "json"
    }
}

/// Where results go if stdout is that of programs.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Prints a result on stdout: as JSON if the form says so, else its words.
///
/// # Errors
/// It cannot be written.
pub fn result(form: &str, value: &impl serde::Serialize, words: impl FnOnce() -> String) -> Result<(), OutputError> {
    match form {
        "json" => exact(None, &json(value)),
        _ => text(&words()),
    }
}

/// Writes output for a program, or for a tool that wraps lines itself.
///
/// # Errors
/// It cannot be written.
pub fn exact(to: Option<&Path>, text: &str) -> Result<(), OutputError> {
    let Some(path) = to else {
        let mut stdout: Box<dyn Write> = match RESULTS.get() {
            Some(results) => Box::new(results),
            None => Box::new(std::io::stdout().lock()),
        };
        return match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            done => done.map_err(OutputError::for_path("standard output")),
        };
    };
    std::fs::write(path, text).map_err(OutputError::for_path(path))
}

/// Plain data as JSON with a newline at its end.
///
/// # Panics
/// Never: plain data is always printable.
pub fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("a value is always printable");
    text.push('\n');
    text
}

/// Plain data as one line of JSON.
///
/// # Panics
/// Never: plain data is always printable.
pub fn line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form") + "\n"
}
