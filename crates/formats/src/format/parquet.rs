//! Parquet files that other tools wrote, with columns and units that the user declares.
//!
//! ```text
//! parquet:FILE --columns time=ts,kind=op,address=offset,size=length --unit time=us,address=1B,size=1B [--kinds 0=write,1=read]
//! ```
//! A column is given by its name or its number from 1. Numbers may be integers, or text as in `csv`; times may also
//! be reals. A column with a time type has its own unit. Every row of the file becomes a row, or there is an error:
//! none is skipped.
//!
//! A file whose columns have the names of the [store](coldframe_store::store) needs no declaration: `address`, `size` (bytes) and
//! `kind` (0 fetch, 1 read, 2 write), and if it has them `task` and `time` (nanoseconds). A user who imports such a file
//! declares its rows to be exact references. Reduced traces carry a page size, which only a store written by this
//! crate has.

use std::path::PathBuf;

use super::declared::Declared;
use super::fields::{Fields, Separator};
use super::lines::{admit, Fault};
use super::options::{self, Column, Options, Role, COLUMNS, KINDS, KINDS_REMEDY, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME};
use super::time::Clock;
use super::{Facts, Format, Input, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};
use coldframe_store::store::{remedy, Cell, Name, Source, Table};

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    summary:
        "Parquet of other tools, with --columns and --unit; or integer columns address, size, kind (0 fetch, 1 read, 2 write), [task, time in ns]",
    example: "parquet:trace.parquet  (with --columns address=offset,size=length,kind=op --unit address=1B,size=1B)",
    fidelity: Fidelity::ExactReferences,
    skips: "nothing",
    takes: &[COLUMNS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME, KINDS],
    guess: None,
    open,
};

const REMEDY: &str = "check which columns and units --columns and --unit name";

struct Foreign {
    path: PathBuf,
    table: Table,
    declared: Declared,
    /// Whether the columns have the store's names, and the number of its column `count` among those that are read.
    own_names: bool,
    count: Option<usize>,
    clock: Clock,
}

fn open(input: Input, options: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    let path = input.name().to_owned();
    let source = match input {
        Input::Path(path) => Source::open(&path).map_err(|error| TraceError::io(&path, "open", error))?,
        Input::Bytes(bytes) => Source::Bytes(bytes),
        Input::Stdin => {
            let found = "Parquet is read from its end, which a pipe does not have yet".to_owned();
            return Err(options::usage("trace `parquet:-`", found, "write it to a file and name that"));
        }
    };
    let mut table = Table::open(&path, source)?;
    let own_names = options.columns.is_empty();
    let options = if own_names { store_names(&table, options)? } else { options.clone() };
    options.require_addresses("parquet")?;
    let named = |(_, column): &(Role, Column)| match column {
        Column::Number(number) => Name::Number(number - 1),
        Column::Name(name) => Name::Text(name.clone()),
    };
    let mut names: Vec<Name> = options.columns.iter().map(named).collect();
    let count = (own_names && table.has("count")).then_some(names.len());
    names.extend(count.map(|_| Name::Text("count".into())));
    let mut declared = Declared::new(&options, "parquet", 0)?;
    table.select(&names, own_names)?;
    let time = options.columns.iter().position(|(role, _)| *role == Role::Time);
    declared.time_ps = match time.map(|column| (table.tick_ps(column), options.time_ps)) {
        None => 0,
        Some((None, _)) => options.time_unit("parquet")?,
        Some((Some(tick), None)) => tick,
        Some((Some(_), Some(_))) => {
            let found = "the time column's type says its unit itself".to_owned();
            return Err(options::usage("--unit time", found, "leave it out"));
        }
    };
    Ok(Box::new(Foreign { path, table, declared, own_names, count, clock: Clock::default() }))
}

/// The declarations for a file whose columns have the store's names.
fn store_names(table: &Table, given: &Options) -> Result<Options, TraceError> {
    if *given != (Options { skip_bad: given.skip_bad, ..Options::default() }) {
        return Err(options::usage(
            "`parquet` without --columns",
            "such a file's columns are address, size and kind in bytes and numbers, and nothing else can be declared"
                .into(),
            "name the columns that the units are of, as in --columns address=address,size=size",
        ));
    }
    let needed = [Role::Address, Role::Size, Role::Kind];
    let optional = [Role::Task, Role::Time].into_iter().filter(|role| table.has(role.name()));
    let kinds = [("0", Kind::Fetch), ("1", Kind::Read), ("2", Kind::Write)];
    Ok(Options {
        columns: needed.into_iter().chain(optional).map(|role| (role, Column::Name(role.name().into()))).collect(),
        address: Some(1),
        size: Some(1),
        time_ps: Some(1000),
        kinds: kinds.map(|(word, kind)| (word.to_owned(), kind)).into(),
        ..given.clone()
    })
}

impl Foreign {
    /// The reference of a row of those read last.
    fn reference(&self, row: usize) -> Result<Reference, Box<Fault>> {
        let mut reference = self.declared.row();
        for (column, (role, _)) in self.declared.options.columns.iter().enumerate() {
            self.cell(*role, self.table.cell(column, row), &mut reference)?;
        }
        if let Some(cell) = self.count.map(|column| self.table.cell(column, row)) {
            if !matches!(cell, Cell::Whole(1) | Cell::Wide(1)) {
                let found = format!("{cell}, but nothing says to which page size the rows were reduced");
                let remedy =
                    "import unreduced references and leave out rows that stand for nothing, or write the file \
                              with coldframe_store::Writer";
                return Err(Box::new(Fault { remedy, ..*fault("count", found) }));
            }
        }
        admit(&reference)?;
        Ok(reference)
    }

    fn cell(&self, role: Role, cell: Cell<'_>, into: &mut Reference) -> Result<(), Box<Fault>> {
        let units = &self.declared;
        let wrong = || fault(role.name(), format!("{cell}, not what this column must hold"));
        let whole = |number: i128, most: u64| {
            let known = u64::try_from(number).ok().filter(|number| *number <= most);
            known.ok_or_else(|| fault(role.name(), format!("{number} is not a whole number up to {most}")))
        };
        let bytes = |number: i128, unit: u64| {
            let found = || fault(role.name(), format!("{number} times {unit} bytes is more than 64 bits"));
            whole(number, u64::MAX)?.checked_mul(unit).ok_or_else(found)
        };
        match (role, cell) {
            // A cell of text holds what a field of `csv` would.
            (_, Cell::Text(text)) => {
                let field = Fields::new(text, Separator::Byte(0), REMEDY).next(role.name())?;
                return units.put(role, field, into);
            }
            (Role::Kind, Cell::Whole(number)) => into.kind = self.kind(number)?,
            (Role::Kind, Cell::Flag(flag)) => into.kind = self.word(if flag { "true" } else { "false" })?,
            (Role::Address, Cell::Wide(bits)) if units.address == 1 => into.address = bits as u64,
            (_, Cell::Wide(number)) => return self.cell(role, Cell::Whole(number.into()), into),
            (Role::Address, Cell::Whole(number)) => into.address = bytes(number, units.address)?,
            (Role::Size, Cell::Whole(number)) => {
                let bytes = bytes(number, units.size)?;
                into.size = u32::try_from(bytes).map_err(|_| fault("size", format!("{bytes} bytes in one access")))?;
            }
            (Role::Task, Cell::Whole(number)) => into.task = whole(number, u32::MAX.into())? as u32,
            (Role::Time, Cell::Whole(number)) => {
                let nanoseconds = u128::from(whole(number, u64::MAX)?) * u128::from(units.time_ps) / 1000;
                into.time = u64::try_from(nanoseconds).map_err(|_| wrong())?;
            }
            (Role::Time, Cell::Real(real)) => {
                into.time = nanoseconds(real, units.time_ps).ok_or_else(wrong)?;
            }
            (_, Cell::Null | Cell::Real(_) | Cell::Flag(_)) => return Err(wrong()),
        }
        Ok(())
    }

    fn kind(&self, number: i128) -> Result<Kind, Box<Fault>> {
        let declared = self.declared.options.kinds.iter().find(|(word, _)| word.parse() == Ok(number));
        declared.map_or_else(|| self.word(&number.to_string()), |(_, kind)| Ok(*kind))
    }

    fn word(&self, word: &str) -> Result<Kind, Box<Fault>> {
        let fault =
            || Box::new(Fault { remedy: KINDS_REMEDY, ..*fault("kind", format!("`{word}` is no kind of access")) });
        self.declared.options.kind(word.as_bytes()).ok_or_else(fault)
    }
}

fn fault(field: &'static str, found: String) -> Box<Fault> {
    Box::new(Fault { field, span: 0..0, found, remedy: REMEDY })
}

/// A real number of ticks as whole nanoseconds, rounded down.
fn nanoseconds(ticks: f64, ps: u64) -> Option<u64> {
    let nanoseconds = ticks * (ps as f64 / 1000.0);
    // 2^64, the first that does not fit.
    (0.0..18_446_744_073_709_551_616.0).contains(&nanoseconds).then_some(nanoseconds as u64)
}

impl RowReader for Foreign {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let (columns, first) = (self.columns(), self.table.position());
        // The remedy of a count depends on its value.
        let own = |field: &str| remedy(field).filter(|_| self.own_names && field != "count");
        let rows = self.table.read(block.capacity())?;
        for row in 0..rows {
            let mut reference = self.reference(row).map_err(|fault| TraceError::Row {
                path: self.path.clone(),
                row: first + row as u64,
                field: fault.field,
                found: fault.found,
                remedy: own(fault.field).unwrap_or(fault.remedy).into(),
            })?;
            if columns.time && !self.own_names {
                reference.time = self.clock.since_start(reference.time);
            }
            block.push_request(reference, columns);
        }
        Ok(block.end_requests(columns))
    }

    fn columns(&self) -> Columns {
        self.declared.columns()
    }

    fn progress(&self) -> Progress {
        let (lines, bytes) = (self.table.position(), self.table.bytes());
        let share = lines as f64 / self.table.rows().max(1) as f64;
        Progress { lines, bytes: (bytes as f64 * share) as u64, bytes_total: Some(bytes), ..Progress::default() }
    }

    fn facts(&self) -> Facts {
        let notes = match self.own_names {
            true => vec!["rows of a foreign Parquet file, declared to be exact references by its import; time taken as nanoseconds".into()],
            false => self.declared.notes().into_iter().chain(self.clock.note()).collect(),
        };
        Facts { started: self.clock.start(), notes, ..Facts::default() }
    }
}
