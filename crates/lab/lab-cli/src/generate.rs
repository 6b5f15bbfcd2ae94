//! `coldframe-lab generate`: makes a multi-task trace from a file of parameters and a seed.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_experiment::phone::SHIPPED;
use coldframe_figures::workload::{generate, read, shipped};
use coldframe_sheet::quantity::human_count;
use coldframe_store::{Columns, Summary, Writer};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Generate a trace of applications on a phone that take turns in the foreground.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab generate phone --category mix1 -o mix1.parquet
  coldframe-lab generate phone --category browser --seed 7 --workload my-phone.toml -o browser.parquet
  coldframe-lab generate phone --parameters > my-phone.toml
  coldframe-lab sim mix1.parquet --system drswap --ram 400MB --swap-device nvm,nvm-dr --swap-size 128MiB,256MiB,512MiB

The parameters file gives the source of each number. Rows are touches of pages, with times, tasks and mappings.")]
pub struct Args {
    /// The kind of workload.
    #[arg(value_parser = ["phone"])]
    workload_kind: String,
    /// The group of applications in the file.
    #[arg(long, default_value = "mix1")]
    category: String,
    /// The parameters (default: the shipped data/workloads/phone.toml).
    #[arg(long, value_name = "FILE.toml")]
    workload: Option<PathBuf>,
    /// The seed, instead of the file's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The trace to write.
    #[arg(short, required_unless_present = "parameters")]
    output: Option<PathBuf>,
    /// Print the shipped parameters, so that you can change them.
    #[arg(long)]
    parameters: bool,
    /// How to print the counts.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// A generated trace.
#[derive(Serialize, JsonSchema)]
pub struct Generated {
    path: PathBuf,
    category: String,
    seed: u64,
    tasks: usize,
    references: u64,
    rows: u64,
    bytes_written: u64,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        if self.parameters {
            output::exact(self.output.as_deref(), SHIPPED.1)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut parameters = match &self.workload {
            Some(path) => read(&path.display().to_string())?,
            None => shipped(),
        };
        parameters.seed = self.seed.unwrap_or(parameters.seed);
        let (rows, provenance) = generate(&parameters, &self.category)?;
        let tasks = provenance.tasks.len();
        let path = self.output.expect("required by the command line");
        let mut writer = Writer::create(&path, Columns { time: true, count: true, task: true })?;
        writer.write(&rows)?;
        let summary = writer.finish(provenance)?;
        let Summary { references, rows, bytes_written, .. } = summary;
        let made =
            Generated { path, category: self.category, seed: parameters.seed, tasks, references, rows, bytes_written };
        let words =
            || format!("{}: {} touches of {tasks} applications\n", made.path.display(), human_count(references));
        output::result(&self.format, &made, words)?;
        Ok(ExitCode::SUCCESS)
    }
}
