//! What the machine refuses, and the remedy.

use std::path::{Path, PathBuf};

/// Why the kernel cannot page the program.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum KernelError {
    /// Something is not there.
    #[error("{what}; {remedy}")]
    Lacks { what: String, remedy: String },
    /// A file of the kernel, or a folder, refuses.
    #[error("{}: {source}; {remedy}", path.display())]
    File { path: PathBuf, source: std::io::Error, remedy: &'static str },
    /// The guard process could not do it, and gave the reason.
    #[error("{0}")]
    Refused(String),
}

impl KernelError {
    pub(crate) fn lacks(what: impl Into<String>, remedy: impl Into<String>) -> KernelError {
        KernelError::Lacks { what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn no_cgroups() -> KernelError {
        let remedy = "mount one as root: mount -t cgroup2 none /sys/fs/cgroup";
        KernelError::lacks("this machine has no memory cgroup mounted", remedy)
    }

    pub(crate) fn file(path: &Path, source: std::io::Error, remedy: &'static str) -> KernelError {
        KernelError::File { path: path.into(), source, remedy }
    }
}
