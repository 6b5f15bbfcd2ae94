//! Writing a store: `create`, `write` blocks, `finish`.
//!
//! Rows are gathered in memory until some row groups are full, which are then encoded (`encode.rs`). Everything is
//! written to `PATH.partial`, and `finish` renames the file. So a file under its own name is always complete. A
//! writer that is dropped without `finish`, for example after an error, removes its file. A path has only one writer
//! at a time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::check;
use super::count::Totals;
use super::encode::{at_a_time, write};
use super::schema::{schema, Field, Wanted};
use crate::block::{Block, Columns};
use crate::error::TraceError;
use crate::provenance::Provenance;
use crate::reference::Kind;

/// The zstd level of recordings. On 20 million rows of perl under lackey, levels 1, 3 and 19 take 0.37, 0.36 and 0.30
/// bytes per row, are written at 38, 22 and 0.8 million rows/s, and are read equally fast. A recorder must keep up, so
/// the lowest level is used.
pub const LEVEL_DEFAULT: i32 = 1;
/// zstd level of traces that are shipped: slow to write, and as fast to read.
pub const LEVEL_SHIPPED: i32 = 19;

/// Rows per row group. The writer has a row group in memory (16 to 36 MiB), and a row group shares a dictionary. 2^18
/// rows make files 13 % larger; 2^22 rows save 9 % for four times the memory; none is read faster (same trace).
pub(super) const GROUP_ROWS: usize = 1 << 20;
/// Rows per data page, the unit of compression. The usual 20,000 cost three times the bytes and a fifth of the reading
/// speed; 2^16 rows half as many bytes again (same trace).
const PAGE_ROWS: usize = 1 << 18;
/// Rows between two checks of these limits; a limit may be exceeded by as many.
const BATCH_ROWS: usize = 1 << 13;
/// Bytes of a column's dictionary, above which the rest of the row group is PLAIN.
const DICTIONARY_BYTES: usize = 1 << 20;

/// The totals of a finished store, or of an import.
#[allow(non_snake_case)] // `pages_1KiB`: outside a type the name carries the unit, as printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// References: rows weighted by their `count`.
    pub references: u64,
    /// Of these, instruction fetches.
    pub instructions: u64,
    /// Of these, data reads.
    pub reads: u64,
    /// Of these, data writes.
    pub writes: u64,
    /// Rows stored.
    pub rows: u64,
    /// Lines of the source that its format says to skip; 0 without a source.
    pub skipped: u64,
    /// Lines of the source that break its format and were left out, as the user allowed.
    #[serde(default)]
    pub bad: u64,
    /// The first of these, as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<String>,
    /// Lines (or rows) of the source; 0 without one.
    pub lines: u64,
    /// Bytes of the file.
    pub bytes_written: u64,
    /// Distinct aligned 1 KiB granules touched.
    pub pages_1KiB: u64,
}

/// Writes one store.
pub struct Writer {
    path: PathBuf,
    partial: PathBuf,
    columns: Columns,
    file: Option<SerializedFileWriter<File>>,
    /// Row groups: the first ones are `full`, the next one is being gathered, the others are empty.
    groups: Vec<Block>,
    full: usize,
    totals: Totals,
}

impl Writer {
    /// Starts a store at `path` with these columns, compressed at [`LEVEL_DEFAULT`].
    ///
    /// # Errors
    /// [`TraceError::Io`] if `PATH.partial` cannot be created.
    pub fn create(path: impl AsRef<Path>, columns: Columns) -> Result<Writer, TraceError> {
        Writer::create_at_level(path, columns, LEVEL_DEFAULT)
    }

    /// Like [`Writer::create`], at zstd level `level`, 1 to 22. Use [`LEVEL_SHIPPED`] for traces that are read much
    /// more often than written.
    ///
    /// # Errors
    /// Also [`TraceError::Usage`] for another level.
    pub fn create_at_level(path: impl AsRef<Path>, columns: Columns, level: i32) -> Result<Writer, TraceError> {
        let path = path.as_ref();
        // zstd itself also takes 0 (its default) and negative levels (larger files, hardly faster).
        let valid =
            Some(level).filter(|level| (1..=22).contains(level)).and_then(|level| ZstdLevel::try_new(level).ok());
        let level = valid.ok_or_else(|| TraceError::Usage {
            what: format!("compression level {level}"),
            problem: "no such level".into(),
            remedy: "choose 1 (fast) to 22 (small)".into(),
        })?;
        let partial = partial_path(path)?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("coldframe ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_enabled(true)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_data_page_size_limit(usize::MAX)
            .set_write_batch_size(BATCH_ROWS)
            // One minimum and one maximum for each row group show the reader which columns are constant. Indexes of
            // pages would serve point queries, which traces do not need.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // Addresses are never constant, and counts hardly ever are. Searching for their minimum and maximum would
            // take 5 % of a recording's time.
            .set_column_statistics_enabled(Field::Address.name().into(), EnabledStatistics::None)
            .set_column_statistics_enabled(Field::Count.name().into(), EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(None)
            .build();
        let file = File::create(&partial).map_err(|error| TraceError::io(&partial, "create", error))?;
        let file = schema(columns)
            .and_then(|schema| SerializedFileWriter::new(file, schema, Arc::new(properties)))
            .map_err(|error| write_error(path, error));
        let mut writer = Writer {
            path: path.to_owned(),
            partial,
            columns,
            file: None,
            groups: vec![Block::default(); at_a_time()],
            full: 0,
            totals: Totals::default(),
        };
        writer.file = Some(file?);
        Ok(writer)
    }

    /// Appends the rows of `block`. If the file has an optional column that the block lacks, its default is stored
    /// (task 0, time 0, count 1). Columns that the file does not have are dropped.
    ///
    /// # Errors
    /// [`TraceError::Row`] if a row's size is 0 or above [`SIZE_MAX`](super::SIZE_MAX), its count is 0, or it runs
    /// past 2^64; [`TraceError::Usage`] if the block lacks sizes or kinds; [`TraceError::Io`] if the file system
    /// refuses. After an error the writer cannot be used any more.
    pub fn write(&mut self, block: &Block) -> Result<(), TraceError> {
        if block.size().len() != block.len() || block.kind().len() != block.len() {
            return Err(TraceError::Usage {
                what: "writing a block".into(),
                problem: "it was read without its sizes or kinds".into(),
                remedy: "read it with Wanted::ACCESS or more".into(),
            });
        }
        check(block, Wanted::ALL).map_err(|(row, field, problem)| TraceError::Row {
            path: self.path.clone(),
            row: self.totals.rows + row as u64,
            field: field.name(),
            problem,
            remedy: field.remedy().into(),
        })?;
        self.totals.add(block);
        let mut from = 0;
        while from < block.len() {
            let group = &mut self.groups[self.full];
            let to = block.len().min(from + GROUP_ROWS - group.len());
            group.append(block, from..to, self.columns);
            from = to;
            self.full += usize::from(group.len() == GROUP_ROWS);
            if self.full == self.groups.len() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// References written so far, weighted by `count`.
    pub fn references(&self) -> u64 {
        self.totals.references()
    }

    /// Completes the file under its own name. The totals in `provenance` and its `writer` are filled in here.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the file system refuses; `PATH` is then untouched.
    pub fn finish(mut self, mut provenance: Provenance) -> Result<Summary, TraceError> {
        self.flush()?;
        let totals = &self.totals;
        provenance.references = totals.references();
        provenance.instructions = totals.of(Kind::Fetch);
        provenance.reads = totals.of(Kind::Read);
        provenance.writes = totals.of(Kind::Write);
        provenance.pages_1KiB = totals.granules();
        provenance.writer = env!("CARGO_PKG_VERSION").to_owned();
        let bytes_written = self.close(&provenance)?;
        fs::rename(&self.partial, &self.path).map_err(|error| TraceError::io(&self.path, "rename to", error))?;
        Ok(Summary {
            references: provenance.references,
            instructions: provenance.instructions,
            reads: provenance.reads,
            writes: provenance.writes,
            rows: self.totals.rows,
            skipped: 0,
            bad: 0,
            first_bad: None,
            lines: 0,
            bytes_written,
            pages_1KiB: provenance.pages_1KiB,
        })
    }

    /// Writes the footer and waits for the disk, so that a full disk is noticed here. Returns the file's length.
    fn close(&mut self, provenance: &Provenance) -> Result<u64, TraceError> {
        let Some(mut file) = self.file.take() else { return Ok(0) };
        let json = serde_json::to_string(provenance)
            .map_err(|error| TraceError::io(&self.path, "write the provenance of", error.into()))?;
        let mut keys = vec![
            ("coldframe", json),
            ("fidelity", provenance.fidelity.name().to_owned()),
            ("recorder", provenance.recorder.clone()),
        ];
        keys.extend(provenance.command.clone().map(|command| ("command", command)));
        for (key, value) in keys {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        file.finish().map_err(|error| write_error(&self.path, error))?;
        let length = file.bytes_written() as u64;
        file.flush()
            .and_then(|()| file.inner().sync_all())
            .map_err(|error| TraceError::io(&self.path, "write", error))?;
        Ok(length)
    }

    /// Writes all rows that are not in the file yet.
    fn flush(&mut self) -> Result<(), TraceError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let gathered = self.groups.iter().take_while(|group| !group.is_empty()).count();
        let result = write(&self.groups[..gathered], self.columns, file);
        self.groups.iter_mut().for_each(Block::clear);
        self.full = 0;
        result.map_err(|error| write_error(&self.path, error))
    }
}

/// A writer that has not finished leaves no file.
impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.file.take());
        // After `finish` the name is gone already.
        let _ = fs::remove_file(&self.partial);
    }
}

/// `PATH.partial`, in the same directory so that the rename is one step.
fn partial_path(path: &Path) -> Result<PathBuf, TraceError> {
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        return Err(TraceError::io(path, "write", io::ErrorKind::IsADirectory.into()));
    };
    let mut partial = OsString::from(name);
    partial.push(".partial");
    Ok(path.with_file_name(partial))
}

/// The parquet crate hands back the system's refusal as an external error.
fn write_error(path: &Path, error: ParquetError) -> TraceError {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    };
    TraceError::io(path, "write", error)
}
