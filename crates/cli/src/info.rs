//! `coldframe info`: what a trace is and where it comes from.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_report::experiment::sha256;
use coldframe_report::reuse::{reuse, Reuse};
use coldframe_report::swap_analysis::analyse;
use coldframe_report::table::human_count;
use coldframe_trace::heat::{heat, Heat};
use coldframe_trace::{Fidelity, Mapping, Reader};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::sim_swap::is_swap_trace;

/// Show what a trace holds and where it comes from.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe info bzip2.parquet\n  coldframe info bzip2.parquet --format json | jq .references\n  coldframe info swap.csv.zst --plot"
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
            "--plot is for swap traces; `coldframe sim --plot` draws what a reference trace costs",
        ));
    }
    let reader = Reader::open(&args.trace)?;
    let trace = reader.provenance();
    let bytes = reader.bytes();
    let mut value = serde_json::to_value(trace).expect("provenance is plain data");
    value["path"] = json!(args.trace);
    value["rows"] = reader.rows().into();
    value["bytes"] = bytes.into();
    value["sha256"] = sha256(&args.trace)?.into();
    let heat = heat(&args.trace, STRETCHES, COLUMNS)?;
    let hottest = hottest(&heat, &trace.mappings);
    value["working_set_pages_4KiB"] = json!(heat.working_set);
    value["phases"] = json!(heat.phases);
    value["hottest"] =
        hottest.iter().map(|h| json!({ "address": h.address, "name": h.name, "references": h.references })).collect();
    let reuse = if distances_known(trace.fidelity) { Some(reuse(&args.trace)?) } else { None };
    value["reuse"] = json!(reuse.as_ref().map(distances));
    if args.format == "json" {
        output::write(None, &output::json(&value))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let mut line = |key: &str, value: &str| text += &format!("{key:<14}{value}\n");
    line("trace", &args.trace.display().to_string());
    line("command", trace.command.as_deref().unwrap_or("not known"));
    line("recorder", &trace.recorder);
    line("fidelity", value["fidelity"].as_str().unwrap_or_default());
    if let Some(page) = trace.page_size {
        line("reduced to", &format!("pages of {page} bytes"));
    }
    if let Some(whole) = trace.reduction {
        let text = format!("{} references to {} pages", human_count(whole.references), human_count(whole.pages));
        line("reduced from", &text);
    }
    line("references", &human_count(trace.references));
    let split = [("  fetches", trace.instructions), ("  reads", trace.reads), ("  writes", trace.writes)];
    split.iter().for_each(|(key, count)| line(key, &human_count(*count)));
    line("footprint", &format!("{} KiB in pages of 1 KiB", human_count(trace.pages_1KiB)));
    let most = heat.working_set.iter().max().copied().unwrap_or(0);
    let drawn = spark(&heat.working_set);
    line(
        "working set",
        &format!("{drawn} up to {} pages of 4 KiB in 1/{} of the trace", human_count(most), heat.columns),
    );
    line("phases", &format!("{} begin where the pages change", heat.phases.len()));
    for h in &hottest {
        let share = 100.0 * h.references as f64 / trace.references.max(1) as f64;
        line("hottest", &format!("{share:>5.1} % from {:#x} {}", h.address, h.name));
    }
    if reuse.is_none() {
        line("reuse", &format!("not known: a {} trace lacks the references between", trace.fidelity));
    }
    for (key, text) in reuse.iter().flat_map(reuse_lines) {
        line(&key, &text);
    }
    line("rows", &human_count(reader.rows()));
    let each = bytes as f64 / trace.references.max(1) as f64;
    line("size", &format!("{} bytes, {each:.2} a reference", human_count(bytes)));
    for task in &trace.tasks {
        line("task", &format!("{}: {}", task.id, task.name));
    }
    for mapping in &trace.mappings {
        line("mapping", &format!("{:#x}-{:#x} {} {}", mapping.start, mapping.end, mapping.protection, mapping.name));
    }
    for note in &trace.notes {
        line("note", note);
    }
    line("sha256", value["sha256"].as_str().unwrap_or_default());
    output::write(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the references between two to the same page are there, all or in a known share.
fn distances_known(fidelity: Fidelity) -> bool {
    !matches!(fidelity, Fidelity::Sampled | Fidelity::Window | Fidelity::Faults)
}

/// For machines.
fn distances(reuse: &Reuse) -> serde_json::Value {
    let bin = |b: &coldframe_report::reuse::Bin| json!({ "up_to_pages": b.up_to, "references": b.references, "error": b.error });
    let bins: Vec<_> = reuse.bins.iter().map(bin).collect();
    json!({ "page": reuse.page, "first_references": reuse.first, "references": reuse.references, "followed": reuse.followed, "bins": bins })
}

/// For people: a line a bin that has references.
fn reuse_lines(reuse: &Reuse) -> Vec<(String, String)> {
    let share = |references: f64| 100.0 * references / reuse.references.max(1) as f64;
    let (kib, followed) = (reuse.page / 1024, 100.0 * reuse.followed);
    let mut lines =
        vec![("reuse".to_owned(), format!("by pages of {kib} KiB touched since, {followed:.1} % of pages followed"))];
    for bin in reuse.bins.iter().filter(|bin| bin.references != 0.0) {
        let error = if reuse.followed < 1.0 { format!(" +- {:.3}", share(bin.error)) } else { String::new() };
        lines.push((format!("  up to {}", human_count(bin.up_to)), format!("{:>8.4} %{error}", share(bin.references))));
    }
    lines.push(("  first".to_owned(), format!("{:>8.4} %", share(reuse.first as f64))));
    lines
}

fn swap_trace(args: &Args) -> Result<ExitCode, Failure> {
    let trace = coldframe_trace::swap::read(&args.trace)?;
    let analysis = analyse(&trace);
    let text = if args.format == "json" {
        let mut value = analysis.json();
        value["path"] = json!(args.trace);
        value["sha256"] = sha256(&args.trace)?.into();
        value["notes"] = json!(trace.notes);
        output::json(&value)
    } else {
        let notes = trace.notes.iter().map(|note| format!("{:<14}{note}\n", "note")).collect::<String>();
        let plots = if args.plot { analysis.plots() } else { Vec::new() };
        plots.iter().fold(analysis.text() + &notes, |text, plot| text + "\n" + &plot.text(72, 21))
    };
    output::write(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Stretches of touched memory that are compared, and of the trace.
const STRETCHES: usize = 64;
const COLUMNS: usize = 40;
/// Stretches that are named.
const NAMED: usize = 4;

/// A stretch of memory that much is touched.
struct Hot {
    address: u64,
    name: String,
    references: u64,
}

/// The stretches with the most references, by the mapping in which they begin.
fn hottest(heat: &Heat, mappings: &[Mapping]) -> Vec<Hot> {
    let references = |row: usize| {
        let cells = row * heat.columns..(row + 1) * heat.columns;
        heat.reads[cells.clone()].iter().sum::<u64>() + heat.writes[cells].iter().sum::<u64>()
    };
    let name = |address: u64| {
        let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
        mapping.map_or_else(String::new, |mapping| mapping.name.clone())
    };
    let mut all: Vec<Hot> = (0..heat.rows)
        .map(|row| (heat.addresses[row], references(row)))
        .map(|(address, references)| Hot { address, name: name(address), references })
        .collect();
    all.sort_by_key(|hot| std::cmp::Reverse(hot.references));
    all.truncate(NAMED);
    all
}

/// Counts as bars of eight heights.
fn spark(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    counts.iter().map(|count| BARS[(count * 7).div_ceil(most) as usize]).collect()
}
