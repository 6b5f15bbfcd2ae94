//! Parquet files of any columns, with columns and units that the user declares.
//!
//! ```text
//! parquet:FILE --columns time=ts,kind=op,address=offset,size=length --unit time=us,address=1B,size=1B [--kinds 0=write,1=read]
//! ```
//! A column is given by its name or its number from 1. Numbers may be integers, or text as in `csv`; times may also
//! be reals. A column with a time type has its own unit. Every row of the file becomes a row, or there is an error:
//! none is skipped.

use std::path::{Path, PathBuf};

use super::super::csv::{name, scaled};
use super::super::fields::{Field, Fields, Separator};
use super::super::lines::Fault;
use super::super::options::{self, Column, Options, Role, KINDS_REMEDY};
use super::super::text::admit;
use super::super::time::Clock;
use super::super::RowReader;
use crate::block::Block;
use crate::error::TraceError;
use crate::reference::{Kind, Reference};
use crate::store::{Cell, Columns, Name, Source, Table};

const REMEDY: &str = "check which columns and units --columns and --unit name";

struct Declared {
    path: PathBuf,
    table: Table,
    options: Options,
    address: u64,
    size: u64,
    time_ps: u64,
    clock: Clock,
}

pub(super) fn open(path: &Path, source: Source, options: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    options.require_addresses("parquet")?;
    let (address, size) = (options.address_unit("parquet")?, options.size_unit("parquet")?);
    let names: Vec<Name<'_>> = options.columns.iter().map(|(_, column)| named(column)).collect();
    let table = Table::open(path, source, &names)?;
    let time = options.columns.iter().position(|(role, _)| *role == Role::Time);
    let time_ps = match time.map(|column| (table.tick_ps(column), options.time_ps)) {
        None => 0,
        Some((None, _)) => options.time_unit("parquet")?,
        Some((Some(tick), None)) => tick,
        Some((Some(_), Some(_))) => {
            let found = "the time column's type says its unit itself".to_owned();
            return Err(options::usage("--unit time", found, "leave it out"));
        }
    };
    let (path, options, clock) = (path.to_owned(), options.clone(), Clock::default());
    Ok(Box::new(Declared { path, table, options, address, size, time_ps, clock }))
}

fn named(column: &Column) -> Name<'_> {
    match column {
        Column::Number(number) => Name::Number(number - 1),
        Column::Name(name) => Name::Text(name),
    }
}

impl Declared {
    /// The reference of a row of those read last.
    fn reference(&self, row: usize) -> Result<Reference, Box<Fault>> {
        let mut reference = Reference::new(0, 1, Kind::Read);
        if !self.options.has(Role::Size) {
            reference.size = self.size as u32;
        }
        for (column, (role, _)) in self.options.columns.iter().enumerate() {
            self.cell(*role, self.table.cell(column, row), &mut reference)?;
        }
        admit(&reference)?;
        Ok(reference)
    }

    fn cell(&self, role: Role, cell: Cell<'_>, into: &mut Reference) -> Result<(), Box<Fault>> {
        let wrong = |shown: String| fault(name(role), format!("{shown}, not what this column is declared to hold"));
        match (role, cell) {
            (_, Cell::Null) => return Err(wrong("null".into())),
            (_, Cell::Text(text)) => return self.text(role, text, into),
            (Role::Kind, Cell::Whole(number)) => into.kind = self.kind(&number.to_string())?,
            (Role::Kind, Cell::Flag(flag)) => into.kind = self.kind(if flag { "true" } else { "false" })?,
            (Role::Address, Cell::Wide(bits)) if self.address == 1 => into.address = bits as u64,
            (_, Cell::Wide(number)) => return self.cell(role, Cell::Whole(number.into()), into),
            (Role::Address, Cell::Whole(number)) => {
                into.address = times(role, whole(role, number, u64::MAX)?, self.address)?;
            }
            (Role::Size, Cell::Whole(number)) => {
                let bytes = times(role, whole(role, number, u64::MAX)?, self.size)?;
                into.size = u32::try_from(bytes).map_err(|_| fault("size", format!("{bytes} bytes in one access")))?;
            }
            (Role::Task, Cell::Whole(number)) => into.task = whole(role, number, u32::MAX.into())? as u32,
            (Role::Time, Cell::Whole(number)) => {
                let ticks = whole(role, number, u64::MAX)?;
                let nanoseconds = u128::from(ticks) * u128::from(self.time_ps) / 1000;
                into.time = u64::try_from(nanoseconds).map_err(|_| wrong(number.to_string()))?;
            }
            (Role::Time, Cell::Real(real)) => {
                into.time = nanoseconds(real, self.time_ps).ok_or_else(|| wrong(real.to_string()))?
            }
            (_, Cell::Real(real)) => return Err(wrong(real.to_string())),
            (_, Cell::Flag(flag)) => return Err(wrong(flag.to_string())),
        }
        Ok(())
    }

    /// A cell of text holds what a field of `csv` would.
    fn text(&self, role: Role, text: &[u8], into: &mut Reference) -> Result<(), Box<Fault>> {
        let field: Field<'_> = Fields::new(text, Separator::Byte(0), REMEDY).next(name(role))?;
        match role {
            Role::Address => into.address = scaled(field, self.address, self.options.address_hexadecimal)?,
            Role::Size => {
                let bytes = scaled(field, self.size, false)?;
                into.size = u32::try_from(bytes).map_err(|_| field.fault("is too large for one access"))?;
            }
            Role::Kind => into.kind = self.kind(&String::from_utf8_lossy(field.text))?,
            Role::Task => into.task = field.number(u64::from(u32::MAX))? as u32,
            Role::Time => into.time = field.nanoseconds(self.time_ps)?,
        }
        Ok(())
    }

    fn kind(&self, word: &str) -> Result<Kind, Box<Fault>> {
        let fault =
            || Box::new(Fault { remedy: KINDS_REMEDY, ..*fault("kind", format!("`{word}` is no kind of access")) });
        self.options.kind(word.as_bytes()).ok_or_else(fault)
    }
}

fn fault(field: &'static str, found: String) -> Box<Fault> {
    Box::new(Fault { field, span: 0..0, found, remedy: REMEDY })
}

fn whole(role: Role, number: i128, most: u64) -> Result<u64, Box<Fault>> {
    let known = u64::try_from(number).ok().filter(|number| *number <= most);
    known.ok_or_else(|| fault(name(role), format!("{number} is not a whole number up to {most}")))
}

fn times(role: Role, number: u64, unit: u64) -> Result<u64, Box<Fault>> {
    number
        .checked_mul(unit)
        .ok_or_else(|| fault(name(role), format!("{number} times {unit} bytes is more than 64 bits")))
}

/// A real number of ticks as whole nanoseconds, rounded down.
fn nanoseconds(ticks: f64, ps: u64) -> Option<u64> {
    let nanoseconds = ticks * (ps as f64 / 1000.0);
    // 2^64, the first that does not fit.
    (0.0..18_446_744_073_709_551_616.0).contains(&nanoseconds).then_some(nanoseconds as u64)
}

impl RowReader for Declared {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let (columns, first) = (self.columns(), self.table.position());
        let rows = self.table.read(block.capacity())?;
        for row in 0..rows {
            let mut reference = self.reference(row).map_err(|fault| TraceError::Row {
                path: self.path.clone(),
                row: first + row as u64,
                field: fault.field,
                found: fault.found,
                remedy: fault.remedy.into(),
            })?;
            if columns.time {
                reference.time = self.clock.since_start(reference.time);
            }
            block.push_request(reference, columns);
        }
        Ok(block.end_requests(columns))
    }

    fn skipped(&self) -> u64 {
        0
    }

    fn lines(&self) -> u64 {
        self.table.position()
    }

    fn columns(&self) -> Columns {
        Columns { time: self.options.has(Role::Time), count: false, task: self.options.has(Role::Task) }
    }

    fn position(&self) -> u64 {
        let rows = self.table.rows().max(1) as f64;
        (self.table.bytes() as f64 * (self.table.position() as f64 / rows)) as u64
    }

    fn length(&self) -> Option<u64> {
        Some(self.table.bytes())
    }

    fn started(&self) -> Option<u64> {
        self.clock.start()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec!["columns, units and kinds as declared by the import".to_owned()];
        if !self.options.has(Role::Kind) {
            notes.push("no column was declared to hold kinds: all accesses are stored as reads".into());
        }
        notes.extend(self.clock.note());
        notes
    }
}
