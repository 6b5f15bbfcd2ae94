//! What can be wrong with a journal, or with its replay.

use alloc::string::String;
use core::fmt;

/// Why a journal cannot be replayed, or why the replay failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// The head is not valid.
    Head {
        /// Line of the head, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An entry cannot be read.
    Entry {
        /// Where in the file.
        byte: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// The fresh engine issued something else.
    Differs {
        /// Where in the file.
        byte: usize,
        /// Entries that agreed before.
        entries: u64,
        /// What the journal has.
        journal: String,
        /// What the engine did.
        engine: String,
    },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Head { line, field, reason } => write!(f, "line {line}, field `{field}`: {reason}"),
            JournalError::Entry { byte, reason } => write!(f, "byte {byte}: {reason}; the file is cut off or damaged"),
            JournalError::Differs { byte, entries, journal, engine } => {
                write!(
                    f,
                    "byte {byte}, after {entries} entries that agree: the journal has {journal}, the engine {engine}"
                )
            }
        }
    }
}

impl core::error::Error for JournalError {}
