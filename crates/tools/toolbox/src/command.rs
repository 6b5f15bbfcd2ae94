//! Commands as a user types them, in a wide terminal without colours, and a folder for their files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::command_of;

/// Runs a line such as `sim t.parquet --ram 50%`; its verb says the program, or `lab` before it.
///
/// # Panics
/// The line is not shell, or the program does not start.
pub fn run(line: &str) -> Output {
    command(line).output().unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The command of a line, to be changed before it runs.
///
/// # Panics
/// The line is not shell.
pub fn command(line: &str) -> Command {
    let words = shlex::split(line).unwrap_or_else(|| panic!("not shell: {line}"));
    let (program, words) = command_of(&words);
    let mut command = Command::new(program);
    command.args(words).env("NO_COLOR", "1").env("COLUMNS", "240");
    command
}

/// What a line prints.
///
/// # Panics
/// It fails.
pub fn done(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {}", error(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// What a line prints with `--format json`.
///
/// # Panics
/// It fails, or prints no JSON.
pub fn json(line: &str) -> Value {
    serde_json::from_str(&done(&format!("{line} --format json"))).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Checks that a line is refused with this code and a message with each of these words, and prints nothing.
///
/// # Panics
/// It is not.
pub fn refused(line: &str, code: i32, words: &[&str]) {
    let output = run(line);
    let message = error(&output);
    assert_eq!(output.status.code(), Some(code), "{line}: {message}");
    words.iter().for_each(|word| assert!(message.contains(word), "{line} does not name `{word}`: {message}"));
    assert!(!message.contains("panicked") && output.stdout.is_empty(), "{line}: {message}");
}

/// The messages of a run.
pub fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The path of a shipped trace.
pub fn shipped(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces").join(name).display().to_string()
}

/// A temporary folder.
pub struct Folder(TempDir);

impl Folder {
    /// A new one.
    ///
    /// # Panics
    /// There is no room for it.
    #[allow(clippy::new_without_default)] // It has an effect.
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The same as text, for a line.
    pub fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file, and returns its path.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).expect("a file");
        self.at(name)
    }
}
