//! `coldframe-lab replay`: checks that a new engine issues the commands of a journal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_journal::{replay, JournalError, Replayed};
use coldframe_sheet::quantity::human_count;
use schemars::JsonSchema;
use serde::Serialize;

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

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let path = args.journal.display();
    let bytes = std::fs::read(&args.journal)
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
    output::result(&args.format, &Agreement { journal: &args.journal, same: true, events, bits, commands }, words)?;
    Ok(ExitCode::SUCCESS)
}
