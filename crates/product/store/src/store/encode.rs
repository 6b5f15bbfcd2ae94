//! Encodes row groups, several at a time, and writes them to the file in order.
//!
//! Encoding is most of the work of writing (five sixths of it, measured on recordings), and row groups do not depend
//! on each other. So some are gathered, one for each processor, and encoded into memory together. The file is identical
//! to one written sequentially.

use std::fs::File;
use std::io;

use bytes::Bytes;
use parquet::column::writer::{get_column_writer, get_typed_column_writer_mut, ColumnCloseResult};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescPtr;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::schema::{Field, FIELDS};
use crate::block::{Block, Columns};

/// The most row groups at a time: more would only fill the memory.
const GROUPS_MAX: usize = 4;

/// Row groups that are gathered together.
pub(super) fn at_a_time() -> usize {
    rayon::current_num_threads().min(GROUPS_MAX)
}

/// The encoded columns of a row group.
type Chunks = Vec<(Bytes, ColumnCloseResult)>;

/// Writes these row groups, each with some rows.
pub(super) fn write(groups: &[Block], columns: Columns, file: &mut SerializedFileWriter<File>) -> Result<()> {
    let schema = SchemaDescPtr::new(file.schema_descr().clone());
    let properties = file.properties().clone();
    let encoded: Vec<_> = groups.par_iter().map(|rows| encode(rows, &schema, &properties, columns)).collect();
    encoded.into_iter().try_for_each(|chunks| append(chunks?, file))
}

fn append(chunks: Chunks, file: &mut SerializedFileWriter<File>) -> Result<()> {
    let mut group = file.next_row_group()?;
    for (bytes, close) in chunks {
        group.append_column(&bytes, close)?;
    }
    group.close().map(drop)
}

fn encode(rows: &Block, schema: &SchemaDescPtr, properties: &WriterPropertiesPtr, columns: Columns) -> Result<Chunks> {
    let present = FIELDS.into_iter().filter(|field| field.present(columns));
    let chunks = present.enumerate().map(|(index, field)| {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(schema.column(index), properties.clone(), pages);
        let long =
            |values: &[i64], writer| get_typed_column_writer_mut::<Int64Type>(writer).write_batch(values, None, None);
        let short =
            |values: &[i32], writer| get_typed_column_writer_mut::<Int32Type>(writer).write_batch(values, None, None);
        match field {
            Field::Address => long(rows.address.values(), &mut writer)?,
            Field::Size => short(rows.size.values(), &mut writer)?,
            Field::Kind => short(rows.kind.values(), &mut writer)?,
            Field::Task => short(rows.task.values(), &mut writer)?,
            Field::Time => long(rows.time.values(), &mut writer)?,
            Field::Count => short(rows.count.values(), &mut writer)?,
        };
        let close = writer.close()?;
        let bytes = sink.into_inner().map_err(|error| ParquetError::from(io::Error::other(error.to_string())))?;
        Ok((Bytes::from(bytes), close))
    });
    chunks.collect()
}

#[cfg(test)]
mod tests {
    use super::super::writer::GROUP_ROWS;
    use crate::{Block, Columns, Fidelity, Kind, Provenance, Reader, Reference, Wanted, Writer};

    #[test]
    fn row_groups_stand_in_the_file_in_the_order_of_their_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let rows = 6 * GROUP_ROWS as u64 + 1000;
        let mut writer = Writer::create(&path, Columns::default()).unwrap();
        let mut block = Block::new();
        for address in 0..rows {
            // Groups of different cost, so that a later one may be ready first.
            let spread = if (address / GROUP_ROWS as u64).is_multiple_of(2) { address } else { address & !4095 };
            block.push(Reference::new(spread, 1, Kind::Read));
            if block.len() == block.capacity() || address + 1 == rows {
                writer.write(&block).unwrap();
                block.clear();
            }
        }
        writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let mut next = 0;
        while reader.read(&mut block, Wanted::ADDRESS).unwrap() > 0 {
            for &address in block.address() {
                let want = if (next / GROUP_ROWS as u64).is_multiple_of(2) { next } else { next & !4095 };
                assert_eq!(address, want);
                next += 1;
            }
        }
        assert_eq!(next, rows);
    }
}
