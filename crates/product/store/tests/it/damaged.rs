//! Files that we did not write, or that came to harm: what is refused, with which remedy, and that nothing panics.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use coldframe_store::{
    store, Block, Columns, Fidelity, Kind, Provenance, Reader, Reference, TraceError, Wanted, Writer,
};
use parquet::basic::Compression;
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A column's values.
enum Values {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Real(Vec<f64>),
}
use Values::{Narrow, Real, Wide};

/// Writes a Parquet file of one row group as another tool would.
fn foreign(path: &Path, schema: &str, columns: &[Values], provenance: Option<&str>) {
    let schema = Arc::new(parse_message_type(&format!("message foreign {{ {schema} }}")).unwrap());
    let keys = provenance.map(|json| vec![KeyValue::new("coldframe".to_owned(), json.to_owned())]);
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_key_value_metadata(keys)
        // Without statistics, constant columns have to be decoded, so that bad values get that far.
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = file.next_row_group().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        match values {
            Narrow(values) => column.typed::<Int32Type>().write_batch(values, None, None).unwrap(),
            Wide(values) => column.typed::<Int64Type>().write_batch(values, None, None).unwrap(),
            Real(values) => column.typed::<DoubleType>().write_batch(values, None, None).unwrap(),
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

const OWN: &str = "required int64 address (INTEGER(64,false)); required int32 size (INTEGER(32,false)); \
                   required int32 kind (INTEGER(8,false));";
const PROVENANCE: &str = r#"{"recorder":"test","fidelity":"exact-references"}"#;

/// The error of a file when it is opened or read to its end.
fn refused(path: &Path) -> TraceError {
    let whole = |path: &Path| -> Result<(), TraceError> {
        let mut reader = Reader::open(path)?;
        let mut block = Block::new();
        while reader.read(&mut block, Wanted::ALL)? > 0 {}
        Ok(())
    };
    whole(path).unwrap_err()
}

#[test]
fn a_file_without_a_readable_provenance_is_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let columns = || [Wide(vec![0]), Narrow(vec![4]), Narrow(vec![1])];
    foreign(&path, OWN, &columns(), None);
    let error = Reader::open(&path).err().unwrap();
    assert!(matches!(error, TraceError::Provenance { .. }) && error.code() == 3);
    assert!(error.to_string().contains("imported as csv:PATH"), "{error}");
    foreign(&path, OWN, &columns(), Some(PROVENANCE));
    assert_eq!(Reader::open(&path).unwrap().provenance().recorder, "test");
    foreign(&path, OWN, &columns(), Some(r#"{"recorder":"test","fidelity":"perfect"}"#));
    let error = Reader::open(&path).err().unwrap();
    assert!(error.to_string().contains("perfect") && error.to_string().contains("record or import"), "{error}");
}

/// The variant's name, the column and the row of an error.
fn place(error: &TraceError) -> (&'static str, &str, Option<u64>) {
    match error {
        TraceError::Io { .. } => ("Io", "", None),
        TraceError::Damaged { row, .. } => ("Damaged", "", Some(*row)),
        TraceError::Column { column, .. } => ("Column", column, None),
        TraceError::Row { field, row, .. } => ("Row", field, Some(*row)),
        _ => ("?", "", None),
    }
}

#[test]
fn bad_columns_and_rows_are_named_with_a_remedy() {
    let address = || Wide(vec![0, 8, 16]);
    let size = || Narrow(vec![4, 4, 4]);
    let kind = || Narrow(vec![0, 1, 2]);
    let (own_time, own_count) =
        (format!("{OWN} required double time;"), format!("{OWN} required int32 count (INTEGER(32,false));"));
    type Case<'a> = (&'a str, Vec<Values>, (&'static str, &'static str, Option<u64>), &'static str);
    let cases: Vec<Case<'_>> = vec![
        // Columns.
        (
            "required int64 addr; required int32 size; required int32 kind;",
            vec![address(), size(), kind()],
            ("Column", "address", None),
            "missing",
        ),
        (
            "required double address; required int32 size; required int32 kind;",
            vec![Real(vec![0.0; 3]), size(), kind()],
            ("Column", "address", None),
            "type DOUBLE",
        ),
        (&own_time, vec![address(), size(), kind(), Real(vec![0.0; 3])], ("Column", "time", None), "record or import"),
        // Rows.
        (OWN, vec![address(), Narrow(vec![4, 0, 4]), kind()], ("Row", "size", Some(1)), "1 to 1073741824"),
        (OWN, vec![address(), Narrow(vec![4, 4, -1]), kind()], ("Row", "size", Some(2)), "split larger"),
        (OWN, vec![address(), size(), Narrow(vec![0, 3, 1])], ("Row", "kind", Some(1)), "0 (fetch), 1 (read)"),
        (OWN, vec![address(), size(), Narrow(vec![-1, 0, 1])], ("Row", "kind", Some(0)), "map the source's kinds"),
        (OWN, vec![Wide(vec![0, -3, 8]), size(), kind()], ("Row", "address", Some(1)), "within 64 bits"),
        (
            &own_count,
            vec![address(), size(), kind(), Narrow(vec![1, 0, 1])],
            ("Row", "count", Some(1)),
            "stand for nothing",
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    for (schema, columns, expected, remedy) in cases {
        foreign(&path, schema, &columns, Some(PROVENANCE));
        let error = refused(&path);
        assert_eq!(place(&error), expected, "{schema}: {error}");
        assert_eq!(error.code(), 3);
        assert!(error.to_string().contains(remedy) && error.to_string().contains("t.parquet"), "{schema}: {error}");
    }
}

#[test]
fn what_is_not_a_whole_parquet_file_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    foreign(&path, OWN, &[Wide(vec![0]), Narrow(vec![4]), Narrow(vec![1])], Some(PROVENANCE));
    let whole = fs::read(&path).unwrap();
    let without_footer = &whole[..whole.len() - 20];
    let mut bad_footer = whole.clone();
    let footer = bad_footer.len() - 8;
    bad_footer[footer..footer + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    for (bytes, expected, remedy) in [
        (&b""[..], "the file is empty", "FORMAT:PATH"),
        (b"PA", "not a Parquet file", "FORMAT:PATH"),
        (b"I  0401ab70,3\n", "not a Parquet file", "FORMAT:PATH"),
        (b"PAR1", "footer, is missing", "copy or record it again"),
        (b"PAR1PAR1", "footer, is missing", "copy or record it again"),
        (without_footer, "footer, is missing", "copy or record it again"),
        (&bad_footer, "", "copy or record it again"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = Reader::open(&path).err().unwrap();
        assert_eq!((place(&error), error.code()), (("Damaged", "", Some(0)), 3), "{error}");
        assert!(error.to_string().contains(expected) && error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn directories_and_missing_files_are_io_errors() {
    let directory = tempfile::tempdir().unwrap();
    for (path, remedy) in [
        (directory.path().to_owned(), "name a file, not a directory"),
        (directory.path().join("none"), "check the path"),
        ("/dev/null/none".into(), "check the directories"),
    ] {
        let error = Reader::open(&path).err().unwrap();
        assert_eq!((place(&error).0, error.code()), ("Io", 5), "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn truncated_stores_are_errors_and_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let mut writer = Writer::create(&path, Columns { time: true, count: true, task: true }).unwrap();
    let row = |row: u64| Reference { time: row * row, ..Reference::new(row.pow(3) & !7, 8, Kind::Read) };
    writer.write(&(0..3000).map(row).collect::<Block>()).unwrap();
    writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
    let whole = fs::read(&path).unwrap();
    assert_eq!(store::fuzz_read(&whole).unwrap(), 3000);
    for length in (0..whole.len()).step_by(7) {
        assert!(store::fuzz_read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        // Cut out of the middle: both ends look right.
        let cut = [&whole[..length], &whole[(length + 5).min(whole.len())..]].concat();
        let _ = store::fuzz_read(&cut);
    }
}

/// 512 MiB of zeros in a page of some KiB.
#[test]
fn a_page_that_unpacks_to_more_than_any_writer_makes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema = Arc::new(parse_message_type(&format!("message foreign {{ {OWN} }}")).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new("coldframe".to_owned(), PROVENANCE.to_owned())]))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(1 << 30)
        .set_write_batch_size(1 << 26)
        .build();
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&vec![0; 1 << 26], None, None).unwrap();
    column.close().unwrap();
    for _ in ["size", "kind"] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&vec![1; 1 << 26], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let error = refused(&path);
    assert!(error.to_string().contains("bytes unpacked, more than"), "{error}");
}
