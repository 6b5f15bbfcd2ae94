//! `coldframe-lab trace heatmap`: address by time, as a picture or in the terminal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_sheet::quantity::human_count;
use coldframe_show::html::heat::picture;
use coldframe_store::heat::{heat, Heat, PAGE};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Draw which memory a trace touches, and when, with its phases.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab trace heatmap chess.parquet
  coldframe-lab trace heatmap chess.parquet -o chess.svg --columns 400 --rows 200

Addresses grow upwards and time grows to the right. Untouched memory is left out. In the picture what is mostly read is \
blue, what is mostly written red; darker means more. In the terminal `|` marks the begin of a phase: most pages of that \
column were not in the column before.")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The picture to write (SVG). Without it, the map is drawn in the terminal.
    #[arg(short)]
    output: Option<PathBuf>,
    /// Columns of the map [default: as many as fit, in a picture 240].
    #[arg(long)]
    columns: Option<usize>,
    /// Rows of the map [default: 24, in a picture 120].
    #[arg(long)]
    rows: Option<usize>,
    /// How to print the numbers.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// Columns of an address with the blank after it, and of the widest page.
const LABEL: usize = 17;
const WIDEST: usize = 120;

/// A map with its trace.
#[derive(Serialize, JsonSchema)]
pub struct HeatMap<'a> {
    trace: &'a Path,
    #[serde(flatten)]
    heat: &'a Heat,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let (columns, rows) = if args.output.is_some() { (240, 120) } else { (output::width().min(WIDEST) - LABEL, 24) };
    let heat = heat(&args.trace, args.rows.unwrap_or(rows), args.columns.unwrap_or(columns))?;
    if let Some(path) = &args.output {
        let write = std::fs::write(path, picture(&heat));
        write
            .map_err(|e| Failure::Other { message: format!("{}: cannot be written: {e}", path.display()), code: 5 })?;
    }
    let text = match (args.format.as_str(), &args.output) {
        ("json", _) => output::json(&HeatMap { trace: &args.trace, heat: &heat }),
        (_, Some(path)) => format!("{}: {} by {}, {}\n", path.display(), heat.columns, heat.rows, summary(&heat)),
        _ => terminal(&heat),
    };
    // Lines of a map are never wrapped.
    output::exact(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

fn summary(heat: &Heat) -> String {
    let largest = heat.working_set.iter().max().copied().unwrap_or(0);
    format!(
        "{} pages of {PAGE} bytes touched, at most {} in one column, {} phases",
        human_count(heat.pages),
        human_count(largest),
        heat.phases.len()
    )
}

/// 0 to 255 by the logarithm of the count, since a few pages have nearly all references.
fn bright(count: u64, most: u64) -> u8 {
    let part = ((count + 1) as f64).ln() / ((most + 1) as f64).ln().max(f64::MIN_POSITIVE);
    match count {
        0 => 0,
        _ => 60 + (195.0 * part) as u8,
    }
}

fn terminal(heat: &Heat) -> String {
    const SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
    let totals: Vec<u64> = heat.reads.iter().zip(&heat.writes).map(|(reads, writes)| reads + writes).collect();
    let most = totals.iter().max().copied().unwrap_or(0);
    let mut text = String::new();
    for row in (0..heat.rows).rev() {
        let cells = &totals[row * heat.columns..][..heat.columns];
        let shade = |count: &u64| SHADES[usize::from(bright(*count, most)).div_ceil(64).min(4)];
        text += &format!("{:>16x} {}\n", heat.addresses[row], cells.iter().map(shade).collect::<String>());
    }
    let mark = |column| if heat.phases.contains(&column) { '|' } else { '-' };
    text += &format!("{:>16} {}\n", "phases", (0..heat.columns).map(mark).collect::<String>());
    text + &format!("{}\n", summary(heat))
}
