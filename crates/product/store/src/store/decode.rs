//! Decodes one column of one row group into a block.

use parquet::basic::Type as Physical;
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use super::schema::Field;
use crate::block::Column;

/// Why rows could not be read.
pub(super) enum Failure {
    Parquet(ParquetError),
    /// A column has fewer values than its row group has rows.
    Short,
    Panic,
    /// A value that no reference can have, in this row, counted from the start of the read.
    Value {
        row: usize,
        field: Field,
        problem: String,
    },
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Failure {
        Failure::Parquet(error)
    }
}

/// The source of a column of the block.
pub(super) enum Lane {
    /// Not wanted, or without a default: the block's column is empty.
    Empty,
    /// The same value in every row.
    Constant(i64),
    /// Decoded straight into the block, by the column's physical type.
    Narrow(Box<ColumnReaderImpl<Int32Type>>),
    Wide(Box<ColumnReaderImpl<Int64Type>>),
}

/// The two integer types of a block.
pub(super) trait Native: Copy + PartialEq {
    fn from_wide(value: i64) -> Self;
    /// Appends `rows` values of a lane of this type; `false` if it has another.
    fn decode(lane: &mut Lane, rows: usize, into: &mut Vec<Self>) -> Result<bool, ParquetError>;
}

impl Native for i32 {
    fn from_wide(value: i64) -> i32 {
        // The unsigned value fits 32 bits; the block shows them as such again.
        value as i32
    }

    fn decode(lane: &mut Lane, rows: usize, into: &mut Vec<i32>) -> Result<bool, ParquetError> {
        match lane {
            Lane::Narrow(reader) => reader.read_records(rows, None, None, into).map(|_| true),
            _ => Ok(false),
        }
    }
}

impl Native for i64 {
    fn from_wide(value: i64) -> i64 {
        value
    }

    fn decode(lane: &mut Lane, rows: usize, into: &mut Vec<i64>) -> Result<bool, ParquetError> {
        match lane {
            Lane::Wide(reader) => reader.read_records(rows, None, None, into).map(|_| true),
            _ => Ok(false),
        }
    }
}

impl Lane {
    pub(super) fn new(field: Field, reader: ColumnReader) -> Lane {
        match field.physical() {
            Physical::INT64 => Lane::Wide(Box::new(get_typed_column_reader(reader))),
            _ => Lane::Narrow(Box::new(get_typed_column_reader(reader))),
        }
    }

    /// A wanted column that the file does not have.
    pub(super) fn absent(field: Field) -> Lane {
        match field {
            Field::Task => Lane::Constant(0),
            Field::Count => Lane::Constant(1),
            _ => Lane::Empty,
        }
    }

    /// Whether the values read have not been checked on the way.
    pub(super) fn suspect(&self) -> bool {
        matches!(self, Lane::Narrow(_) | Lane::Wide(_))
    }

    pub(super) fn skip(&mut self, rows: usize) -> Result<(), Failure> {
        let skipped = match self {
            Lane::Empty | Lane::Constant(_) => rows,
            Lane::Narrow(reader) => reader.skip_records(rows)?,
            Lane::Wide(reader) => reader.skip_records(rows)?,
        };
        (skipped == rows).then_some(()).ok_or(Failure::Short)
    }

    /// Fills `column` with the next `rows` values.
    pub(super) fn read<T: Native>(&mut self, column: &mut Column<T>, rows: usize) -> Result<(), Failure> {
        match self {
            Lane::Empty => column.empty(),
            Lane::Constant(value) => column.fill(T::from_wide(*value), rows),
            Lane::Narrow(_) | Lane::Wide(_) => {
                let values = column.restart();
                if !T::decode(self, rows, values)? || values.len() != rows {
                    return Err(Failure::Short);
                }
            }
        }
        Ok(())
    }
}

/// The value of every row of a column chunk, if its statistics say that there is but one. A value that no row may hold
/// is none: it is decoded, and so its row is found.
pub(super) fn constant(field: Field, chunk: &ColumnChunkMetaData) -> Option<i64> {
    let statistics = chunk.statistics().filter(|s| s.min_is_exact() && s.max_is_exact())?;
    let (min, max) = match statistics {
        Statistics::Int32(range) => (i64::from(*range.min_opt()? as u32), i64::from(*range.max_opt()? as u32)),
        Statistics::Int64(range) => (*range.min_opt()?, *range.max_opt()?),
        _ => return None,
    };
    let (least, most) = field.range();
    (min == max && (least..=most).contains(&min)).then_some(min)
}
