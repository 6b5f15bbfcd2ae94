//! Reading a store: `open`, then `read` until it gives 0 rows; `skip` and `rewind` in between as needed.
//!
//! One row group is open at a time, with a decoder for each wanted column. A column whose least and greatest value in
//! the row group are equal is not decoded at all: the block is filled once and keeps the value (see `Column::fill`).

use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use parquet::basic::Compression;
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::Length;

pub use super::chunk::Source;

use super::check::check;
use super::chunk::pages;
use super::decode::{constant, Failure, Lane};
use super::schema::{places, Field, Wanted, FIELDS};
use crate::block::{Block, Columns};
use crate::error::TraceError;
use crate::provenance::Provenance;

/// Reads one store.
pub struct Reader {
    path: PathBuf,
    source: Source,
    metadata: ParquetMetaData,
    places: [Option<usize>; 6],
    provenance: Provenance,
    rows: u64,
    /// The row group of the next row, the rows of it that were read, and the rows of all groups before it.
    group: usize,
    offset: usize,
    before: u64,
    open: Option<Group>,
}

/// The row group being decoded: its lanes stand `position` rows from its start.
struct Group {
    wanted: Wanted,
    position: usize,
    lanes: [Lane; 6],
}

impl Reader {
    /// Opens a store and reads its footer.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the file cannot be read, [`TraceError::Damaged`] if it is not whole Parquet,
    /// [`TraceError::Column`] if a column is missing or of a wrong type, and [`TraceError::Provenance`] if it has no
    /// provenance.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, TraceError> {
        let path = path.as_ref();
        let source = Source::open(path).map_err(|error| TraceError::io(path, "open", error))?;
        Reader::from_source(path, source)
    }

    /// Opens a store that is already open; `path` is for messages.
    pub fn from_source(path: &Path, source: Source) -> Result<Reader, TraceError> {
        let metadata = footer(path, &source)?;
        let provenance = provenance(path, &metadata)?;
        let places = places(path, metadata.file_metadata().schema_descr())?;
        for (field, index) in FIELDS.into_iter().zip(places).filter_map(|(field, index)| Some((field, index?))) {
            codec(path, field.name(), &metadata, index)?;
        }
        let rows = count_rows(path, &metadata)?;
        Ok(Reader {
            path: path.to_owned(),
            source,
            metadata,
            places,
            provenance,
            rows,
            group: 0,
            offset: 0,
            before: 0,
            open: None,
        })
    }

    /// The origin of the trace, and its totals.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Rows in the file.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Which optional columns the file has.
    pub fn columns(&self) -> Columns {
        let has = |field: Field| self.places[field as usize].is_some();
        Columns { time: has(Field::Time), count: has(Field::Count), task: has(Field::Task) }
    }

    /// The number of rows read: the number of the next row.
    pub fn position(&self) -> u64 {
        self.before + self.offset as u64
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        Length::len(&self.source)
    }

    /// Back to the first row.
    pub fn rewind(&mut self) {
        (self.group, self.offset, self.before) = (0, 0, 0);
        self.open = None;
    }

    /// Skips the next `rows` rows, or the remaining ones, and returns how many those were. Whole row groups cost
    /// nothing; the rest is decoded by the next [`Reader::read`]. Damage in them is not noticed.
    pub fn skip(&mut self, rows: u64) -> Result<u64, TraceError> {
        let mut left = rows;
        while left > 0 && self.group < self.metadata.num_row_groups() {
            let here = (self.group_rows() - self.offset) as u64;
            let step = left.min(here);
            self.offset += step as usize;
            left -= step;
            if step == here {
                self.next_group();
            }
        }
        Ok(rows - left)
    }

    /// Replaces the contents of `block` by the next rows, at most [`Block::capacity`] of them, with the columns in
    /// `wanted`. Returns their number. At the end of a row group there are fewer; 0 means the end of the trace.
    ///
    /// Kinds are 0 to 2, sizes and counts are at least 1, and no access runs past 2^64; otherwise there is an error.
    ///
    /// # Errors
    /// [`TraceError::Damaged`], [`TraceError::Row`] or [`TraceError::Io`]; the block's contents are then unspecified
    /// and the reader does not move.
    pub fn read(&mut self, block: &mut Block, wanted: Wanted) -> Result<usize, TraceError> {
        block.clear_rows();
        while self.group < self.metadata.num_row_groups() && self.offset == self.group_rows() {
            self.next_group();
        }
        if self.group == self.metadata.num_row_groups() {
            block.clear();
            return Ok(0);
        }
        let rows = block.capacity().min(self.group_rows() - self.offset);
        let result = guarded(|| self.decode(block, wanted, rows));
        if let Err(failure) = result {
            self.open = None;
            block.clear();
            return Err(self.explain(failure));
        }
        self.offset += rows;
        Ok(rows)
    }

    fn decode(&mut self, block: &mut Block, wanted: Wanted, rows: usize) -> Result<(), Failure> {
        let stale = |group: &Group| group.wanted != wanted || group.position > self.offset;
        if self.open.as_ref().is_none_or(stale) {
            self.open = Some(self.open_group(wanted)?);
        }
        let Some(group) = &mut self.open else { return Err(Failure::Short) };
        let behind = self.offset - group.position;
        for lane in group.lanes.iter_mut().filter(|_| behind > 0) {
            lane.skip(behind)?;
        }
        group.position = self.offset + rows;
        let [address, size, kind, task, time, count] = &mut group.lanes;
        address.read(&mut block.address, rows)?;
        size.read(&mut block.size, rows)?;
        kind.read(&mut block.kind, rows)?;
        task.read(&mut block.task, rows)?;
        time.read(&mut block.time, rows)?;
        count.read(&mut block.count, rows)?;
        block.rows = rows;
        let suspect = Wanted { size: size.suspect(), kind: kind.suspect(), count: count.suspect(), ..Wanted::ADDRESS };
        check(block, suspect).map_err(|(row, field, problem)| Failure::Value { row, field, problem })
    }

    fn open_group(&self, wanted: Wanted) -> Result<Group, Failure> {
        let group = self.metadata.row_group(self.group);
        let rows = self.group_rows();
        let mut lanes = [const { Lane::Empty }; 6];
        for field in FIELDS.into_iter().filter(|field| field.wanted(wanted)) {
            let Some(index) = self.places[field as usize] else {
                lanes[field as usize] = Lane::absent(field);
                continue;
            };
            let chunk = group.columns().get(index).ok_or(Failure::Short)?;
            lanes[field as usize] = match constant(field, chunk) {
                Some(value) => Lane::Constant(value),
                None => {
                    Lane::new(field, get_column_reader(chunk.column_descr_ptr(), pages(&self.source, chunk, rows)?))
                }
            };
        }
        Ok(Group { wanted, position: 0, lanes })
    }

    fn group_rows(&self) -> usize {
        self.metadata.row_group(self.group).num_rows() as usize
    }

    fn next_group(&mut self) {
        self.before += self.group_rows() as u64;
        self.group += 1;
        self.offset = 0;
        self.open = None;
    }

    fn explain(&self, failure: Failure) -> TraceError {
        let position = self.position();
        match failure {
            Failure::Parquet(error) => explain(&self.path, position, error),
            Failure::Short => TraceError::damaged(&self.path, position, "a column ends before its row group"),
            Failure::Panic => TraceError::damaged(&self.path, position, "the Parquet decoder gave up"),
            Failure::Value { row, field, problem } => TraceError::Row {
                path: self.path.clone(),
                row: position + row as u64,
                field: field.name(),
                problem,
                remedy: field.remedy().into(),
            },
        }
    }
}

/// Runs a part of the parquet crate, and turns a panic into a failure. In 2.6 million mutated files, the checks of
/// `chunk.rs` still let one assertion of parquet 60.1 fail: the length of a run header (`get_vlq_int`).
pub(super) fn guarded<R>(run: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Failure::Panic))
}

pub(super) fn explain(path: &Path, row: u64, error: ParquetError) -> TraceError {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            // An error number says that the system refused; without one, the bytes are at fault.
            Ok(error) if error.raw_os_error().is_some() => return TraceError::io(path, "read", *error),
            Ok(error) => return TraceError::damaged(path, row, error),
            Err(inner) => ParquetError::External(inner),
        },
        other => other,
    };
    TraceError::damaged(path, row, error)
}

/// Reads the footer, after a check of both ends of the file: the most common faults get a clear message.
pub(super) fn footer(path: &Path, source: &Source) -> Result<ParquetMetaData, TraceError> {
    const MAGIC: &[u8] = b"PAR1";
    let refused = |error| explain(path, 0, ParquetError::External(Box::<io::Error>::new(error)));
    let length = Length::len(source);
    let head = source.read(0, length.min(4) as usize).map_err(refused)?;
    if head != MAGIC {
        return Err(TraceError::Damaged {
            path: path.to_owned(),
            row: 0,
            problem: if length == 0 { "the file is empty" } else { "not a Parquet file" }.into(),
            remedy: "name a stored trace, or import another format as FORMAT:PATH".into(),
        });
    }
    let tail = source.read(length.saturating_sub(4), 4).map_err(refused)?;
    if length < 12 || tail != MAGIC {
        return Err(TraceError::damaged(path, 0, "the end of the file, with the Parquet footer, is missing"));
    }
    let parsed = guarded(|| Ok(ParquetMetaDataReader::new().parse_and_finish(source)?));
    parsed.map_err(|failure| match failure {
        Failure::Parquet(error) => explain(path, 0, error),
        _ => TraceError::damaged(path, 0, "the Parquet footer cannot be decoded"),
    })
}

/// The provenance of a stored trace, as JSON.
pub(super) fn stored(metadata: &ParquetMetaData) -> Option<&str> {
    let keys = metadata.file_metadata().key_value_metadata()?;
    keys.iter().find(|pair| pair.key == "coldframe")?.value.as_deref()
}

fn provenance(path: &Path, metadata: &ParquetMetaData) -> Result<Provenance, TraceError> {
    let (problem, remedy) = match stored(metadata).map(serde_json::from_str) {
        Some(Ok(provenance)) => return Ok(provenance),
        Some(Err(cause)) => (format!("unreadable: {cause}"), "record or import the trace again with this version"),
        None => (
            "no `coldframe` key in the file metadata, so nothing says what the rows stand for".into(),
            "name a trace that `record` or `import` wrote; a table of another tool is imported as csv:PATH",
        ),
    };
    Err(TraceError::Provenance { path: path.to_owned(), problem, remedy: remedy.into() })
}

/// Refuses a column of a codec that is not built in. Our files use zstd; pandas and DuckDB default to snappy.
pub(super) fn codec(path: &Path, column: &str, metadata: &ParquetMetaData, index: usize) -> Result<(), TraceError> {
    let chunks = metadata.row_groups().iter().filter_map(|group| group.columns().get(index));
    let unknown =
        |codec: &Compression| !matches!(codec, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_));
    match chunks.map(|chunk| chunk.compression()).find(unknown) {
        None => Ok(()),
        Some(codec) => Err(TraceError::Column {
            path: path.to_owned(),
            column: column.to_owned(),
            problem: format!("compressed with {codec}"),
            remedy: "write the file with zstd, snappy or no compression".into(),
        }),
    }
}

pub(super) fn count_rows(path: &Path, metadata: &ParquetMetaData) -> Result<u64, TraceError> {
    let claimed = metadata.file_metadata().num_rows();
    let mut rows = 0i64;
    for group in metadata.row_groups() {
        let sum = rows.checked_add(group.num_rows()).filter(|_| group.num_rows() >= 0);
        rows = sum.ok_or_else(|| TraceError::damaged(path, 0, "a row group has an impossible number of rows"))?;
    }
    if rows != claimed {
        return Err(TraceError::damaged(path, 0, format!("the footer promises {claimed} rows, its row groups {rows}")));
    }
    Ok(rows as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_decoder_becomes_a_failure() {
        assert!(matches!(
            guarded(|| -> Result<(), Failure> { panic!("as the parquet crate might") }),
            Err(Failure::Panic)
        ));
        assert!(matches!(guarded(|| Ok(1)), Ok(1)));
    }
}
