//! What can be wrong with a trace, where it is wrong, and what to do about it.
//!
//! Every message has the form *place: field: what was found; remedy*. The parts are also kept separately, so that a
//! command line can draw the source line with the span underlined.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What to do about an error, as an imperative half-sentence.
pub type Remedy = Cow<'static, str>;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum TraceError {
    /// The operating system refused: missing file, no permission, no space, a directory.
    #[error("{}: cannot {action}: {source}; {remedy}", path.display())]
    Io {
        path: PathBuf,
        /// What was attempted: `open`, `read`, `write`, ...
        action: &'static str,
        source: io::Error,
        remedy: Remedy,
    },
    /// A line of a text trace breaks its format.
    #[error("{0}")]
    Line(Box<BadLine>),
    /// Compressed data ends early or does not decode.
    #[error("{}: {format} data, byte {byte} of the decompressed text: {problem}; {remedy}", path.display())]
    Compressed {
        path: PathBuf,
        /// `gzip`, `xz`, `zstd` or `zlib`.
        format: &'static str,
        /// How many decompressed bytes were delivered before.
        byte: u64,
        problem: String,
        remedy: Remedy,
    },
    /// The file is not Parquet, or is truncated or corrupt.
    #[error("{}: row {row}: {problem}; {remedy}", path.display())]
    Damaged {
        path: PathBuf,
        /// The first row, counted from 0, that cannot be trusted; 0 when the file does not even open.
        row: u64,
        problem: String,
        remedy: Remedy,
    },
    /// A Parquet column is missing or has a type that this crate cannot take.
    #[error("{}: column `{column}`: {problem}; {remedy}", path.display())]
    Column { path: PathBuf, column: String, problem: String, remedy: Remedy },
    /// A row holds a value that no reference can have.
    #[error("{}: row {row}: {field}: {problem}; {remedy}", path.display())]
    Row {
        path: PathBuf,
        /// The row, counted from 0.
        row: u64,
        field: &'static str,
        problem: String,
        remedy: Remedy,
    },
    /// A record of a binary trace breaks its format.
    #[error("{}: record {record}, byte {byte}: {field}: {problem}; {remedy}", path.display())]
    Record {
        path: PathBuf,
        /// The record, counted from 0.
        record: u64,
        /// Where it begins, in bytes of the decompressed data.
        byte: u64,
        field: &'static str,
        problem: String,
        remedy: Remedy,
    },
    /// The file does not say where it comes from.
    #[error("{}: provenance: {problem}; {remedy}", path.display())]
    Provenance { path: PathBuf, problem: String, remedy: Remedy },
    /// A trace without a single reference.
    #[error("{}: no references in {lines} lines ({skipped} skipped); {remedy}", path.display())]
    Empty {
        path: PathBuf,
        lines: u64,
        /// Of these, skipped as the format asks.
        skipped: u64,
        remedy: Remedy,
    },
    /// A request that makes no sense: an unknown format, a specification without a path, a level out of range.
    #[error("{what}: {problem}; {remedy}")]
    Usage { what: String, problem: String, remedy: Remedy },
}

/// A malformed line, with all that is needed to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The file concerned.
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: u64,
    /// Byte offset of the span in [`BadLine::text`], from 0.
    pub offset: usize,
    /// Bytes in the span; 0 when something is missing there.
    pub len: usize,
    /// The line, shortened to [`TEXT_MAX`] bytes and with unprintable bytes replaced one for one by `?`.
    pub text: String,
    /// The part of the line: `kind`, `address`, `size`, `label`, `line`.
    pub field: &'static str,
    /// What was found there.
    pub problem: String,
    /// What to do.
    pub remedy: Remedy,
}

/// Most bytes of a bad line that an error keeps.
pub const TEXT_MAX: usize = 200;

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadLine { path, line, offset, field, problem, remedy, .. } = self;
        write!(f, "{}:{line}:{}: {field}: {problem}; {remedy}", path.display(), offset + 1)
    }
}

impl TraceError {
    /// The process exit code: 2 for a request that makes no sense, 3 for bad input data, 5 for the outside world.
    pub fn code(&self) -> u8 {
        match self {
            TraceError::Usage { .. } => 2,
            TraceError::Io { .. } => 5,
            _ => 3,
        }
    }

    /// An I/O failure with the remedy that its kind suggests.
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> TraceError {
        use io::ErrorKind as Refusal;
        let remedy = match source.kind() {
            Refusal::NotFound => "check the path",
            Refusal::PermissionDenied => "check the permissions of the file and its directory",
            Refusal::IsADirectory => "name a file, not a directory",
            Refusal::NotADirectory => "check the directories in the path",
            Refusal::StorageFull | Refusal::QuotaExceeded | Refusal::FileTooLarge => {
                "free some space or write to another file system; nothing was left behind"
            }
            Refusal::ReadOnlyFilesystem => "write to another file system",
            _ => "check the file and the device it is on",
        };
        TraceError::Io { path: path.to_owned(), action, source, remedy: remedy.into() }
    }

    /// A row of a store that cannot be what a writer wrote.
    pub fn damaged(path: &Path, row: u64, problem: impl fmt::Display) -> TraceError {
        TraceError::Damaged {
            path: path.to_owned(),
            row,
            problem: problem.to_string(),
            remedy: "the file is truncated or corrupt: copy or record it again".into(),
        }
    }
}

/// `bytes` as text of the same length: one character a byte, so that spans stay valid.
pub fn printable(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(TEXT_MAX)
        .map(|&byte| match byte {
            b'\t' => ' ',
            b' '..=b'~' => byte as char,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_names_file_line_column_field_and_remedy() {
        let error = TraceError::Line(Box::new(BadLine {
            path: "a.lackey".into(),
            line: 7,
            offset: 3,
            len: 2,
            text: " L zz,8".into(),
            field: "address",
            problem: "`zz`, not hexadecimal".into(),
            remedy: "record again".into(),
        }));
        assert_eq!(error.to_string(), "a.lackey:7:4: address: `zz`, not hexadecimal; record again");
        assert_eq!(error.code(), 3);
        assert!(std::mem::size_of::<TraceError>() <= 128);
    }

    #[test]
    fn unprintable_bytes_keep_their_place() {
        assert_eq!(printable(b"a\tb\xff\0c"), "a b??c");
    }
}
