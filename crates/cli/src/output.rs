//! Results to stdout or to a file. A reader that closes the pipe early is no error.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A result that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes to the file, or to stdout without one.
pub fn write(to: Option<&Path>, text: &str) -> Result<(), OutputError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| OutputError { path, source }
    };
    let Some(path) = to else {
        let mut stdout = std::io::stdout().lock();
        return match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            done => done.map_err(failed("standard output".as_ref())),
        };
    };
    std::fs::write(path, text).map_err(failed(path))
}

/// A JSON value as text with a newline at its end.
pub fn json(value: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("a value is always printable");
    text.push('\n');
    text
}
