//! `coldframe-lab trace info`: the contents of a trace and where it comes from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_experiment::drive::is_swap_trace;
use coldframe_experiment::info::Info;
use coldframe_experiment::string::sha256;
use coldframe_plots::swap_analysis::{analyse, SwapInfo};
use coldframe_plots::trace_info::{notes, words};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Show the contents of a trace and where it comes from.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe-lab trace info bzip2.parquet\n  coldframe-lab trace info bzip2.parquet \
        --format json | jq .references\n  coldframe-lab trace info swap.csv.zst --plot"
)]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// For a swap trace: draw slots over time and lifetimes.
    #[arg(long)]
    plot: bool,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        if is_swap_trace(&self.trace) {
            return swap_trace(&self);
        }
        if self.plot {
            return Err(Failure::usage(
                "--plot is for swap traces; `coldframe-lab sim --plot` draws what a reference trace costs",
            ));
        }
        let info = Info::read(&self.trace)?;
        output::result(&self.format, &info, || words(&info))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn swap_trace(args: &Args) -> Result<ExitCode, Failure> {
    let trace = coldframe_formats::swap::read(&args.trace)?;
    let analysis = analyse(&trace);
    let words = || {
        let plots = if args.plot { analysis.plots() } else { Vec::new() };
        plots.iter().fold(analysis.text() + &notes(&trace.notes), |text, plot| text + "\n" + &plot.text(72, 21))
    };
    let (path, sha256) = (&args.trace, sha256(&args.trace)?);
    output::result(
        &args.format,
        &SwapTraceInfo { analysis: analysis.info.clone(), path, sha256, notes: &trace.notes },
        words,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// What a swap trace has.
#[derive(Serialize, JsonSchema)]
pub struct SwapTraceInfo<'a> {
    #[serde(flatten)]
    analysis: SwapInfo,
    path: &'a Path,
    sha256: String,
    notes: &'a [String],
}
