//! `coldframe --verify -- PROGRAM`: the program at three sizes of RAM, measured beside predicted.

use std::ffi::OsString;

use clap::Parser;
use coldframe_answer::json::Verified;
use coldframe_answer::{Answer, Point};
use coldframe_sheet::quantity::{human_count, human_seconds, ram_size};
use coldframe_show::table::styled;
use serde_json::Value;

use crate::failure::Failure;
use crate::{output, Cli, Verb};

/// Runs the program at some sizes of the curve, and prints and returns the results.
///
/// # Errors
/// A run cannot be started.
pub fn run(answer: &Answer, program: &[OsString]) -> Result<Vec<Verified>, Failure> {
    let sizes = worth_running(answer);
    eprintln!("coldframe: {} runs {} times more now, and all that it does happens again", answer.program, sizes.len());
    let points: Vec<&Point> = sizes.iter().filter_map(|size| answer.at(*size)).collect();
    let runs = points.into_iter().map(|point| Ok((point, measured(point.ram_bytes, program)?)));
    let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
    let rows = runs.iter().map(|(point, measured)| row(point, measured)).collect();
    let headings = ["--ram", "predicted", "measured", "off by", "faults predicted", "measured"];
    output::write(None, &format!("\n{}\n", styled(&headings, rows, 0)))?;
    Ok(runs.iter().filter_map(|(point, measured)| verified(point, measured)).collect())
}

/// A repeated run may take this many times the program's own time.
const PATIENT: f64 = 8.0;

/// Sizes to run the program at: the advised size, and one on each side of the point where it begins to thrash, if
/// that does not take too long; otherwise half of the RAM that it needs.
fn worth_running(answer: &Answer) -> Vec<u64> {
    let thrash = answer.thrash_bytes.unwrap_or(answer.needed_bytes / 2);
    let near = |ram: u64| answer.curve.iter().map(|point| point.ram_bytes).min_by_key(|size| size.abs_diff(ram));
    let below = answer.curve.iter().find(|point| point.ram_bytes <= thrash * 3 / 4);
    let below = below.filter(|point| point.worst() <= PATIENT * answer.program_seconds).map(|point| point.ram_bytes);
    let other = below.or(near(answer.needed_bytes / 2));
    let mut sizes: Vec<u64> = [answer.ram_bytes, near(thrash), other].into_iter().flatten().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    // If two of them are equal, the next ones of the curve.
    for point in &answer.curve {
        if sizes.len() < 3 && !sizes.contains(&point.ram_bytes) {
            sizes.push(point.ram_bytes);
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

/// A run as a report shows it; `None` if it failed.
fn verified(point: &Point, measured: &Value) -> Option<Verified> {
    let seconds = measured["program"]["seconds"].as_f64().filter(|_| measured["program"]["status"] == 0)?;
    Some(Verified { ram_bytes: point.ram_bytes, seconds, true_faults: measured["counts"]["true_faults"].as_u64() })
}

/// The statistics of a run of `coldframe run --ram SIZE -- PROGRAM`.
fn measured(size: u64, program: &[OsString]) -> Result<Value, Failure> {
    let failed = |e: std::io::Error| Failure::Other { message: format!("a file for statistics: {e}"), code: 5 };
    let file = tempfile::NamedTempFile::new().map_err(failed)?;
    let words = ["coldframe", "run", "--by", "pager", "--ram", &ram_size(size), "--stats"].map(OsString::from);
    let start = words.into_iter().chain([file.path().into(), "--".into()]);
    if let Verb::Run(args) = Cli::parse_from(start.chain(program.iter().cloned())).verb {
        crate::run::run(*args, true)?;
    }
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    serde_json::from_str(&text).map_err(|e| Failure::Other { message: format!("a run's statistics: {e}"), code: 5 })
}

fn row(point: &Point, measured: &Value) -> Vec<String> {
    let seconds = measured["program"]["seconds"].as_f64();
    let status = measured["program"]["status"].as_u64();
    let faults = measured["counts"]["true_faults"].as_u64();
    let time = match (seconds, status) {
        (Some(seconds), Some(0)) => human_seconds(seconds),
        (Some(seconds), Some(status)) => format!("{} (exit code {status})", human_seconds(seconds)),
        _ => "-".into(),
    };
    let off = seconds.map_or("-".into(), |s| format!("{:+.0} %", 100.0 * (point.seconds - s) / s.max(1e-9)));
    vec![
        ram_size(point.ram_bytes),
        human_seconds(point.seconds),
        time,
        off,
        human_count(point.true_faults),
        faults.map_or("-".into(), human_count),
    ]
}
