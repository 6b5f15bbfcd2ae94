//! Why a process cannot be watched, in one sentence with a remedy.

/// Why a process cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum ProcError {
    /// No process has this number.
    #[error("process {0} is not there; find it with `pgrep -a NAME`")]
    None(u32),
    /// No process has this name.
    #[error("no process is named {0}; find it with `pgrep -a NAME`")]
    Unnamed(String),
    /// Several processes have this name: their numbers and command lines.
    #[error("several processes are named {0}; give one of these numbers: {1}")]
    Several(String, String),
    /// It has ended, and its parent has not asked for its status.
    #[error("process {0} has ended; find one that runs with `pgrep -a NAME`")]
    Ended(u32),
    /// It belongs to the kernel.
    #[error("process {0} is a thread of the kernel and has no memory of its own; give the number of a program")]
    Kernel(u32),
    /// Its memory may not be looked at.
    #[error(
        "process {pid} belongs to {owner}, and only they and root may look at its memory; use sudo, in a \
             container with CAP_SYS_PTRACE"
    )]
    Foreign { pid: u32, owner: String },
    /// The kernel does not count the bits.
    #[error(
        "/proc/{pid}/{file} cannot be used: {source}; the kernel needs CONFIG_PROC_PAGE_MONITOR, and /proc must \
             be writable"
    )]
    File { pid: u32, file: &'static str, source: std::io::Error },
    /// The kernel reclaims its pages, and clears bits for that.
    #[error(
        "{percent:.0} % of process {pid} is in swap: the kernel clears its bits, and they do not show what it needs; \
         give it RAM, then try again"
    )]
    Swapped { pid: u32, percent: f64 },
    /// Huge pages have one bit each.
    #[error(
        "{percent:.0} % of process {pid} is in huge pages, which have one bit for 2 MiB: they do not show what it \
         needs; start it with `coldframe -- PROGRAM`, which has none"
    )]
    Huge { pid: u32, percent: f64 },
}

/// Why a process or a thread cannot be made, with the remedy if there are too many.
pub fn unmade(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            format!("{error}; allow more processes and threads (`ulimit -u`, pids.max of the cgroup)")
        }
        _ => error.to_string(),
    }
}

impl ProcError {
    /// The exit code: 2 for a process that cannot be meant, 4 if something is not allowed here.
    pub fn code(&self) -> u8 {
        match self {
            ProcError::Swapped { .. } | ProcError::Huge { .. } | ProcError::Foreign { .. } | ProcError::File { .. } => {
                4
            }
            _ => 2,
        }
    }
}
