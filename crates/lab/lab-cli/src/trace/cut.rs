//! `coldframe-lab trace cut`: a part of a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_formats::cut;
use coldframe_sheet::quantity::{self, human_count};
use coldframe_store::Part;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

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
    #[arg(short, value_parser = suffix::trace)]
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

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let part = Part {
            skip: self.skip,
            rows: self.rows,
            from_ns: nanoseconds("--from", self.from.as_deref())?,
            until_ns: nanoseconds("--until", self.until.as_deref())?,
            instructions_only: self.instructions,
        };
        let summary = cut(&self.trace, &self.output, part, self.compress)?;
        let text = format!(
            "{}: {} references, {} bytes\n",
            self.output.display(),
            human_count(summary.references),
            human_count(summary.bytes_written)
        );
        output::text(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn nanoseconds(option: &str, text: Option<&str>) -> Result<Option<u64>, Failure> {
    Ok(Failure::option(option, text, quantity::time)?.map(|time| time.0 / 1000))
}
