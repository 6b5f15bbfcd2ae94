//! Data sheets: TOML files in which every number has its source.
//!
//! To add a device: copy [`TEMPLATE`], and add it to [`SHIPPED`].

use std::path::{Path, PathBuf};

use coldframe_core::{Bytes, Pj, Ps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod electric;
pub mod machine;
pub mod stored;
pub mod tables;

use machine::{Disk, Live, Machine};
use tables::{Bus, Endurance, Energy, Geometry, Number, Port, Power, Supply, Time};

pub use tables::Sourced;

/// A sheet to fill in.
pub const TEMPLATE: &str = include_str!("../../../../data/sheet-template.toml");

/// The sheets that come with coldframe: file name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("kfg1g16q2m.toml", include_str!("../../../../data/sheets/kfg1g16q2m.toml")),
    ("kfg5616.toml", include_str!("../../../../data/sheets/kfg5616.toml")),
    ("sram64k.toml", include_str!("../../../../data/sheets/sram64k.toml")),
    ("strataflash.toml", include_str!("../../../../data/sheets/strataflash.toml")),
    ("lobi-nand.toml", include_str!("../../../../data/sheets/lobi-nand.toml")),
    ("nand01gw3b2b.toml", include_str!("../../../../data/sheets/nand01gw3b2b.toml")),
    ("lpddr2-dram.toml", include_str!("../../../../data/sheets/lpddr2-dram.toml")),
    ("lpddr2-pcm.toml", include_str!("../../../../data/sheets/lpddr2-pcm.toml")),
    ("inand-emmc.toml", include_str!("../../../../data/sheets/inand-emmc.toml")),
    ("stt-mram.toml", include_str!("../../../../data/sheets/stt-mram.toml")),
    ("onenand-4k.toml", include_str!("../../../../data/sheets/onenand-4k.toml")),
    ("cxl-ddr4.toml", include_str!("../../../../data/sheets/cxl-ddr4.toml")),
    ("w25q16bv.toml", include_str!("../../../../data/sheets/w25q16bv.toml")),
    ("emmc-5.1.toml", include_str!("../../../../data/sheets/emmc-5.1.toml")),
    ("ufs-3.1.toml", include_str!("../../../../data/sheets/ufs-3.1.toml")),
    ("sd-a2.toml", include_str!("../../../../data/sheets/sd-a2.toml")),
    ("nvme.toml", include_str!("../../../../data/sheets/nvme.toml")),
];

/// What a question about time needs of a flash device: if one is missing, all that are missing are named.
const OF_FLASH: [&str; 5] = ["geometry.page", "geometry.buffers", "time.load", "time.transfer", "time.program"];

/// Why a sheet cannot be read or used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum SheetError {
    /// No shipped sheet has this name, and no file either.
    #[error("there is no device `{name}`; there are {shipped}, or give the path of a sheet in TOML")]
    Unknown { name: String, shipped: String },
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    Io { path: PathBuf, reason: String },
    /// The file is not a sheet; the message names line and field.
    #[error("{file}: {reason}")]
    Parse { file: String, reason: String },
    /// A number is not possible, or has no source.
    #[error("{file}: field `{field}`: {reason}")]
    Field { file: String, field: &'static str, reason: String },
    /// The sheet of this machine is asked for, and there is none.
    #[error("this machine has no sheet yet; run `coldframe doctor --calibrate`, which measures it in some seconds")]
    NoHere,
    /// A measured cost of this machine is needed, and the sheet does not have it.
    #[error(
        "device `{device}` has no `{field}`, which is measured, not found in a data sheet; run `coldframe doctor \
             --calibrate` and give the device `here`"
    )]
    NotMeasured { device: String, field: &'static str },
    /// A number is needed that the sheet does not have.
    #[error("device `{device}` has no `{}`; add it to a copy of its sheet, with its source", fields.join("`, `"))]
    Missing { device: String, fields: Vec<&'static str> },
}

impl SheetError {
    fn at_its_line(self, text: &str) -> SheetError {
        match self {
            SheetError::Field { file, field, reason } => match line_of(text, field) {
                Some(line) => SheetError::Field { file: format!("{file}, line {line}"), field, reason },
                None => SheetError::Field { file, field, reason },
            },
            other => other,
        }
    }
}

/// What kind of device a sheet describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// NAND with page buffers that the host reads as memory.
    Onenand,
    /// NOR flash, read and executed in place.
    Nor,
    /// Main memory.
    Ram,
    /// NAND behind a plain bus.
    Nand,
    /// Byte-addressable memory that keeps its contents.
    Nvm,
    /// NAND behind a controller and a block port: eMMC, UFS, SD, NVMe.
    Emmc,
    /// A computer with its disk and its kernel, as measured by `coldframe doctor --calibrate`.
    #[default]
    Machine,
}

/// A device's sheet.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// The part's name.
    pub name: String,
    /// The kind of device.
    pub kind: Kind,
    /// One line about it.
    pub title: String,
    /// For a machine: which machine it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Sizes.
    #[serde(default)]
    pub geometry: Geometry,
    /// Times.
    #[serde(default)]
    pub time: Time,
    /// Energies.
    #[serde(default)]
    pub energy: Energy,
    /// Endurance.
    #[serde(default, skip_serializing_if = "unknown")]
    pub endurance: Endurance,
    /// Powers of a memory on the bus.
    #[serde(default, skip_serializing_if = "unknown")]
    pub power: Power,
    /// Bus cycles of a memory.
    #[serde(default, skip_serializing_if = "unknown")]
    pub bus: Bus,
    /// Voltage and currents of a card.
    #[serde(default, skip_serializing_if = "unknown")]
    pub supply: Supply,
    /// Cycles of a card's port.
    #[serde(default, skip_serializing_if = "unknown")]
    pub port: Port,
    /// The costs of paging on a machine.
    #[serde(default, skip_serializing_if = "unknown")]
    pub live: Live,
    /// The times of a machine's disk.
    #[serde(default, skip_serializing_if = "unknown")]
    pub disk: Disk,
}

fn unknown<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}

/// The shipped sheet of this name (case does not matter); or the measured sheet of this machine for [`stored::NAME`];
/// or the sheet in the file of this path.
///
/// # Errors
/// There is no such sheet, or the file is not one.
pub fn find(name: &str) -> Result<Sheet, SheetError> {
    if name == stored::NAME {
        return stored::read();
    }
    let shipped = all();
    if let Some(sheet) = shipped.iter().find(|s| s.name.eq_ignore_ascii_case(name)) {
        return Ok(sheet.clone());
    }
    if name.ends_with(".toml") || Path::new(name).is_file() {
        let text =
            std::fs::read_to_string(name).map_err(|e| SheetError::Io { path: name.into(), reason: e.to_string() })?;
        return parse(name, &text);
    }
    let names: Vec<_> = shipped.iter().map(|s| s.name.as_str()).chain([stored::NAME]).collect();
    Err(SheetError::Unknown { name: name.into(), shipped: names.join(", ") })
}

/// All shipped sheets.
pub fn all() -> Vec<Sheet> {
    SHIPPED.iter().map(|(file, text)| parse(file, text).expect("shipped sheets are tested")).collect()
}

/// Reads a sheet.
///
/// # Errors
/// Not TOML, an unknown or missing field, a number without a source, or a quantity that cannot be read or is zero.
pub fn parse(file: &str, text: &str) -> Result<Sheet, SheetError> {
    let sheet: Sheet =
        toml::from_str(text).map_err(|e| SheetError::Parse { file: file.into(), reason: e.to_string() })?;
    sheet.check(file).map_err(|error| error.at_its_line(text))?;
    Ok(sheet)
}

/// The line of a TOML file with the field `table.key` or `key`, counted from 1.
pub fn line_of(text: &str, field: &str) -> Option<usize> {
    let (table, key) = field.split_once('.').unwrap_or(("", field));
    let mut inside = "";
    text.lines()
        .map(str::trim)
        .position(|line| {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                inside = name.trim();
            }
            let left = line.split('=').next().unwrap_or_default().trim();
            (inside == table && left == key) || (inside.is_empty() && left == field)
        })
        .map(|before| before + 1)
}

impl Sheet {
    /// All numbers that are known, without those of a machine.
    fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        let device = self.geometry.numbers().chain(self.time.numbers()).chain(self.energy.numbers());
        let electric = self.power.numbers().chain(self.bus.numbers());
        let card = self.supply.numbers().chain(self.port.numbers());
        device.chain(self.endurance.numbers()).chain(electric).chain(card)
    }

    fn check(&self, file: &str) -> Result<(), SheetError> {
        for number in self.numbers() {
            let reason = match number.read() {
                Err(error) => error.to_string(),
                Ok(0) => "is 0; leave the field out if it is not known or not there".into(),
                Ok(_) if number.source.trim().is_empty() => "has no source; say where the number comes from".into(),
                Ok(_) => continue,
            };
            return Err(SheetError::Field { file: file.into(), field: number.field, reason });
        }
        self.check_machine(file)
    }

    /// The sheet as a file: each number on its own line, with its source.
    pub fn to_toml(&self) -> String {
        let table = toml::Table::try_from(self).expect("a sheet is plain data");
        let (parts, plain): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| value.is_table());
        let mut text: String = plain.into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        for (part, values) in parts.into_iter().filter_map(|(part, value)| Some((part, value.as_table()?))) {
            let lines: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            if !lines.is_empty() {
                text += &format!("\n[{part}]\n{lines}");
            }
        }
        text
    }

    /// The number of this name, in the smallest unit.
    fn number(&self, field: &'static str) -> Result<u64, SheetError> {
        let find = |field: &str| self.numbers().find(|number| number.field == field);
        let missing = || {
            let others = OF_FLASH.into_iter().filter(|other| OF_FLASH.contains(&field) && *other != field);
            let fields = std::iter::once(field).chain(others.filter(|other| find(other).is_none())).collect();
            SheetError::Missing { device: self.name.clone(), fields }
        };
        Ok(find(field).ok_or_else(missing)?.read().expect("checked when read"))
    }

    /// Stopover buffers.
    ///
    /// # Errors
    /// The sheet does not have them.
    pub fn buffers(&self) -> Result<u32, SheetError> {
        self.number("geometry.buffers").map(|buffers| buffers as u32)
    }

    /// Erases that a block is rated for.
    ///
    /// # Errors
    /// The sheet does not have it.
    pub fn cycles(&self) -> Result<u64, SheetError> {
        self.number("endurance.cycles")
    }
}

/// Numbers by name, with their type.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $field:literal, $type:ident;)*) => {
        impl Sheet {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// The sheet does not have it.
            pub fn $name(&self) -> Result<$type, SheetError> {
                self.number($field).map($type)
            }
        )*}
    };
}

numbers! {
    /// Flash page size.
    page: "geometry.page", Bytes;
    /// Erase block size.
    block: "geometry.block", Bytes;
    /// Bytes of the whole device.
    capacity: "geometry.capacity", Bytes;
    /// Cell array to buffer, one page.
    load: "time.load", Ps;
    /// Buffer to host, one page.
    transfer: "time.transfer", Ps;
    /// Buffer to cell array, one page.
    program: "time.program", Ps;
    /// One block.
    erase: "time.erase", Ps;
    /// One cache block, read in place: time.
    read: "time.read", Ps;
    /// One cache block, written in place: time.
    write: "time.write", Ps;
    /// Cell array to buffer, one page: energy.
    load_energy: "energy.load", Pj;
    /// Buffer to host, one page: energy.
    transfer_energy: "energy.transfer", Pj;
    /// Buffer to cell array, one page: energy.
    program_energy: "energy.program", Pj;
    /// One block: energy.
    erase_energy: "energy.erase", Pj;
    /// One cache block, read in place: energy.
    read_energy: "energy.read", Pj;
    /// One cache block, written in place: energy.
    write_energy: "energy.write", Pj;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_sheet_is_read_and_every_number_has_a_source() {
        assert_eq!(all().len(), SHIPPED.len());
    }

    #[test]
    fn a_flash_without_energy_or_life_says_that_no_source_was_found() {
        for (file, text) in SHIPPED {
            let sheet = parse(file, text).unwrap();
            let head: String = text.lines().take_while(|line| line.starts_with('#')).collect();
            let says = |words: &[&str]| head.contains("left out") && words.iter().any(|word| head.contains(word));
            // A paper's card has its energy by currents.
            if sheet.kind == Kind::Emmc && sheet.supply == Supply::default() {
                assert!(sheet.program_energy().is_ok() || says(&["energy"]), "{file}");
                assert!(sheet.cycles().is_ok() || says(&["cycles"]), "{file}");
            }
        }
        for (name, energy, life) in [("W25Q16BV", false, true), ("NVMe-980", true, true), ("eMMC-5.1", true, false)] {
            let sheet = find(name).unwrap();
            assert_eq!((sheet.program_energy().is_ok(), sheet.cycles().is_ok()), (energy, life), "{name}");
        }
    }

    #[test]
    fn a_bad_sheet_names_file_and_field() {
        let good = SHIPPED[0].1;
        for (from, to, reason) in [
            ("name = \"KFG1G16Q2M\"", "", "missing field `name`"),
            ("kind = \"onenand\"", "kind = \"floppy\"", "unknown variant `floppy`"),
            ("[geometry]", "[geometry]\nporosity = 3", "unknown field `porosity`"),
            ("\"2KiB\"", "\"2KIB\"", "`geometry.page`: `2KIB` cannot be read"),
            ("\"2KiB\"", "\"0\"", "`geometry.page`: is 0"),
            ("\"30us\"", "\"-30us\"", "`time.load`: `-30us` cannot be read"),
            ("\"30us\"", "\"30\"", "`time.load`: `30` cannot be read"),
            ("value = 2, ", "value = 0, ", "`geometry.buffers`: is 0"),
            ("value = 2, ", "value = -2, ", "line 11"),
            (", source = \"SWL footnote 2: one 128 KiB block\"", "", "missing field `source`"),
            ("\"SWL footnote 2: one 128 KiB block\"", "\" \"", "`time.erase`: has no source"),
            ("[time]", "[time", "line"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = parse("my.toml", &good.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("my.toml") && error.contains(reason), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn a_field_is_found_in_its_own_table() {
        let text = "name = \"x\"\n[power]\nread = 1\n\n[supply] # volts\n read = 2\n";
        assert_eq!([line_of(text, "power.read"), line_of(text, "supply.read")], [Some(3), Some(6)]);
        assert_eq!([line_of(text, "supply.write"), line_of("bus.width = 8\n", "bus.width")], [None, Some(1)]);
    }
}
