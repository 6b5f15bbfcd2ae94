//! Any columns of any Parquet file, as cells: for tables with columns that a user names.
//!
//! Call `open`, `select` with the columns, then `read` until it returns 0 rows, and `cell` for each of them. This is
//! slower than the store's own [`Reader`](super::Reader), which knows the types of its columns.

use std::fmt;
use std::path::{Path, PathBuf};

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{get_column_reader, ColumnReader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::Length;
use parquet::schema::types::ColumnDescriptor;

use super::chunk::{pages, Source};
use super::decode::Failure;
use super::reader::{codec, count_rows, explain, footer, guarded, stored};
use crate::error::{printable, TraceError};

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A whole number.
    Whole(i128),
    /// A whole number of a signed 64-bit column. Many tools store unsigned numbers in such columns.
    Wide(i64),
    /// A real number.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// Text.
    Text(&'a [u8]),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => write!(f, "null"),
            Cell::Whole(number) => write!(f, "{number}"),
            Cell::Wide(number) => write!(f, "{number}"),
            Cell::Real(real) => write!(f, "{real}"),
            Cell::Flag(flag) => write!(f, "{flag}"),
            Cell::Text(text) => write!(f, "`{}`", printable(text)),
        }
    }
}

/// Some columns of a file.
pub struct Table {
    path: PathBuf,
    source: Source,
    metadata: ParquetMetaData,
    columns: Vec<Column>,
    rows: u64,
    group: usize,
    /// Rows of the open row group that were read, and the rows before it.
    offset: usize,
    before: u64,
}

/// One of the columns, and its values of the last read.
struct Column {
    index: usize,
    signed: bool,
    nullable: bool,
    /// Picoseconds of a tick, if the column's type has a unit.
    tick_ps: Option<u64>,
    reader: Option<ColumnReader>,
    values: Values,
    levels: Vec<i16>,
    /// For each row, the index of its value in `values`; nulls have none.
    places: Vec<Option<u32>>,
}

enum Values {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Single(Vec<f32>),
    Double(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<ByteArray>),
}

impl Table {
    /// Opens a file, and selects no columns yet.
    pub fn open(path: &Path, source: Source) -> Result<Table, TraceError> {
        let metadata = footer(path, &source)?;
        if stored(&metadata).is_some() {
            return Err(TraceError::Provenance {
                path: path.to_owned(),
                found: "the file is a stored trace already".into(),
                remedy: "name it without `parquet:`".into(),
            });
        }
        let rows = count_rows(path, &metadata)?;
        Ok(Table { path: path.to_owned(), source, metadata, columns: Vec::new(), rows, group: 0, offset: 0, before: 0 })
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        column_names(&self.metadata).any(|column| column == name)
    }

    /// Selects the columns to read, which may have to be `integers`.
    pub fn select(&mut self, names: &[Name], integers: bool) -> Result<(), TraceError> {
        let find = |name| Column::find(&self.path, &self.metadata, name, integers);
        self.columns = names.iter().map(find).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Rows of the file.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows read so far.
    pub fn position(&self) -> u64 {
        self.before + self.offset as u64
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        Length::len(&self.source)
    }

    /// Picoseconds of a tick of the `column`-th column asked for, if its type is a time with a unit.
    pub fn tick_ps(&self, column: usize) -> Option<u64> {
        self.columns[column].tick_ps
    }

    /// The next rows, at most `most`; 0 is the end.
    pub fn read(&mut self, most: usize) -> Result<usize, TraceError> {
        while self.group < self.metadata.num_row_groups() && self.offset == self.group_rows() {
            self.before += self.group_rows() as u64;
            (self.group, self.offset) = (self.group + 1, 0);
            self.columns.iter_mut().for_each(|column| column.reader = None);
        }
        if self.group == self.metadata.num_row_groups() {
            return Ok(0);
        }
        let rows = most.min(self.group_rows() - self.offset);
        guarded(|| self.decode(rows)).map_err(|failure| self.explain(failure))?;
        self.offset += rows;
        Ok(rows)
    }

    /// A cell of the rows read last.
    pub fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        self.columns[column].cell(row)
    }

    fn group_rows(&self) -> usize {
        self.metadata.row_group(self.group).num_rows() as usize
    }

    fn decode(&mut self, rows: usize) -> Result<(), Failure> {
        let group = self.metadata.row_group(self.group);
        let all = group.num_rows() as usize;
        for column in &mut self.columns {
            if column.reader.is_none() {
                let chunk = group.columns().get(column.index).ok_or(Failure::Short)?;
                column.reader = Some(get_column_reader(chunk.column_descr_ptr(), pages(&self.source, chunk, all)?));
            }
            column.read(rows)?;
        }
        Ok(())
    }

    fn explain(&self, failure: Failure) -> TraceError {
        match failure {
            Failure::Parquet(error) => explain(&self.path, self.position(), error),
            Failure::Panic => TraceError::damaged(&self.path, self.position(), "the Parquet decoder gave up"),
            _ => TraceError::damaged(&self.path, self.position(), "a column ends before its row group"),
        }
    }
}

fn column_names(metadata: &ParquetMetaData) -> impl Iterator<Item = String> + '_ {
    metadata.file_metadata().schema_descr().columns().iter().map(|column| column.path().string())
}

/// How a column is selected.
#[derive(Clone, Debug)]
pub enum Name {
    /// By its number, from 0.
    Number(usize),
    /// A name in words.
    Text(String),
}

impl Column {
    fn find(path: &Path, metadata: &ParquetMetaData, name: &Name, integers: bool) -> Result<Column, TraceError> {
        let schema = metadata.file_metadata().schema_descr();
        let (index, shown) = match name {
            Name::Number(number) => {
                (Some(*number).filter(|number| *number < schema.num_columns()), (number + 1).to_string())
            }
            Name::Text(text) => (column_names(metadata).position(|column| column == *text), text.clone()),
        };
        let error = |found: String, remedy: &'static str| TraceError::Column {
            path: path.to_owned(),
            column: shown.clone(),
            found,
            remedy: remedy.into(),
        };
        let Some(index) = index else {
            let found = format!("missing; the file has {}", column_names(metadata).collect::<Vec<_>>().join(", "));
            return Err(error(
                found,
                "name one of these in --columns; without --columns, rename or add it: a trace has integer columns \
                 address, size (bytes) and kind (0 fetch, 1 read, 2 write)",
            ));
        };
        let descriptor = schema.column(index);
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return Err(error("a list or a structure".into(), "store one value a row"));
        }
        let integer = |tick: Option<u64>, values: &Values| {
            tick.is_none() && matches!(values, Values::Narrow(_) | Values::Wide(_))
        };
        let known = values_of(&descriptor).filter(|(values, _, tick)| !integers || integer(*tick, values));
        let Some((values, signed, tick_ps)) = known else {
            let shown = match descriptor.converted_type() {
                ConvertedType::NONE => descriptor.physical_type().to_string(),
                converted => format!("{} as {converted}", descriptor.physical_type()),
            };
            return Err(match integers {
                true => error(format!("type {shown}, not an integer"), "cast it to an integer of 32 or 64 bits"),
                false => error(
                    format!("type {shown}, neither number nor text"),
                    "cast it to an integer of 32 or 64 bits, or to text",
                ),
            });
        };
        codec(path, &shown, metadata, index)?;
        let nullable = descriptor.max_def_level() == 1;
        let (levels, places) = Default::default();
        Ok(Column { index, signed, nullable, tick_ps, reader: None, values, levels, places })
    }

    fn read(&mut self, rows: usize) -> Result<(), Failure> {
        self.levels.clear();
        self.places.clear();
        let levels = self.nullable.then_some(&mut self.levels);
        let reader = self.reader.as_mut().ok_or(Failure::Short)?;
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                $reader.read_records(rows, levels, None, $values)?.0
            }};
        }
        let read = match (reader, &mut self.values) {
            (ColumnReader::Int32ColumnReader(reader), Values::Narrow(values)) => read!(reader, values),
            (ColumnReader::Int64ColumnReader(reader), Values::Wide(values)) => read!(reader, values),
            (ColumnReader::FloatColumnReader(reader), Values::Single(values)) => read!(reader, values),
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => read!(reader, values),
            (ColumnReader::BoolColumnReader(reader), Values::Flags(values)) => read!(reader, values),
            (ColumnReader::ByteArrayColumnReader(reader), Values::Texts(values)) => read!(reader, values),
            _ => return Err(ParquetError::General("a column changes its type".into()).into()),
        };
        let mut next = 0;
        for row in 0..rows {
            let there = !self.nullable || self.levels.get(row).is_some_and(|level| *level > 0);
            self.places.push(there.then_some(next));
            next += u32::from(there);
        }
        if read == rows && self.values.len() == next as usize && (!self.nullable || self.levels.len() == rows) {
            Ok(())
        } else {
            Err(Failure::Short)
        }
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        let Some(place) = self.places[row] else { return Cell::Null };
        let place = place as usize;
        match &self.values {
            Values::Narrow(values) if self.signed => Cell::Whole(values[place].into()),
            Values::Narrow(values) => Cell::Whole((values[place] as u32).into()),
            Values::Wide(values) if self.signed => Cell::Wide(values[place]),
            Values::Wide(values) => Cell::Whole((values[place] as u64).into()),
            Values::Single(values) => Cell::Real(values[place].into()),
            Values::Double(values) => Cell::Real(values[place]),
            Values::Flags(values) => Cell::Flag(values[place]),
            Values::Texts(values) => Cell::Text(values[place].data()),
        }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Narrow(values) => values.len(),
            Values::Wide(values) => values.len(),
            Values::Single(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Flags(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }
}

/// The representation of a column, whether it is signed, and the tick of a time; `None` for types that are neither
/// number nor text.
fn values_of(descriptor: &ColumnDescriptor) -> Option<(Values, bool, Option<u64>)> {
    let (logical, converted) = (descriptor.logical_type_ref(), descriptor.converted_type());
    let tick = tick(logical, converted);
    let whole = tick.map(|_| true).or_else(|| signedness(logical, converted));
    let values = match descriptor.physical_type() {
        Physical::INT32 => return Some((Values::Narrow(Vec::new()), whole?, tick)),
        Physical::INT64 => return Some((Values::Wide(Vec::new()), whole?, tick)),
        Physical::FLOAT => Values::Single(Vec::new()),
        Physical::DOUBLE => Values::Double(Vec::new()),
        Physical::BOOLEAN => Values::Flags(Vec::new()),
        Physical::BYTE_ARRAY => Values::Texts(Vec::new()),
        _ => return None,
    };
    Some((values, false, None))
}

/// Picoseconds of a tick of a column that is declared to hold moments or times of day.
fn tick(logical: Option<&LogicalType>, converted: ConvertedType) -> Option<u64> {
    let unit = match (logical, converted) {
        (Some(LogicalType::Timestamp(time) | LogicalType::Time(time)), _) => time.unit,
        (None, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS) => TimeUnit::MILLIS,
        (None, ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS) => TimeUnit::MICROS,
        _ => return None,
    };
    Some(match unit {
        TimeUnit::MILLIS => 1_000_000_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000,
    })
}

/// Whether an integer column is signed; `None` if its annotation makes it something else (a date, a decimal, ...).
fn signedness(logical: Option<&LogicalType>, converted: ConvertedType) -> Option<bool> {
    match (logical, converted) {
        (Some(LogicalType::Integer(integer)), _) => Some(integer.is_signed),
        (Some(_), _) => None,
        (None, ConvertedType::NONE) => Some(true),
        (None, ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64) => {
            Some(true)
        }
        (None, ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64) => {
            Some(false)
        }
        (None, _) => None,
    }
}
