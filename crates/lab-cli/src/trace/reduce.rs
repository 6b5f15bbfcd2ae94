//! `coldframe-lab trace reduce`: a smaller trace that says what it keeps.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_formats::{reduce, Keep, Reduced};
use coldframe_sheet::quantity::{self, human_count};
use coldframe_store::Reader;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Make a trace smaller: exact for LRU and OPT from a memory size on, or a sample of pages with known errors.
#[derive(clap::Args)]
#[command(
    override_usage = "coldframe-lab trace reduce -o <OUTPUT> <--above|--sample|--sample-pages> <TRACE>",
    after_help = "\
Examples:
  coldframe-lab trace reduce long.parquet -o small.parquet --above 256KiB
  coldframe-lab trace reduce long.parquet -o sample.parquet --sample 1%
  coldframe-lab trace reduce long.parquet -o sample.parquet --sample-pages 8192
  coldframe-lab sim small.parquet --policy lru,opt --ram 256KiB,1MiB

--above drops the references that make no difference in any memory of that size or more (Safely Allowed Drop, by \
Kaplan and others). The misses of lru and opt stay exactly the same.
--sample and --sample-pages keep all references to the pages with the smallest hashes (SHARDS). lru's misses are then \
estimates with a standard error.
The trace and each result say how the trace was reduced. Questions that a reduced trace cannot answer are refused. For \
a part of the time or of the references, see `coldframe-lab trace cut`."
)]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The trace to write.
    #[arg(short)]
    output: PathBuf,
    #[command(flatten)]
    keep: KeepArgs,
    /// Size of a page [default: 4KiB, or the trace's own if that is larger].
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// zstd level.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=22))]
    compress: i32,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// What is kept: one of these.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct KeepArgs {
    /// Keep the misses of lru and opt exact for memories of this size and more.
    #[arg(long, value_name = "SIZE")]
    above: Option<String>,
    /// Keep this share of the pages.
    #[arg(long, value_name = "PERCENT")]
    sample: Option<String>,
    /// Keep at most this number of pages.
    #[arg(long, value_name = "PAGES")]
    sample_pages: Option<u64>,
}

/// The usual page.
const PAGE: u64 = 4096;

/// A reduced trace.
#[derive(Serialize, JsonSchema)]
pub struct ReducedTrace<'a> {
    #[serde(flatten)]
    reduced: &'a Reduced,
    path: &'a Path,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let page = match &args.page {
        Some(text) => quantity::bytes(text).map_err(|e| Failure::usage(format!("--page: {e}")))?.0,
        None => Reader::open(&args.trace)?.provenance().page_size.unwrap_or(PAGE).max(PAGE),
    };
    let reduced = reduce(&args.trace, &args.output, keep(&args.keep, page)?, page, args.compress)?;
    let made = ReducedTrace { path: &args.output, reduced: &reduced };
    output::result(&args.format, &made, || words(&args, &reduced))?;
    Ok(ExitCode::SUCCESS)
}

fn keep(args: &KeepArgs, page: u64) -> Result<Keep, Failure> {
    match (&args.above, &args.sample, args.sample_pages) {
        (Some(text), ..) => {
            let size = quantity::bytes(text).map_err(|e| Failure::usage(format!("--above: {e}")))?.0;
            match size / page.max(1) {
                0 => Err(Failure::usage(format!("--above: {text} is less than a page of {page} bytes; give more"))),
                pages => Ok(Keep::Above(pages)),
            }
        }
        (None, Some(text), _) => share(text).map(Keep::Share).ok_or_else(|| {
            Failure::usage(format!("--sample: `{text}` cannot be read; give a share of the pages from 0.0001% to 100%"))
        }),
        (None, None, pages) => Ok(Keep::Pages(pages.unwrap_or_default())),
    }
}

/// A percentage in parts of a million.
fn share(text: &str) -> Option<u64> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    let parts = (percent * 10_000.0).round();
    (1.0..=1e6).contains(&parts).then_some(parts as u64)
}

fn words(args: &Args, reduced: &Reduced) -> String {
    let (whole, summary) = (&reduced.reduction, &reduced.summary);
    let percent = 100.0 * summary.rows as f64 / reduced.rows.max(1) as f64;
    format!(
        "{}: {} of {} rows ({percent:.2} %), {} bytes; the whole had {} references to {} pages\n",
        args.output.display(),
        human_count(summary.rows),
        human_count(reduced.rows),
        human_count(summary.bytes_written),
        human_count(whole.references),
        human_count(whole.pages),
    )
}
