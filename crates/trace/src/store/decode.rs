//! Decodes one column of one row group into a block.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use super::schema::{Field, Place};
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
        found: String,
    },
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Failure {
        Failure::Parquet(error)
    }
}

/// The parquet crate's decoder, by the column's physical type.
pub(super) enum Decoder {
    Narrow(ColumnReaderImpl<Int32Type>),
    Wide(ColumnReaderImpl<Int64Type>),
}

impl Decoder {
    fn skip(&mut self, rows: usize) -> Result<(), Failure> {
        let skipped = match self {
            Decoder::Narrow(reader) => reader.skip_records(rows)?,
            Decoder::Wide(reader) => reader.skip_records(rows)?,
        };
        if skipped == rows {
            Ok(())
        } else {
            Err(Failure::Short)
        }
    }
}

/// The source of a column of the block.
pub(super) enum Lane {
    /// Not wanted, or without a default: the block's column is empty.
    Empty,
    /// The same value in every row.
    Constant(i64),
    /// Decoded straight into the block, of the same type as the block's column.
    Direct(Box<Decoder>),
    /// Of another width, signed or nullable: decoded separately, checked and converted.
    Converted(Box<Conversion>),
}

/// A foreign column on its way into the block.
pub(super) struct Conversion {
    field: Field,
    place: Place,
    decoder: Decoder,
    narrow: Vec<i32>,
    wide: Vec<i64>,
    levels: Vec<i16>,
}

/// The two integer types of a block.
pub(super) trait Native: Copy + PartialEq {
    fn from_checked(value: i64) -> Self;
    /// Appends `rows` values of a decoder of this type; `false` if it has another.
    fn decode(decoder: &mut Decoder, rows: usize, into: &mut Vec<Self>) -> Result<bool, ParquetError>;
}

impl Native for i32 {
    fn from_checked(value: i64) -> i32 {
        // The unsigned value fits 32 bits; the block shows them as such again.
        value as i32
    }

    fn decode(decoder: &mut Decoder, rows: usize, into: &mut Vec<i32>) -> Result<bool, ParquetError> {
        match decoder {
            Decoder::Narrow(reader) => reader.read_records(rows, None, None, into).map(|_| true),
            Decoder::Wide(_) => Ok(false),
        }
    }
}

impl Native for i64 {
    fn from_checked(value: i64) -> i64 {
        value
    }

    fn decode(decoder: &mut Decoder, rows: usize, into: &mut Vec<i64>) -> Result<bool, ParquetError> {
        match decoder {
            Decoder::Wide(reader) => reader.read_records(rows, None, None, into).map(|_| true),
            Decoder::Narrow(_) => Ok(false),
        }
    }
}

impl Lane {
    pub(super) fn new(field: Field, place: Place, decoder: Decoder) -> Lane {
        if place.direct(field) {
            return Lane::Direct(Box::new(decoder));
        }
        let (narrow, wide, levels) = Default::default();
        Lane::Converted(Box::new(Conversion { field, place, decoder, narrow, wide, levels }))
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
        matches!(self, Lane::Direct(_))
    }

    pub(super) fn skip(&mut self, rows: usize) -> Result<(), Failure> {
        match self {
            Lane::Empty | Lane::Constant(_) => Ok(()),
            Lane::Direct(decoder) => decoder.skip(rows),
            Lane::Converted(conversion) => conversion.decoder.skip(rows),
        }
    }

    /// Fills `column` with the next `rows` values.
    pub(super) fn read<T: Native>(&mut self, column: &mut Column<T>, rows: usize) -> Result<(), Failure> {
        match self {
            Lane::Empty => column.empty(),
            Lane::Constant(value) => column.fill(T::from_checked(*value), rows),
            Lane::Direct(decoder) => {
                let values = column.restart();
                if !T::decode(decoder, rows, values)? || values.len() != rows {
                    return Err(Failure::Short);
                }
            }
            Lane::Converted(conversion) => conversion.read(column.restart(), rows)?,
        }
        Ok(())
    }
}

impl Conversion {
    fn read<T: Native>(&mut self, into: &mut Vec<T>, rows: usize) -> Result<(), Failure> {
        self.levels.clear();
        let levels = self.place.nullable.then_some(&mut self.levels);
        let read = match &mut self.decoder {
            Decoder::Narrow(reader) => {
                self.narrow.clear();
                reader.read_records(rows, levels, None, &mut self.narrow)?.0
            }
            Decoder::Wide(reader) => {
                self.wide.clear();
                reader.read_records(rows, levels, None, &mut self.wide)?.0
            }
        };
        if let Some(row) = self.levels.iter().position(|&level| level == 0) {
            return Err(Failure::Value { row, field: self.field, found: "null".into() });
        }
        let (field, place) = (self.field, self.place);
        match &self.decoder {
            Decoder::Narrow(_) => convert(&self.narrow, into, field, |value| widen(value, place))?,
            Decoder::Wide(_) => convert(&self.wide, into, field, |value| check(value, field, place))?,
        }
        if read == rows && into.len() == rows {
            Ok(())
        } else {
            Err(Failure::Short)
        }
    }
}

fn convert<S: Copy, T: Native>(
    from: &[S],
    into: &mut Vec<T>,
    field: Field,
    number: impl Fn(S) -> Result<i64, String>,
) -> Result<(), Failure> {
    for (row, &value) in from.iter().enumerate() {
        match number(value).and_then(|value| in_range(value, field)) {
            Ok(value) => into.push(T::from_checked(value)),
            Err(found) => return Err(Failure::Value { row, field, found }),
        }
    }
    Ok(())
}

/// A 32-bit value as the number that it is. Negative addresses and times are refused by name.
fn widen(value: i32, place: Place) -> Result<i64, String> {
    match (place.signed, value) {
        (false, value) => Ok(i64::from(value as u32)),
        (true, value) if value < 0 => Err(value.to_string()),
        (true, value) => Ok(i64::from(value)),
    }
}

/// A 64-bit value as the number that it is. Many tools keep addresses as signed 64 bits, so those may be negative.
fn check(value: i64, field: Field, place: Place) -> Result<i64, String> {
    match field {
        Field::Address => Ok(value),
        Field::Time if !place.signed => Ok(value),
        _ if value < 0 && place.signed => Err(value.to_string()),
        _ if value < 0 => Err((value as u64).to_string()),
        _ => Ok(value),
    }
}

fn in_range(value: i64, field: Field) -> Result<i64, String> {
    let (least, most) = field.range();
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(value.to_string())
    }
}

/// The value of every row of a column chunk, if its statistics say that there is but one.
pub(super) fn constant(field: Field, place: Place, chunk: &ColumnChunkMetaData) -> Result<Option<i64>, Failure> {
    let Some(statistics) = chunk.statistics() else { return Ok(None) };
    if place.nullable && statistics.null_count_opt() != Some(0) {
        return Ok(None);
    }
    if !statistics.min_is_exact() || !statistics.max_is_exact() {
        return Ok(None);
    }
    let number = match statistics {
        Statistics::Int32(range) => match (range.min_opt(), range.max_opt()) {
            (Some(min), Some(max)) if min == max => widen(*min, place),
            _ => return Ok(None),
        },
        Statistics::Int64(range) => match (range.min_opt(), range.max_opt()) {
            (Some(min), Some(max)) if min == max => check(*min, field, place),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    match number.and_then(|number| in_range(number, field)) {
        Ok(number) => Ok(Some(number)),
        Err(found) => Err(Failure::Value { row: 0, field, found }),
    }
}
