//! `coldframe-lab papers`: the papers' printed figures and ours.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_figures::kept::Kept;
use coldframe_figures::papers::{changed_predictions, plots};
use coldframe_figures::table::{headlines, markdown, table};
use coldframe_show::plot::stack;
use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::picture;
use crate::progress::Line;
use crate::together;

/// Print a paper's figures next to ours.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab papers
  coldframe-lab papers swl
  coldframe-lab papers ddb -o ddb.svg
  coldframe-lab papers sap --all
  coldframe-lab papers swl --format json | jq '.[] | select(.reached == false)'
  coldframe-lab papers all --format markdown > beside.md
  coldframe-lab papers --on sqlite.parquet --on mix.parquet --ram 50% -o combined.svg

The column `origin` says how our number came about: printed input, we put it in; identity, it follows from other \
printed numbers; fitted, free numbers were chosen to give it (below the table: which, and to how many figures); \
carried over, they were fitted to other rows; input, \
other printed figures were put in; reading, what the paper leaves open was chosen as the row names it; predicted, \
nothing of the row was used; not printed, the paper has no value. `distance` is ours less the paper's, and \
`rounding` what the printed digits alone leave open. `reached` is said of predictions and identities only: within \
rounding, or within a band that the paper states. A trivial rule stands beside ours where it does as well.

Rows are kept in the cache folder and computed again for other traces or another program.

--on takes the parts of all five papers on traces of your own, each part alone and all that go together, on one \
device and with equal bytes of memory. It prints the fault time (all time not spent on references), the pages that the \
device loads, and the energy of the devices that hold the pages.")]
pub struct Args {
    /// A system whose paper prints figures (`coldframe-lab policies` lists them), or all.
    #[arg(default_value = "all")]
    paper: String,
    /// Instead: what the papers' parts bring for this trace, alone and together; may repeat.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["paper", "all", "strict", "traces"])]
    on: Vec<PathBuf>,
    #[command(flatten)]
    machine: together::Machine,
    /// Print every row and curve, not only the paper's headlines.
    #[arg(long)]
    all: bool,
    /// How to print it; Markdown and JSON have every row.
    #[arg(long, value_parser = ["table", "markdown", "json"], default_value = "table")]
    format: String,
    /// Write the paper's curves, ours beside what it prints of them, to this file, beside the table; its suffix, svg or
    /// png, says the form.
    #[arg(short, visible_alias = "plot", value_name = "PICTURE", value_parser = suffix::picture)]
    output: Option<PathBuf>,
    /// The folder with the shipped traces.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Exit with 1 if a prediction is not where it stood when this program was built.
    #[arg(long)]
    strict: bool,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        if !self.on.is_empty() {
            return together::run(&self.on, &self.machine, &self.format, self.output.as_deref(), quiet);
        }
        let traces = match &self.traces {
            Some(dir) => dir.clone(),
            None => shipped_traces()?,
        };
        let mut line = Line::new(quiet);
        // Markdown, JSON and --strict are about all rows.
        let short = !self.all && !self.strict && self.format == "table";
        let rows = Kept::here().rows(&self.paper, short, &traces, &mut |file| line.show(0, None, file))?;
        drop(line);
        let drawn = self.output.is_some() || self.all && self.format == "table";
        let curves = if drawn { plots(&self.paper, &traces)? } else { Vec::new() };
        if self.output.is_some() && curves.is_empty() {
            return Err(Failure::usage(format!("-o: nothing is drawn for `{}`; leave -o away", self.paper)));
        }
        if let Some(path) = &self.output {
            picture::write(path, &stack(&curves.iter().map(|plot| plot.svg()).collect::<Vec<_>>()))?;
        }
        let words = || match self.all {
            false => headlines(&rows),
            true => curves.iter().fold(table(&rows), |text, plot| text + "\n" + &plot.text(64, 17)),
        };
        match self.format.as_str() {
            "markdown" => output::exact(None, &markdown(&rows))?,
            form => output::result(form, &rows, words)?,
        }
        let changed = if self.strict { changed_predictions(&rows) } else { Vec::new() };
        changed.iter().for_each(|row| eprintln!("not where it stood: {row}"));
        Ok(if changed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

/// Beside an installed program, in the current folder, or in the source tree that the program was built from.
fn shipped_traces() -> Result<PathBuf, Failure> {
    let installed =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("share/coldframe/traces")));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces");
    let places = [installed, Some("data/traces".into()), Some(built)];
    let folder_of_traces = places.iter().flatten().find(|dir| dir.is_dir());
    folder_of_traces.cloned().ok_or_else(|| {
        let looked: Vec<_> = places.iter().flatten().map(|p| p.display().to_string()).collect();
        Failure::usage(format!("the shipped traces are in none of {}; give --traces DIR", looked.join(", ")))
    })
}
