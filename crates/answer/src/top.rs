//! The counters of a program that our pager pages now.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use coldframe_live::{Snapshot, StatsFile};
use coldframe_proc::{Process, Tree};
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
        Process::of(self.pid).exists()
    }
}

/// The only run.
fn only() -> Result<(u32, PathBuf), AnswerError> {
    let (pids, own) = (Tree::machine().processes().into_iter(), std::process::id());
    let mut all: Vec<(u32, PathBuf)> =
        pids.filter(|pid| *pid != own).filter_map(|pid| Some((pid, StatsFile::find(pid)?))).collect();
    // All processes of a run have the same file.
    all.sort_unstable();
    all.dedup_by_key(|(_, path)| std::fs::metadata(path).ok().map(|m| m.ino()));
    match all.len() {
        0 => Err(AnswerError::new(3, "no process is paged by coldframe now; start one with `coldframe run`")),
        1 => Ok(all.swap_remove(0)),
        _ => {
            let list: Vec<_> = all.iter().map(|(pid, _)| format!("{pid} ({})", Process::of(*pid).name())).collect();
            Err(AnswerError::new(3, format!("several runs are under way; give one of {}", list.join(", "))))
        }
    }
}
