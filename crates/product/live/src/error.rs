//! Errors before or outside of a fault. A fault has no caller that could get an error: the program stops with a
//! message.

use std::io;
use std::path::PathBuf;

/// Why a pager cannot start, or cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum LiveError {
    /// A setting that is not possible.
    #[error("{field}: {reason}")]
    Setting { field: &'static str, reason: String },
    /// The kernel or its configuration does not allow it.
    #[error("{feature} is not available here: {reason}; {remedy}")]
    Missing { feature: &'static str, reason: String, remedy: &'static str },
    /// The swap file cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Backing { path: PathBuf, reason: String },
    /// No room for another region.
    #[error(
        "{requested} bytes do not fit: {free} of {max} bytes of managed address space are free; raise `max_memory`"
    )]
    Full { requested: usize, free: usize, max: usize },
    /// A range that is not within the region.
    #[error("bytes {start}..{end} are not within the region of {len} bytes")]
    Range { start: usize, end: usize, len: usize },
    /// More pages pinned than RAM allows.
    #[error(
        "{requested} pages cannot be pinned: {pinned} of {frames} frames are pinned and {keep} must stay free for \
         faults"
    )]
    Pinned { requested: usize, pinned: usize, frames: usize, keep: usize },
    /// Anything else that the kernel refused.
    #[error("{what}: {error}")]
    Os { what: &'static str, error: io::Error },
}

impl LiveError {
    /// The exit code that `coldframe` gives it.
    pub fn code(&self) -> u8 {
        match self {
            LiveError::Setting { .. } | LiveError::Range { .. } | LiveError::Pinned { .. } => 2,
            LiveError::Missing { .. } => 4,
            LiveError::Backing { .. } | LiveError::Full { .. } | LiveError::Os { .. } => 5,
        }
    }

    pub(crate) fn setting(field: &'static str, reason: impl Into<String>) -> LiveError {
        LiveError::Setting { field, reason: reason.into() }
    }

    pub(crate) fn os(what: &'static str, error: impl Into<io::Error>) -> LiveError {
        LiveError::Os { what, error: error.into() }
    }
}
