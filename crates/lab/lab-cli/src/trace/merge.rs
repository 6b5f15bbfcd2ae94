//! `coldframe-lab trace merge` and `coldframe-lab trace mix`: several traces as one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_formats::{merge, Order};
use coldframe_sheet::quantity::{self, human_count};
use coldframe_store::Summary;
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Merge traces of several processes by time.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab trace merge make.parquet cc1.parquet -o build.parquet
  coldframe-lab trace merge server.parquet client.parquet -o both.parquet --format json

All traces need times. Traces of one clock keep their distance in time; other traces begin together. Tasks and address \
spaces stay separate.")]
pub struct Args {
    /// The traces.
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The trace to write.
    #[arg(short, value_parser = suffix::trace)]
    output: PathBuf,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// Make a trace of several programs that take turns.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab trace mix --task chess.parquet*3 --task bzip2.parquet --slice 100ms -o mix.parquet
  coldframe-lab trace mix --task chess.parquet*2 --slice 50000 -o mix.parquet
  coldframe-lab trace mix --task sqlite.parquet --task shop.parquet --rounds 3 --visit 60s -o phone.parquet

A slice is a time, by each trace's own clock, or a number of references. With --rounds N, each program comes to the \
foreground N times, as on a phone (sim --system drswap). Each time it runs an equal part of its trace and stays for \
--visit.")]
pub struct MixArgs {
    /// A trace, and how many programs run it; may repeat.
    #[arg(long, required = true, value_name = "TRACE[*N]")]
    task: Vec<String>,
    /// How long a program runs before its turn ends: 100ms, or a number of references.
    #[arg(long, required_unless_present = "rounds")]
    slice: Option<String>,
    /// Instead of --slice: how often each program comes to the foreground.
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    rounds: Option<u32>,
    /// How long a program stays in the foreground, in the mix's own time.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "rounds")]
    visit: String,
    /// The trace to write.
    #[arg(short, value_parser = suffix::trace)]
    output: PathBuf,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// Most programs of one `--task`.
const COPIES_MAX: usize = 256;

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let summary = merge(&self.traces, Order::Time, &self.output)?;
        show(&self.output, self.traces.len(), &self.format, &summary)
    }
}

impl Verb<Failure> for MixArgs {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let mut traces = Vec::new();
        for task in &self.task {
            let (path, copies) = copies(task)?;
            traces.extend(std::iter::repeat_n(path, copies));
        }
        let order = match (self.rounds, &self.slice) {
            (Some(rounds), _) => Order::Visits { rounds, nanoseconds: visit(&self.visit)? },
            (None, Some(text)) => slice(text)?,
            (None, None) => return Err(Failure::usage("--slice is not given; give it, or --rounds")),
        };
        let summary = merge(&traces, order, &self.output)?;
        show(&self.output, traces.len(), &self.format, &summary)
    }
}

fn copies(task: &str) -> Result<(PathBuf, usize), Failure> {
    let Some((path, copies)) = task.rsplit_once('*') else { return Ok((task.into(), 1)) };
    match copies.parse() {
        Ok(copies @ 1..=COPIES_MAX) => Ok((path.into(), copies)),
        _ => Err(Failure::usage(format!(
            "--task {task}: `{copies}` is no number of programs; write TRACE*N with N from 1 to 256"
        ))),
    }
}

fn slice(text: &str) -> Result<Order, Failure> {
    if let Ok(references) = text.parse() {
        return Ok(Order::References(references));
    }
    let time = quantity::time(text)
        .map_err(|e| Failure::usage(format!("--slice {text}: {e}; or give a number of references")))?;
    Ok(Order::Nanoseconds(time.0 / 1000))
}

fn visit(text: &str) -> Result<u64, Failure> {
    let time = quantity::time(text).map_err(|e| Failure::usage(format!("--visit {text}: {e}; such as 60s")))?;
    Ok(time.0 / 1000)
}

/// A trace of several programs.
#[derive(Serialize, JsonSchema)]
pub struct Merged<'a> {
    path: &'a Path,
    programs: usize,
    references: u64,
    rows: u64,
    bytes_written: u64,
}

fn show(path: &Path, programs: usize, format: &str, summary: &Summary) -> Result<ExitCode, Failure> {
    let Summary { references, rows, bytes_written, .. } = *summary;
    let words = || format!("{}: {} references of {programs} programs\n", path.display(), human_count(references));
    output::result(format, &Merged { path, programs, references, rows, bytes_written }, words)?;
    Ok(ExitCode::SUCCESS)
}
