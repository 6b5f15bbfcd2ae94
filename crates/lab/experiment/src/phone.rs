//! The phone whose tasks take turns: the `[machine]` of a file like `data/workloads/phone.toml`, which gives the source
//! of each number. Other sections say what its applications do, and are not read here.

use coldframe_sheet::sheet::line_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;

/// The shipped file: its name and its text.
pub const SHIPPED: (&str, &str) = ("phone.toml", include_str!("../../../../data/workloads/phone.toml"));

/// The prefix of the names of tasks that work in the background and are never in the foreground.
pub const SERVICE: &str = "service";

/// What runs the applications.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineParameters {
    pub ram_mb: u64,
    pub files_min_mb: u64,
    pub fault_us: f64,
    pub block_layer_us: f64,
    pub nand_read_us: f64,
    pub nand_program_us: f64,
    /// Time of a page-out to the card for which the task that needs the frame waits; 0: the card writes in the
    /// background.
    #[serde(default)]
    pub page_out_us: f64,
    pub answer_s: u64,
}

#[derive(Deserialize)]
struct File {
    machine: MachineParameters,
}

/// The error for a field with an impossible number, with the field's line.
pub fn wrong_field(file: &str, text: &str, field: &str, value: f64, remedy: &str) -> ExperimentError {
    let line = line_of(text, field).map_or_else(String::new, |line| format!("line {line}: "));
    ExperimentError::Config { origin: file.into(), reason: format!("{line}`{field}` is {value}; {remedy}") }
}

/// The first of these numbers that is not between 0 and 100000, or, if it may not, is 0, as an error.
pub fn check(file: &str, text: &str, numbers: &[(&str, f64)], may_be_zero: bool) -> Result<(), ExperimentError> {
    let wrong = |value: f64| !(0.0..1e5).contains(&value) || (value == 0.0 && !may_be_zero);
    let remedy = match may_be_zero {
        true => "give a number from 0 to below 100000",
        false => "give a number above 0 and below 100000",
    };
    match numbers.iter().find(|(_, value)| wrong(*value)) {
        Some((field, value)) => Err(wrong_field(file, text, field, *value, remedy)),
        None => Ok(()),
    }
}

/// Reads the machine of a file's text.
pub fn parse(file: &str, text: &str) -> Result<MachineParameters, ExperimentError> {
    let parsed =
        toml::from_str(text).map_err(|e| ExperimentError::Config { origin: file.into(), reason: e.to_string() });
    let File { machine: m } = parsed?;
    let above = [
        ("machine.ram_mb", m.ram_mb as f64),
        ("machine.fault_us", m.fault_us),
        ("machine.nand_read_us", m.nand_read_us),
        ("machine.nand_program_us", m.nand_program_us),
    ];
    check(file, text, &above, false)?;
    check(file, text, &[("machine.block_layer_us", m.block_layer_us), ("machine.page_out_us", m.page_out_us)], true)?;
    Ok(m)
}

/// The machine of a file.
pub fn read(path: &str) -> Result<MachineParameters, ExperimentError> {
    let text = std::fs::read_to_string(path);
    parse(path, &text.map_err(|e| ExperimentError::Io { path: path.into(), reason: e.to_string() })?)
}

/// The shipped machine.
///
/// # Panics
/// Never: it is part of the program and tested.
pub fn shipped() -> MachineParameters {
    parse(SHIPPED.0, SHIPPED.1).expect("the shipped machine is tested")
}
