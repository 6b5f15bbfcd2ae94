//! `coldframe-lab papers --on`: the gain of the papers' parts for given traces, alone and together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_experiment::{Progress, Settings};
use coldframe_figures::parts::{self, show};
use coldframe_show::plot::stack;

use crate::failure::Failure;
use crate::output;
use crate::picture;
use crate::progress::Line;

/// The machine that all parts are tried on.
#[derive(clap::Args)]
pub struct Machine {
    /// With --on: RAM, a size or a percentage of what the trace touches [default: 50%].
    #[arg(long, value_name = "SIZE", requires = "on", allow_hyphen_values = true)]
    ram: Option<String>,
    /// With --on: the device, a shipped sheet's name or the path of one [default: OneNAND-4K].
    #[arg(long, value_name = "SHEET", requires = "on")]
    device: Option<String>,
    /// With --on: any other setting by its path, as `sim` has it; may repeat.
    #[arg(long, value_name = "KEY.PATH=VALUE", requires = "on")]
    set: Vec<String>,
}

impl Machine {
    fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::read(None, &self.set)?;
        settings.ram = self.ram.clone().or(settings.ram);
        settings.device = self.device.clone().or(settings.device);
        parts::check(&settings)?;
        Ok(settings)
    }
}

pub fn run(
    traces: &[PathBuf],
    machine: &Machine,
    format: &str,
    drawn: Option<&Path>,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let settings = machine.settings()?;
    let mut line = Line::new(quiet);
    let mut studies = Vec::new();
    for trace in traces {
        let name = trace.display().to_string();
        let mut progress = |p: Progress| line.show(p.done, Some(p.total), &format!("{name}: {}", p.unit.name()));
        studies.push(parts::study(trace, &settings, &mut progress)?);
    }
    drop(line);
    let bars = show::bars(&studies);
    if let Some(path) = drawn {
        picture::write(path, &stack(&bars.iter().map(|bars| bars.svg()).collect::<Vec<_>>()))?;
    }
    let words = || bars.iter().fold(show::table(&studies), |text, bars| text + "\n" + &bars.text(40));
    match format {
        "markdown" => output::exact(None, &show::markdown(&studies))?,
        _ => output::result(format, &studies, words)?,
    }
    Ok(ExitCode::SUCCESS)
}
