//! The counters of a program that our pager pages now.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use coldframe_live::{Snapshot, StatsFile};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;

/// A look at a run.
#[derive(Serialize, JsonSchema)]
pub struct Top {
    /// Seconds since the look before; null: totals.
    pub seconds: Option<f64>,
    /// The counters and times of all processes of the run.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub now: Snapshot,
}

/// A run that can be looked at.
pub struct Paged {
    pid: u32,
    stats: StatsFile,
}

impl Paged {
    /// The run of this process, or the only one.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn find(pid: Option<u32>) -> Result<Paged, AnswerError> {
        let (pid, path) = match pid {
            Some(pid) => (
                pid,
                StatsFile::find(pid).ok_or_else(|| {
                    AnswerError::new(
                        3,
                        format!("process {pid} is not paged by coldframe, has ended, or belongs to somebody else"),
                    )
                })?,
            ),
            None => only()?,
        };
        Ok(Paged { pid, stats: StatsFile::open(&path)? })
    }

    /// Its counters now.
    pub fn look(&self) -> Snapshot {
        self.stats.snapshot()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        PathBuf::from(format!("/proc/{}", self.pid)).exists()
    }
}

/// The only run.
fn only() -> Result<(u32, PathBuf), AnswerError> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    let mut all: Vec<(u32, PathBuf)> =
        pids.filter(|pid| *pid != own).filter_map(|pid: u32| Some((pid, StatsFile::find(pid)?))).collect();
    // All processes of a run have the same file.
    all.sort_unstable();
    all.dedup_by_key(|(_, path)| std::fs::metadata(path).ok().map(|m| m.ino()));
    match all.len() {
        0 => Err(AnswerError::new(3, "no process is paged by coldframe now; start one with `coldframe run`")),
        1 => Ok(all.swap_remove(0)),
        _ => {
            let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let list: Vec<_> = all.iter().map(|(pid, _)| format!("{pid} ({})", name(pid).trim())).collect();
            Err(AnswerError::new(3, format!("several runs are under way; give one of {}", list.join(", "))))
        }
    }
}
