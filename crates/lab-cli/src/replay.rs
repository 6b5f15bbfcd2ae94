//! `coldframe-lab replay`: checks that a new engine issues the commands of a journal.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_formats::timeline;
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
  coldframe-lab replay run.journal --timeline run.json   # open it in ui.perfetto.dev

Exit code 1: the engine did not issue the commands of the journal.")]
pub struct Args {
    /// The journal.
    journal: PathBuf,
    /// Write faults, stages and loads as a timeline for Perfetto and chrome://tracing. A journal has no times, so stages are instants;
    /// `coldframe-lab sim --timeline` draws their length.
    #[arg(long, value_name = "FILE.json")]
    timeline: Option<PathBuf>,
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
    if let Some(to) = &args.timeline {
        write_timeline(&bytes, to)?;
    }
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

fn write_timeline(bytes: &[u8], to: &Path) -> Result<(), Failure> {
    let refused = |e: String| Failure::Other { message: format!("{}: {e}", to.display()), code: 5 };
    let mut out = BufWriter::new(File::create(to).map_err(|e| refused(e.to_string()))?);
    timeline(bytes, None, &mut out).map_err(|e| refused(e.to_string()))?;
    out.flush().map_err(|e| refused(e.to_string()))
}
