//! `coldframe-lab trace convert`: a trace in another tool's format.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_formats::{export, EXPORTS};
use coldframe_sheet::quantity::{self, human_count};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Write a trace in another tool's format, to check a result with that tool.
#[derive(clap::Args)]
#[command(after_help = after())]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The format.
    #[arg(long, value_name = "NAME")]
    to: String,
    /// The file to write.
    #[arg(short)]
    output: PathBuf,
    /// Page size: each access becomes requests for whole pages.
    #[arg(long, default_value = "4KiB")]
    page: String,
    /// How to print the count.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

fn after() -> String {
    let mut text = String::from("Formats:\n");
    for format in EXPORTS {
        text += &format!("  {:<14} {}\n", format.name, format.summary);
    }
    text + "\nExamples:\n  coldframe-lab trace convert chess.parquet --to oracleGeneral -o chess.oracleGeneral --page \
        4KiB\n  \
            coldframe-lab trace convert disk.parquet --to swap -o disk.csv && coldframe-lab sim disk.csv --system lobi"
}

/// A trace in another tool's format.
#[derive(Serialize, JsonSchema)]
pub struct Converted<'a> {
    path: &'a Path,
    format: &'a str,
    page_bytes: u64,
    requests: u64,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let page = quantity::bytes(&self.page).map_err(|e| Failure::usage(format!("--page {}: {e}", self.page)))?;
        let name = self.output.display().to_string();
        let forms: &[&str] = if self.to == "swap" { &["csv"] } else { &["bin", "oracleGeneral"] };
        suffix::one_of(&name, forms).map_err(|why| Failure::usage(format!("-o {name}: {why}")))?;
        let requests = export(&self.trace, &self.to, &self.output, page.0)?;
        let words = || format!("{}: {} requests as {}\n", self.output.display(), human_count(requests), self.to);
        let made = Converted { path: &self.output, format: &self.to, page_bytes: page.0, requests };
        output::result(&self.format, &made, words)?;
        Ok(ExitCode::SUCCESS)
    }
}
