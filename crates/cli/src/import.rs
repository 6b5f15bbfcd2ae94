//! `coldframe import`: another tool's trace to Parquet.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_report::table::human_count;
use coldframe_trace::{import, parse_spec, FORMATS};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;

/// Turn another tool's trace into a Parquet trace.
#[derive(clap::Args)]
#[command(after_help = after())]
pub struct Args {
    /// FORMAT:PATH; PATH `-` is standard input; plain, gz, xz or zst.
    spec: String,
    /// The trace to write [default: PATH with the suffix .parquet].
    #[arg(short)]
    output: Option<PathBuf>,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

fn after() -> String {
    let mut text = String::from("Formats:\n");
    for format in FORMATS {
        text += &format!("  {:<8} {}\n", format.name, format.summary);
    }
    text + "\nExamples:\n  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>ls.txt\n  \
            coldframe import lackey:ls.txt -o ls.parquet\n  zcat trace.din.gz | coldframe import din:- -o trace.parquet"
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let spec = parse_spec(&args.spec)?;
    let out = match (&args.output, &spec.path) {
        (Some(out), _) => out.clone(),
        (None, Some(path)) => path.with_extension("parquet"),
        (None, None) => {
            return Err(Failure::usage("standard input has no name to derive the output's from; give -o TRACE"))
        }
    };
    let mut line = Line::new(quiet);
    let summary = import(&spec, &out, &mut |p| {
        line.show(
            p.bytes,
            p.bytes_total,
            &format!("{} references, {} lines", human_count(p.references), human_count(p.lines)),
        );
    })?;
    drop(line);
    if args.format == "json" {
        let value = json!({
            "path": out, "references": summary.references, "instructions": summary.instructions, "reads": summary.reads,
            "writes": summary.writes, "lines": summary.lines, "skipped": summary.skipped, "bytes_written": summary.bytes_written,
            "pages_1KiB": summary.pages_1KiB,
        });
        output::write(None, &output::json(&value))?;
    } else {
        let text = format!(
            "{}: {} references read ({} fetches, {} reads, {} writes), {} of {} lines skipped (blank lines, tool chatter, escapes), {} bytes\n",
            out.display(),
            human_count(summary.references),
            human_count(summary.instructions),
            human_count(summary.reads),
            human_count(summary.writes),
            human_count(summary.skipped),
            human_count(summary.lines),
            human_count(summary.bytes_written),
        );
        output::write(None, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}
