//! This machine as a device: what `coldframe doctor --calibrate` measures, in picoseconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use crate::machine::costs::Extent;
use coldframe_sheet::sheet::machine::Machine;
use coldframe_sheet::sheet::stored;
use coldframe_sheet::{quantity, Sheet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::sheet;
use crate::SCHEMA_VERSION;

/// Picoseconds by event or request, and by the part of their distribution.
pub type Times = BTreeMap<String, BTreeMap<String, Option<u64>>>;

/// What paging costs on this machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Calibrated {
    /// Version of this object's form.
    pub schema_version: u32,
    /// The file of the sheet; null: only this process has it.
    pub sheet_file: Option<PathBuf>,
    /// The machine.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub machine: Option<Machine>,
    /// Events of paging: `low`, `mean`, `high`.
    pub live_ps: Times,
    /// Requests to the disk: `p50`, `mean`, `p99`, `per_page`.
    pub disk_ps: Times,
}

/// Measures this machine, and new swap of these kinds; with `show`, only if it is not known.
pub fn calibrate(
    backing: &Path,
    swaps: &[String],
    show: bool,
    extent: Extent,
    listener: &dyn Listener,
) -> Result<Calibrated, AnswerError> {
    let sheet = match show {
        true => sheet::sheet(backing, extent, listener)?,
        false => sheet::measured(backing, extent, swaps, listener)?.0,
    };
    Ok(Calibrated::new(sheet, stored::path()))
}

impl Calibrated {
    fn new(sheet: Sheet, sheet_file: Option<PathBuf>) -> Calibrated {
        let (live_ps, disk_ps) = (times(&sheet.live), times(&sheet.disk));
        Calibrated { schema_version: SCHEMA_VERSION, sheet_file, machine: sheet.machine, live_ps, disk_ps }
    }
}

/// The times of a table of a sheet, without their sources and without unknown ones.
fn times(table: &impl Serialize) -> Times {
    let table = serde_json::to_value(table).expect("a sheet is plain data");
    let ps = |text: &Value| text.as_str().and_then(|text| quantity::time(text).ok()).map(|time| time.0);
    let known = table.as_object().into_iter().flatten().filter(|(_, entry)| !entry.is_null());
    let parts = |entry: &Value| {
        entry["value"].as_object().into_iter().flatten().map(|(part, text)| (part.clone(), ps(text))).collect()
    };
    known.map(|(key, entry)| (key.clone(), parts(entry))).collect()
}
