//! Tables as text, with columns and units that the user declares.
//!
//! ```text
//! ts,op,offset,length              csv:FILE --columns time=ts,kind=op,address=offset,size=length
//! 0.5,W,4096,512                            --unit time=s,address=1B,size=1B
//! ```
//! A column given by name requires a header. Numbers are decimal, or hexadecimal with `0x` (or without it, with `--unit
//! address=hex:1B`). Kinds are the usual words; numbers need `--kinds`.

use super::fields::{Field, Fields, Separator};
use super::lines::Fault;
use super::options::{self, Column, Options, Role, COLUMNS, KINDS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME};
use super::text::{self, Parse, Parsed};
use super::Format;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::reference::{Kind, Reference};
use crate::store::Columns;

pub(super) const FORMAT: Format = Format {
    name: "csv",
    summary: "commas between fields; needs --columns and --unit",
    example: "csv:trace.csv  (with --columns address=offset,size=length,kind=op --unit address=1B,size=1B)",
    fidelity: Fidelity::ExactReferences,
    skips: "the header, blank lines",
    takes: &[COLUMNS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME, KINDS],
    guess: None,
    open: text::open::<Table<b','>>,
};
pub(super) const TSV: Format = Format {
    name: "tsv",
    summary: "tabs between fields; needs --columns and --unit",
    example: "tsv:trace.tsv  (with --columns address=1,kind=2 --unit address=4KiB,size=4KiB)",
    open: text::open::<Table<b'\t'>>,
    ..FORMAT
};

const LAYOUT: &str = "a line holds the columns that --columns names; check their numbers and units, or add --skip-bad";

/// Columns beyond this are not looked at.
const COLUMNS_MAX: usize = 1024;

struct Table<const SEPARATOR: u8> {
    columns: Vec<(Role, Column)>,
    /// The content of each field, once it is known: for columns named by words, after the header.
    roles: Vec<Option<Role>>,
    header: bool,
    options: Options,
    address: u64,
    size: u64,
    time_ps: u64,
}

impl<const SEPARATOR: u8> Parse for Table<SEPARATOR> {
    fn new(options: &Options) -> Result<Self, TraceError> {
        let format = if SEPARATOR == b'\t' { "tsv" } else { "csv" };
        options.require_addresses(format)?;
        let size = options.size_unit(format)?;
        let time_ps = if options.has(Role::Time) { options.time_unit(format)? } else { 0 };
        let header = options.columns.iter().any(|(_, column)| matches!(column, Column::Name(_)));
        let mut table = Table {
            columns: options.columns.clone(),
            roles: Vec::new(),
            header,
            options: options.clone(),
            address: options.address_unit(format)?,
            size,
            time_ps,
        };
        table.number_columns()?;
        Ok(table)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Skip);
        }
        if std::mem::take(&mut self.header) {
            return self.read_header(line);
        }
        let mut row = Reference::new(0, 1, Kind::Read);
        if !self.options.has(Role::Size) {
            row.size = self.size as u32;
        }
        let mut fields = Fields::new(line, Separator::Byte(SEPARATOR), LAYOUT);
        for role in &self.roles {
            match role {
                Some(role) => self.field(*role, fields.next(name(*role))?, &mut row)?,
                None => drop(fields.optional("column")),
            }
        }
        Ok(Parsed::Request(row))
    }

    fn columns(&self) -> Columns {
        Columns { time: self.options.has(Role::Time), count: false, task: self.options.has(Role::Task) }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec!["columns, units and kinds as declared by the import".to_owned()];
        if !self.options.has(Role::Kind) {
            notes.push("no column was declared to hold kinds: all accesses are stored as reads".into());
        }
        notes
    }
}

impl<const SEPARATOR: u8> Table<SEPARATOR> {
    fn number_columns(&mut self) -> Result<(), TraceError> {
        for (role, column) in &self.columns {
            let Column::Number(number) = column else { continue };
            if *number > COLUMNS_MAX {
                return Err(options::usage(
                    "--columns",
                    format!("column {number}"),
                    "a table has at most 1024 columns",
                ));
            }
            place(&mut self.roles, *number - 1, *role);
        }
        Ok(())
    }

    fn read_header(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Byte(SEPARATOR), LAYOUT);
        let names: Vec<&[u8]> = std::iter::from_fn(|| fields.optional("header"))
            .take(COLUMNS_MAX)
            .map(|field| field.unquoted().text)
            .collect();
        for (role, column) in &self.columns {
            let Column::Name(name) = column else { continue };
            let Some(at) = names.iter().position(|known| *known == name.as_bytes()) else {
                let found = format!("no column `{name}` in this header");
                return Err(super::fields::fault("header", 0..line.len(), found, LAYOUT));
            };
            place(&mut self.roles, at, *role);
        }
        Ok(Parsed::Skip)
    }

    fn field(&self, role: Role, field: Field<'_>, row: &mut Reference) -> Result<(), Box<Fault>> {
        let field = field.unquoted();
        match role {
            Role::Address => row.address = scaled(field, self.address, self.options.address_hexadecimal)?,
            Role::Size => {
                let bytes = scaled(field, self.size, false)?;
                row.size = u32::try_from(bytes).map_err(|_| field.fault("is too large for one access"))?;
            }
            Role::Kind => row.kind = self.kind(field)?,
            Role::Task => row.task = field.number(u64::from(u32::MAX))? as u32,
            Role::Time => row.time = field.nanoseconds(self.time_ps)?,
        }
        Ok(())
    }

    fn kind(&self, field: Field<'_>) -> Result<Kind, Box<Fault>> {
        let remedy = options::KINDS_REMEDY;
        let kind = self.options.kind(field.text);
        kind.ok_or_else(|| Box::new(Fault { remedy, ..*field.fault("is no kind of access") }))
    }
}

pub(super) fn name(role: Role) -> &'static str {
    options::ROLES.iter().find(|(_, known)| *known == role).map_or("column", |(name, _)| name)
}

fn place(roles: &mut Vec<Option<Role>>, at: usize, role: Role) {
    if roles.len() <= at {
        roles.resize(at + 1, None);
    }
    roles[at] = Some(role);
}

pub(super) fn scaled(field: Field<'_>, unit: u64, hexadecimal: bool) -> Result<u64, Box<Fault>> {
    let prefixed = field.text.starts_with(b"0x") || field.text.starts_with(b"0X");
    if !hexadecimal && !prefixed {
        return field.scaled(unit);
    }
    let scaled = field.hexadecimal()?.checked_mul(unit);
    scaled.ok_or_else(|| field.fault(&format!("times {unit} bytes is more than 64 bits")))
}
