//! The counters of programs that our pager pages now.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use coldframe_live::{Snapshot, StatsFile};
use coldframe_proc::{printable, Process, Tree};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::run::program::{line, proc_is_mounted};

/// A look at a run.
#[derive(Serialize, JsonSchema)]
pub struct Top {
    /// A process of the run.
    pub process: u32,
    /// Its command line.
    pub program: String,
    /// Its user.
    pub user: String,
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
    /// The run of this process, by its number or name; or all runs.
    pub fn find(name: Option<&str>) -> Result<Vec<Paged>, AnswerError> {
        proc_is_mounted()?;
        let pid = name.map(|name| Tree::machine().named(name)).transpose()?;
        let open = |(pid, path): (u32, PathBuf)| Ok(Paged { pid, stats: StatsFile::open(&path)? });
        // Another user's file of that name, or a pager that has not started, is in nobody's way.
        let (runs, others): (Vec<_>, Vec<_>) = pagers(pid)?.into_iter().map(open).partition(Result::is_ok);
        if runs.is_empty() { others } else { runs }.into_iter().collect()
    }

    /// Its counters now; `seconds`: since the look before.
    pub fn look(&self, seconds: Option<f64>) -> Top {
        let process = Process::of(self.pid);
        let (program, user) = (printable(&line(program(&process.command_line()))), process.owner());
        Top { process: self.pid, program, user, seconds, now: self.stats.snapshot() }
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        Process::of(self.pid).exists()
    }
}

/// The program's own words. Where the pager cannot be looked at, the process is coldframe, which has them behind `--`.
fn program(words: &[String]) -> &[String] {
    let coldframe = words.first().is_some_and(|word| word.rsplit('/').next() == Some("coldframe"));
    let start = words.iter().position(|word| word == "--").filter(|_| coldframe);
    start.map_or(words, |start| &words[start + 1..])
}

/// All runs, or that of one process: a process of each, and its file.
fn pagers(only: Option<u32>) -> Result<Vec<(u32, PathBuf)>, AnswerError> {
    let (holders, own) = (Tree::machine().processes().into_iter(), std::process::id());
    let found = holders.filter(|holder| *holder != own).filter_map(|holder| {
        let (pid, path) = StatsFile::find(holder)?;
        only.is_none_or(|only| [pid, holder].contains(&only)).then_some((pid == holder, pid, path))
    });
    let mut found: Vec<_> = found.collect();
    // All processes of a run have the same file. A pager's program comes before coldframe, which has the file itself.
    found.sort_unstable();
    let mut files = BTreeSet::new();
    found.retain(|(.., path)| files.insert(std::fs::metadata(path).ok().map(|file| file.ino())));
    let missing = match only {
        Some(pid) => format!("process {pid} is not paged by coldframe, has ended, or belongs to somebody else"),
        None => "no process is paged by coldframe now; start one with `coldframe run`".to_string(),
    };
    match found.is_empty() {
        true => Err(AnswerError::new(3, missing)),
        false => Ok(found.into_iter().map(|(_, pid, path)| (pid, path)).collect()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_run_has_the_name_of_its_program_and_not_of_coldframe() {
        let shown = |text: &str| {
            let words: Vec<String> = text.split(' ').map(String::from).collect();
            super::program(&words).join(" ")
        };
        assert_eq!(shown("/usr/bin/coldframe run --ram 30MiB -- ./shop 9 -- x"), "./shop 9 -- x");
        assert_eq!(shown("./shop -- 9"), "./shop -- 9");
        assert_eq!(shown("coldframe top"), "coldframe top");
    }
}
