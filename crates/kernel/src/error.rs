//! What the machine refuses, and the remedy.

use std::path::{Path, PathBuf};

/// Why the kernel cannot page the program.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Something is not there.
    #[error("{what}; {remedy}")]
    Lacks {
        /// What is missing.
        what: String,
        /// What the user can do.
        remedy: String,
    },
    /// A file of the kernel, or a folder, refuses.
    #[error("{}: {source}; {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
        /// What the user can do.
        remedy: &'static str,
    },
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
