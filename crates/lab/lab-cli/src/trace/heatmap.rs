//! `coldframe-lab trace heatmap`: address by time, as a picture or in the terminal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_plots::trace_map::{summary, terminal};
use coldframe_show::html::heat::picture as drawn;
use coldframe_store::heat::{heat, Heat};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::picture;

/// Draw which memory a trace touches, and when, with its phases.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab trace heatmap chess.parquet
  coldframe-lab trace heatmap chess.parquet -o chess.svg --columns 400 --rows 200

Addresses grow upwards and time grows to the right. Untouched memory is left out. In the picture what is mostly read \
is blue, what is mostly written red; darker means more. In the terminal `|` marks the begin of a phase: most pages of \
that column were not in the column before.")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The picture to write; its suffix, svg or png, says the form. Without it, the map is drawn in the terminal.
    #[arg(short, value_parser = suffix::picture)]
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

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let (columns, rows) =
            if self.output.is_some() { (240, 120) } else { (output::width().min(WIDEST) - LABEL, 24) };
        let heat = heat(&self.trace, self.rows.unwrap_or(rows), self.columns.unwrap_or(columns))?;
        if let Some(path) = &self.output {
            picture::write(path, &drawn(&heat))?;
        }
        let text = match (self.format.as_str(), &self.output) {
            ("json", _) => output::json(&HeatMap { trace: &self.trace, heat: &heat }),
            (_, Some(path)) => format!("{}: {} by {}, {}\n", path.display(), heat.columns, heat.rows, summary(&heat)),
            _ => terminal(&heat),
        };
        // Lines of a map are never wrapped.
        output::exact(None, &text)?;
        Ok(ExitCode::SUCCESS)
    }
}
