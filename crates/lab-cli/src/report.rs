//! `coldframe-lab report`: results as one HTML page.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_experiment::string::sha256;
use coldframe_experiment::ExperimentError;
use coldframe_plots::html::Page;
use coldframe_show::html::{Html, MAP_COLUMNS, MAP_ROWS};
use coldframe_store::heat::heat;
use coldframe_store::Reader;

use crate::failure::Failure;
use crate::output;

/// Write results as one HTML page that needs no network.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab advise bzip2.parquet --format json > advice.json; coldframe-lab report advice.json -o report.html
  coldframe-lab sim bzip2.parquet --policy clock,sieve,opt -o runs.json; coldframe-lab report runs.json --trace bzip2.parquet -o report.html

Results are files written by `advise` and `sim` with --format json. The page stays below 2 MB for any trace.")]
pub struct Args {
    /// Results.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// The trace of all results, for the map of touched memory.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// The page to write.
    #[arg(short, value_name = "REPORT.html", default_value = "report.html")]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let mut page = Page::default();
    for path in &args.results {
        let name = path.display().to_string();
        let io = |e: std::io::Error| ExperimentError::Io { path: name.clone(), reason: e.to_string() };
        page.add(&name, &std::fs::read(path).map_err(io)?)?;
    }
    if let Some(path) = &args.trace {
        page.add_heat(&path.display().to_string(), &sha256(path)?, heat(path, MAP_ROWS, MAP_COLUMNS)?)?;
        page.add_group(&Reader::open(path)?.provenance().group);
    }
    output::file(&args.output, &page.html()?)?;
    Ok(ExitCode::SUCCESS)
}
