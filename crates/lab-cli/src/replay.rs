//! `coldframe-lab replay`: checks that a new engine issues the commands of a journal.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_journal::{replay, JournalError};
use coldframe_sheet::quantity::human_count;
use serde_json::json;

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

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let path = args.journal.display();
    let bytes = std::fs::read(&args.journal)
        .map_err(|e| Failure::Other { message: format!("{path}: cannot be read: {e}"), code: 5 })?;
    let replayed = replay(&bytes).map_err(|error| {
        let code = if matches!(error, JournalError::Differs { .. }) { 1 } else { 3 };
        Failure::Other { message: format!("{path}: {error}"), code }
    })?;
    let text = if args.format == "json" {
        output::json(&json!({
            "journal": args.journal, "same": true, "events": replayed.events, "bits": replayed.bits, "commands": replayed.commands,
        }))
    } else {
        format!(
            "{path}: the same {} commands from {} events and {} bits\n",
            human_count(replayed.commands),
            human_count(replayed.events),
            human_count(replayed.bits)
        )
    };
    output::write(None, &text)?;
    Ok(ExitCode::SUCCESS)
}
