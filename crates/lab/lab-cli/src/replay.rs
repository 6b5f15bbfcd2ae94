//! `coldframe-lab replay`: checks that a new engine issues the commands of a journal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_journal::{replay, JournalError, Replayed};
use coldframe_sheet::quantity::human_count;
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Feed a journal to a new engine and check that it issues the same commands.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab sim bzip2.parquet --policy clock --ram 64KiB --journal run.journal
  coldframe-lab replay run.journal

Exit code 1: the engine did not issue the commands of the journal.")]
pub struct Args {
    /// The journal.
    journal: PathBuf,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// A new engine issued the commands of the journal.
#[derive(Serialize, JsonSchema)]
pub struct Agreement<'a> {
    journal: &'a Path,
    same: bool,
    events: u64,
    bits: u64,
    commands: u64,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let path = self.journal.display();
        let bytes = std::fs::read(&self.journal)
            .map_err(|e| Failure::Other { message: format!("{path}: cannot be read: {e}"), code: 5 })?;
        let replayed = replay(&bytes).map_err(|error| {
            let code = if matches!(error, JournalError::Differs { .. }) { 1 } else { 3 };
            Failure::Other { message: format!("{path}: {error}"), code }
        })?;
        let Replayed { events, bits, commands } = replayed;
        let words = || {
            let [commands, events, bits] = [commands, events, bits].map(human_count);
            format!("{path}: the same {commands} commands from {events} events and {bits} bits\n")
        };
        output::result(&self.format, &Agreement { journal: &self.journal, same: true, events, bits, commands }, words)?;
        Ok(ExitCode::SUCCESS)
    }
}
