//! `coldframe-lab trace cut`: a part of a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_formats::cut;
use coldframe_sheet::quantity::{self, human_count};
use coldframe_store::Part;

use crate::failure::Failure;
use crate::output;

/// Write a part of a trace as a new trace, with stronger compression.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab trace cut long.parquet -o short.parquet --skip 50000000 --rows 4000000
  coldframe-lab trace cut timed.parquet -o second.parquet --from 1s --until 2s
  coldframe-lab trace cut long.parquet -o small.parquet --instructions --compress 19")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The trace to write.
    #[arg(short)]
    output: PathBuf,
    /// Rows to leave out at the start.
    #[arg(long, default_value_t = 0)]
    skip: u64,
    /// Rows to keep after that.
    #[arg(long)]
    rows: Option<u64>,
    /// Of these, keep those from this time on, by the trace's clock (`1.5s`).
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Of these, keep those before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Of these, keep the instruction fetches only.
    #[arg(long)]
    instructions: bool,
    /// zstd level.
    #[arg(long, default_value_t = 19, value_parser = clap::value_parser!(i32).range(1..=22))]
    compress: i32,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let part = Part {
        skip: args.skip,
        rows: args.rows,
        from_ns: nanoseconds("--from", args.from.as_deref())?,
        until_ns: nanoseconds("--until", args.until.as_deref())?,
        instructions_only: args.instructions,
    };
    let summary = cut(&args.trace, &args.output, part, args.compress)?;
    let text = format!(
        "{}: {} references, {} bytes\n",
        args.output.display(),
        human_count(summary.references),
        human_count(summary.bytes_written)
    );
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn nanoseconds(option: &str, text: Option<&str>) -> Result<Option<u64>, Failure> {
    Ok(Failure::option(option, text, quantity::time)?.map(|time| time.0 / 1000))
}
