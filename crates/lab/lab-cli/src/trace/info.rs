//! `coldframe-lab trace info`: the contents of a trace and where it comes from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_experiment::drive::is_swap_trace;
use coldframe_experiment::info::Info;
use coldframe_experiment::string::sha256;
use coldframe_plots::swap_analysis::{analyse, SwapInfo};
use coldframe_sheet::quantity::human_count;
use coldframe_show::text::wrap;
use coldframe_store::heat::Heat;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Show the contents of a trace and where it comes from.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe-lab trace info bzip2.parquet\n  coldframe-lab trace info bzip2.parquet --format json | jq .references\n  coldframe-lab trace info swap.csv.zst --plot"
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

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    if is_swap_trace(&args.trace) {
        return swap_trace(&args);
    }
    if args.plot {
        return Err(Failure::usage(
            "--plot is for swap traces; `coldframe-lab sim --plot` draws what a reference trace costs",
        ));
    }
    let info = Info::read(&args.trace)?;
    output::result(&args.format, &info, || words(&info))?;
    Ok(ExitCode::SUCCESS)
}

fn words(info: &Info) -> String {
    let Info { provenance: trace, rows, bytes, sha256, heat, hottest, .. } = info;
    let mut text = String::new();
    let mut line = |key: &str, value: &str| text += &lines(key, value, output::width());
    line("trace", &info.path.display().to_string());
    line("command", trace.command.as_deref().unwrap_or("not known"));
    line("recorder", &trace.recorder);
    line("fidelity", trace.fidelity.name());
    if let Some(page) = trace.page_size {
        line("reduced to", &format!("pages of {page} bytes"));
    }
    line("references", &human_count(trace.references));
    let split = [("  fetches", trace.instructions), ("  reads", trace.reads), ("  writes", trace.writes)];
    split.iter().for_each(|(key, count)| line(key, &human_count(*count)));
    line("footprint", &format!("{} KiB in pages of 1 KiB", human_count(trace.pages_1KiB)));
    let most = heat.working_set.iter().max().copied().unwrap_or(0);
    let drawn = spark(&heat.working_set);
    line("working set", &drawn);
    line("", &format!("up to {} pages of 4 KiB in 1/{} of the trace", human_count(most), heat.columns));
    line("phases", &phases(heat));
    line("", &format!("{} begin, each where most pages are new", heat.phases.len()));
    // An access that crosses pages counts as a reference to each of them.
    let all: u64 = heat.counts.iter().map(|(_, references)| references).sum();
    for h in hottest {
        let share = 100.0 * h.references as f64 / all.max(1) as f64;
        let name = if h.name.is_empty() { "no named mapping" } else { &h.name };
        let pages = human_count(h.pages);
        line("hottest", &format!("{share:>5.1} % in {name}, {pages} pages of 4 KiB, most at {:#x}", h.address));
    }
    line("rows", &human_count(*rows));
    let each = *bytes as f64 / trace.references.max(1) as f64;
    line("size", &format!("{} bytes, {each:.2} a reference", human_count(*bytes)));
    for task in &trace.tasks {
        line("task", &format!("{}: {}", task.id, task.name));
    }
    for mapping in &trace.mappings {
        line("mapping", &format!("{:#x}-{:#x} {} {}", mapping.start, mapping.end, mapping.protection, mapping.name));
    }
    for note in &trace.notes {
        line("note", note);
    }
    line("sha256", sha256);
    text
}

/// Columns of a key.
const KEY: usize = 14;

/// A key and its value. On a narrow page the value continues on the next line.
fn lines(key: &str, value: &str, width: usize) -> String {
    wrap(&format!("{key:<KEY$}"), value, KEY, width).join("\n") + "\n"
}

fn swap_trace(args: &Args) -> Result<ExitCode, Failure> {
    let trace = coldframe_formats::swap::read(&args.trace)?;
    let analysis = analyse(&trace);
    let words = || {
        let notes = trace.notes.iter().map(|note| lines("note", note, output::width())).collect::<String>();
        let plots = if args.plot { analysis.plots() } else { Vec::new() };
        plots.iter().fold(analysis.text() + &notes, |text, plot| text + "\n" + &plot.text(72, 21))
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

/// Marks the beginnings of phases below the bars of the working set.
fn phases(heat: &Heat) -> String {
    (0..heat.columns).map(|column| if heat.phases.contains(&column) { '|' } else { '-' }).collect()
}

/// Counts as bars of eight heights.
fn spark(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    counts.iter().map(|count| BARS[(count * 7).div_ceil(most) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_goes_on_below_itself_and_keeps_its_blanks() {
        assert_eq!(lines("rows", "  1.5 % of all", 80), "rows            1.5 % of all\n");
        let text = lines("hottest", "92.2 % in /usr/lib/libbz2.so, 6 pages of 4 KiB", 40);
        assert_eq!(
            text,
            "hottest       92.2 % in\n              /usr/lib/libbz2.so, 6\n              pages of 4 KiB\n"
        );
    }
}
