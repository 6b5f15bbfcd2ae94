//! `coldframe-lab devices`: the data sheets.

use std::process::ExitCode;

use coldframe_core::{Pj, Ps};
use coldframe_experiment::ExperimentError;
use coldframe_sheet::quantity::{human_count, human_energy, human_time};
use coldframe_sheet::sheet::{all, find, Sheet, TEMPLATE};
use coldframe_show::table::styled;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// List the devices, or show one with the source of every number.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe-lab devices\n  coldframe-lab devices KFG1G16Q2M\n  coldframe-lab devices \
        template > mine.toml\n  coldframe-lab devices mine.toml --format json"
)]
pub struct Args {
    /// A shipped sheet's name, the path of a sheet, or `template`: one to fill in.
    name: Option<String>,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        match &self.name {
            None => {
                let rows = || all().iter().map(row).collect();
                let words = || format!("{}\n{NOTE}", styled(&COLUMNS, rows(), 2));
                output::result(&self.format, &all(), words)?;
            }
            Some(name) if name == "template" => print!("{TEMPLATE}"),
            Some(name) => {
                let sheet = find(name).map_err(ExperimentError::from)?;
                output::result(&self.format, &sheet, || one(&sheet))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

const COLUMNS: [&str; 7] = ["device", "", "read", "write", "erase", "cycles", "energy"];
const NOTE: &str = "Times of a page or, of memory read in place, of a cache block; energy of reading a page; `devices \
    NAME` has the sources. Your part: `devices template > mine.toml`.\n";

/// A device in the list.
fn row(sheet: &Sheet) -> Vec<String> {
    let time = |time: Option<Ps>| time.map_or("-".into(), human_time);
    let load = sheet.load().ok().zip(sheet.transfer().ok()).map(|(load, transfer)| load + transfer);
    let energy =
        sheet.load_energy().ok().zip(sheet.transfer_energy().ok()).map(|(load, transfer)| Pj(load.0 + transfer.0));
    vec![
        sheet.name.clone(),
        sheet.title.clone(),
        time(load.or(sheet.read().ok())),
        time(sheet.program().ok().or(sheet.write().ok())),
        time(sheet.erase().ok()),
        sheet.cycles().map_or("-".into(), human_count),
        energy.map_or("-".into(), human_energy),
    ]
}

fn one(sheet: &Sheet) -> String {
    let value = serde_json::to_value(sheet).expect("a sheet is plain data");
    let mut rows = Vec::new();
    for part in ["geometry", "time", "energy", "endurance", "power", "bus", "supply", "port", "live", "disk"] {
        for (key, number) in value[part].as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
            rows.push(vec![
                format!("{part}.{key}"),
                shown(&number["value"]),
                number["source"].as_str().unwrap_or_default().into(),
            ]);
        }
    }
    format!("{}: {}\n{}\n", sheet.name, sheet.title, styled(&["field", "value", "source"], rows, 3))
}

/// A number, or the three numbers of a machine's time.
fn shown(value: &serde_json::Value) -> String {
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
    match value.as_object() {
        Some(parts) => {
            parts.iter().map(|(part, value)| format!("{part} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
        None => plain(value),
    }
}
