//! Measured and predicted run times, as a table.

use coldframe_answer::verify::Measured;
use coldframe_sheet::quantity::{human_count, human_seconds, ram_size};

use crate::table::styled;

/// The table.
pub fn words(runs: &[Measured]) -> String {
    let headings = ["--ram", "predicted", "measured", "off by", "faults predicted", "measured"];
    format!("\n{}\n", styled(&headings, runs.iter().map(row).collect(), 0))
}

fn row(run: &Measured) -> Vec<String> {
    let (point, seconds) = (&run.point, run.program.seconds);
    let time = match run.program.status {
        0 => human_seconds(seconds),
        status => format!("{} (exit code {status})", human_seconds(seconds)),
    };
    vec![
        ram_size(point.ram_bytes),
        human_seconds(point.seconds),
        time,
        format!("{:+.0} %", 100.0 * (point.seconds - seconds) / seconds.max(1e-9)),
        human_count(point.true_faults),
        human_count(run.true_faults),
    ]
}
