//! `coldframe-lab trace import`: another tool's trace to Parquet.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_formats::{import, parse_spec, Options, FORMATS};
use coldframe_sheet::quantity::human_count;
use coldframe_store::{Reader, Summary};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;

/// Turn another tool's trace into a Parquet trace.
#[derive(clap::Args)]
#[command(after_help = after())]
pub struct Args {
    /// FORMAT:PATH; PATH `-` is standard input; plain, gz, xz or zst. For a bare PATH, the format is guessed
    /// where that is safe.
    spec: String,
    /// The trace to write [default: PATH with the suffix .parquet].
    #[arg(short, value_parser = suffix::trace)]
    output: Option<PathBuf>,
    /// Meaning of the columns (csv, tsv, blanks), by name or number: address, size, kind, task, time.
    #[arg(long, value_name = "ROLE=COLUMN,...")]
    columns: Vec<String>,
    /// Units that the format does not define: address=512B, size=1B, time=us; address=hex:1B for hexadecimal without
    /// 0x.
    #[arg(long, value_name = "WHAT=UNIT,...")]
    unit: Vec<String>,
    /// Meaning of the values in the kind column.
    #[arg(long, value_name = "WORD=KIND,...")]
    kinds: Vec<String>,
    /// Number objects by their ids or keys in the order of their first request (oracleGeneral, csv, tsv, blanks). Each
    /// takes one unit of address.
    #[arg(long)]
    number_objects: bool,
    /// Leave out and count lines that break the format, instead of stopping at the first.
    #[arg(long)]
    skip_bad: bool,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

fn after() -> String {
    let mut text = String::from("Formats:\n");
    for format in FORMATS {
        text += &format!("  {:<19} {}\n", format.name, format.summary);
    }
    text + "\nExamples:\n  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ls 9>ls.txt\n  \
            coldframe-lab trace import lackey:ls.txt -o ls.parquet\n  zcat trace.din.gz | coldframe-lab trace import \
            din:- -o trace.parquet\n  \
            coldframe-lab trace import csv:io.csv --columns time=ts,kind=op,address=offset,size=length --unit \
            time=us,address=1B,size=1B\n  \
            coldframe-lab trace import block-csv:Financial1.spc --columns task=1,address=2,size=3,kind=4,time=5 \
            --unit address=512B,size=1B,time=s\n  \
            coldframe-lab trace import csv:cluster52.csv --columns time=1,address=2,kind=6 --unit time=s,address=4KiB \
            --number-objects\n  \
            coldframe-lab trace import oracleGeneral:w1.bin.zst --unit address=4KiB --number-objects"
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let mut spec = parse_spec(&self.spec)?;
        spec.options = declarations(&self)?;
        if spec.guessed && !quiet {
            output::tell(&format!(
                "{0}: format {1} guessed from the contents; {1}:{0} says it\n",
                self.spec, spec.format.name
            ));
        }
        let out = match (&self.output, &spec.path) {
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
        let notes = Reader::open(&out)?.provenance().notes.clone();
        let imported = Imported { summary, path: out, format: spec.format.name, guessed: spec.guessed, notes };
        output::result(&self.format, &imported, || words(&imported, spec.format.skips))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An imported trace.
#[derive(Serialize, JsonSchema)]
pub struct Imported {
    #[serde(flatten)]
    summary: Summary,
    path: PathBuf,
    format: &'static str,
    guessed: bool,
    notes: Vec<String>,
}

fn declarations(args: &Args) -> Result<Options, Failure> {
    let mut options = Options { number_objects: args.number_objects, skip_bad: args.skip_bad, ..Options::default() };
    args.columns.iter().try_for_each(|text| options.declare_columns(text))?;
    args.unit.iter().try_for_each(|text| options.declare_units(text))?;
    args.kinds.iter().try_for_each(|text| options.declare_kinds(text))?;
    Ok(options)
}

/// `skips`: the lines that the format says to skip.
fn words(imported: &Imported, skips: &str) -> String {
    let Imported { summary, path, notes, .. } = imported;
    let mut text = format!(
        "{}: {} references read ({} fetches, {} reads, {} writes), {} of {} lines or records skipped ({skips}), {} \
            bytes\n",
        path.display(),
        human_count(summary.references),
        human_count(summary.instructions),
        human_count(summary.reads),
        human_count(summary.writes),
        human_count(summary.skipped),
        human_count(summary.lines),
        human_count(summary.bytes_written),
    );
    if let Some(first) = &summary.first_bad {
        text += &format!("{} bad lines left out, the first: {first}\n", human_count(summary.bad));
    }
    // The note on bad lines has just been printed.
    let is_new = |note: &&String| summary.first_bad.as_ref().is_none_or(|first| !note.contains(first.as_str()));
    notes.iter().filter(is_new).for_each(|note| text += &format!("note: {note}\n"));
    text
}
