//! The columns of the store: their names, their Parquet types, and which of them a file has or a caller wants.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::block::Columns;
use crate::error::TraceError;

/// Most bytes that one reference may touch: 1 GiB, the largest page of x86-64 and the largest block of 4 KiB-granule
/// AArch64. No instruction touches more, and a page-reference trace may name whole pages.
pub const SIZE_MAX: u32 = 1 << 30;

/// The columns that a caller of [`Reader::read`](crate::Reader::read) needs, in addition to the address. Other columns
/// are not decoded and stay empty in the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Bytes touched. Without it, wrapping of address + size is not checked.
    pub size: bool,
    /// Fetch, read or write.
    pub kind: bool,
    /// Task.
    pub task: bool,
    /// Nanoseconds.
    pub time: bool,
    /// References per row.
    pub count: bool,
}

impl Wanted {
    /// Addresses alone.
    pub const ADDRESS: Wanted = Wanted { size: false, kind: false, task: false, time: false, count: false };
    /// Address, size and kind.
    pub const ACCESS: Wanted = Wanted { size: true, kind: true, ..Wanted::ADDRESS };
    /// Every column.
    pub const ALL: Wanted = Wanted { size: true, kind: true, task: true, time: true, count: true };
}

/// The six columns, in file order. The discriminant indexes arrays of per-column state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Address = 0,
    Size = 1,
    Kind = 2,
    Task = 3,
    Time = 4,
    Count = 5,
}

pub(super) const FIELDS: [Field; 6] =
    [Field::Address, Field::Size, Field::Kind, Field::Task, Field::Time, Field::Count];

impl Field {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Field::Address => "address",
            Field::Size => "size",
            Field::Kind => "kind",
            Field::Task => "task",
            Field::Time => "time",
            Field::Count => "count",
        }
    }

    /// The type in the block and in files that are written.
    pub(super) const fn physical(self) -> Physical {
        match self {
            Field::Address | Field::Time => Physical::INT64,
            _ => Physical::INT32,
        }
    }

    fn logical(self) -> LogicalType {
        match self {
            Field::Address | Field::Time => LogicalType::integer(64, false),
            Field::Kind => LogicalType::integer(8, false),
            _ => LogicalType::integer(32, false),
        }
    }

    pub(super) const fn required(self) -> bool {
        matches!(self, Field::Address | Field::Size | Field::Kind)
    }

    pub(super) const fn present(self, columns: Columns) -> bool {
        match self {
            Field::Task => columns.task,
            Field::Time => columns.time,
            Field::Count => columns.count,
            _ => true,
        }
    }

    pub(super) const fn wanted(self, wanted: Wanted) -> bool {
        match self {
            Field::Address => true,
            Field::Size => wanted.size,
            Field::Kind => wanted.kind,
            Field::Task => wanted.task,
            Field::Time => wanted.time,
            Field::Count => wanted.count,
        }
    }

    /// The values that a row may hold, as the numbers that they are (address and time are any 64 bits).
    pub(super) const fn range(self) -> (i64, i64) {
        match self {
            Field::Address | Field::Time => (i64::MIN, i64::MAX),
            Field::Size => (1, SIZE_MAX as i64),
            Field::Kind => (0, 2),
            Field::Task => (0, u32::MAX as i64),
            Field::Count => (1, u32::MAX as i64),
        }
    }

    /// The remedy for a value out of range.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Field::Address => "the access must end within 64 bits of address: mend the recorder",
            Field::Size => "a size is 1 to 1073741824 bytes: mend the recorder, or split larger accesses",
            Field::Kind => "a kind is 0 (fetch), 1 (read) or 2 (write): map the source's kinds to these",
            Field::Task => "a task is an unsigned 32-bit number: number the tasks from 0",
            Field::Time => "a time is unsigned nanoseconds: count from the start of the recording",
            Field::Count => "a count is at least 1: leave out rows that stand for nothing",
        }
    }
}

/// The schema of a file with these columns.
pub(super) fn schema(columns: Columns) -> Result<TypePtr, parquet::errors::ParquetError> {
    let fields = FIELDS
        .iter()
        .filter(|field| field.present(columns))
        .map(|field| {
            Type::primitive_type_builder(field.name(), field.physical())
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(field.logical()))
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("reference").with_fields(fields).build()?))
}

/// Finds our columns in a file's schema. Columns of other names are left alone.
pub(super) fn places(path: &Path, schema: &SchemaDescriptor) -> Result<[Option<usize>; 6], TraceError> {
    let mut places = [None; 6];
    for field in FIELDS {
        let index = schema.columns().iter().position(|column| column.path().parts() == [field.name()]);
        let bad = index.map(|index| schema.column(index)).filter(|column| {
            column.physical_type() != field.physical() || column.max_rep_level() > 0 || column.max_def_level() > 0
        });
        let problem = match bad {
            Some(column) => format!("type {}, which no stored trace has here", column.physical_type()),
            None if index.is_none() && field.required() => "missing".to_owned(),
            None => {
                places[field as usize] = index;
                continue;
            }
        };
        let remedy = "record or import the trace again: only the provenance says that this is a stored trace";
        return Err(TraceError::Column {
            path: path.to_owned(),
            column: field.name().to_owned(),
            problem,
            remedy: remedy.into(),
        });
    }
    Ok(places)
}
