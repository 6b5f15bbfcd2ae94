//! Parquet that we did not write, or that came to harm: what is taken, what is refused, and that nothing panics.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use coldframe_formats::{import, parse_spec};
use coldframe_store::{
    store, Block, Columns, Fidelity, Kind, Provenance, Reader, Reference, Summary, TraceError, Wanted, Writer,
};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A column's values; those of optional columns with their definition levels.
enum Values {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Real(Vec<f64>),
    Optional(Vec<i64>, Vec<i16>),
    Text(Vec<&'static str>),
    Flag(Vec<bool>),
}
use Values::{Flag, Narrow, Optional, Real, Text, Wide};

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
            Text(values) => {
                let values: Vec<ByteArray> = values.iter().map(|text| ByteArray::from(*text)).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap()
            }
            Flag(values) => column.typed::<BoolType>().write_batch(values, None, None).unwrap(),
            Optional(values, levels) => column.typed::<Int64Type>().write_batch(values, Some(levels), None).unwrap(),
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

fn import_parquet(path: &Path) -> Result<(Summary, Vec<Reference>), TraceError> {
    import_declared(path, "", "", "")
}

/// Imports with declared columns, units and kinds; empty texts declare nothing.
fn import_declared(
    path: &Path,
    columns: &str,
    units: &str,
    kinds: &str,
) -> Result<(Summary, Vec<Reference>), TraceError> {
    let out = path.with_extension("imported");
    let mut spec = parse_spec(&format!("parquet:{}", path.display()))?;
    let given = |text: &str| !text.is_empty();
    given(columns).then(|| spec.options.declare_columns(columns)).transpose()?;
    given(units).then(|| spec.options.declare_units(units)).transpose()?;
    given(kinds).then(|| spec.options.declare_kinds(kinds)).transpose()?;
    let summary = import(&spec, &out, &mut |_| ())?;
    let mut reader = Reader::open(&out)?;
    assert_eq!(reader.provenance().recorder, "import parquet");
    let mut block = Block::new();
    reader.read(&mut block, Wanted::ALL)?;
    Ok((summary, block.iter().collect()))
}

const OWN: &str = "required int64 address (INTEGER(64,false)); required int32 size (INTEGER(32,false)); \
                   required int32 kind (INTEGER(8,false));";
const PROVENANCE: &str = r#"{"recorder":"test","fidelity":"exact-references"}"#;

#[test]
fn pandas_style_columns_are_converted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let present = vec![1, 1, 1];
    foreign(
        &path,
        "optional int64 kind; required int32 address; required double weight; optional int64 size; required int64 time;",
        &[
            Optional(vec![0, 1, 2], present.clone()),
            Narrow(vec![16, 32, i32::MAX]),
            Real(vec![0.5; 3]),
            Optional(vec![1, 2, 1 << 30], present),
            Wide(vec![5, 6, i64::MAX]),
        ],
        None,
    );
    let (summary, rows) = import_parquet(&path).unwrap();
    assert_eq!((summary.references, summary.instructions, summary.lines), (3, 1, 3));
    let reference = |address, size, kind, time| Reference { time, ..Reference::new(address, size, kind) };
    assert_eq!(
        rows,
        [
            reference(16, 1, Kind::Fetch, 5),
            reference(32, 2, Kind::Read, 6),
            reference(i32::MAX as u64, 1 << 30, Kind::Write, i64::MAX as u64)
        ]
    );
}

/// The files hold the same four rows, as `to_parquet` of pandas 3.1 (pyarrow 26), `COPY ... TO` of DuckDB 2.0 and
/// `write_parquet` of polars 2.1 write them by default; the last one is pandas' with `compression='gzip'`.
#[test]
fn files_of_pandas_duckdb_and_polars_are_imported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let row = |address, size, kind, time| Reference { time, ..Reference::new(address, size, kind) };
    let expected = [
        row(0x40_0000, 4, Kind::Fetch, 0),
        row(0x7fff_0000, 8, Kind::Read, 10),
        row(0x40_0004, 4, Kind::Fetch, 20),
        row(0x10, 1, Kind::Write, 30),
    ];
    for name in ["pandas.parquet", "duckdb.parquet", "polars.parquet"] {
        fs::copy(data.join(name), &path).unwrap();
        assert_eq!(import_parquet(&path).unwrap_or_else(|error| panic!("{name}: {error}")).1, expected, "{name}");
    }
    fs::copy(data.join("gzip.parquet"), &path).unwrap();
    let error = import_parquet(&path).unwrap_err();
    assert_eq!(place(&error), ("Column", "address", None));
    assert!(error.to_string().contains("write the file with zstd"), "{error}");
}

#[test]
fn signed_64_bit_addresses_keep_their_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema = "required int64 address; required int64 size; required int64 kind;";
    foreign(&path, schema, &[Wide(vec![-4096]), Wide(vec![8]), Wide(vec![1])], None);
    assert_eq!(import_parquet(&path).unwrap().1, [Reference::new(4096u64.wrapping_neg(), 8, Kind::Read)]);
}

#[test]
fn a_stored_trace_is_not_imported_and_a_foreign_one_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let columns = || [Wide(vec![0]), Narrow(vec![4]), Narrow(vec![1])];
    foreign(&path, OWN, &columns(), None);
    let error = Reader::open(&path).err().unwrap();
    assert!(matches!(error, TraceError::Provenance { .. }) && error.code() == 3);
    assert!(error.to_string().contains("import the file as parquet:PATH"), "{error}");
    foreign(&path, OWN, &columns(), Some(PROVENANCE));
    assert_eq!(Reader::open(&path).unwrap().provenance().recorder, "test");
    let error = import_parquet(&path).unwrap_err();
    assert!(matches!(error, TraceError::Provenance { .. }), "{error}");
    assert!(error.to_string().contains("name it without `parquet:`"), "{error}");
    // Declared columns would lose what the store says of its rows.
    let error = import_declared(&path, "address=address", "address=1B,size=1B", "").unwrap_err();
    assert!(error.to_string().contains("name it without `parquet:`"), "{error}");
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
        TraceError::Empty { .. } => ("Empty", "", None),
        TraceError::Usage { .. } => ("Usage", "", None),
        _ => ("?", "", None),
    }
}

#[test]
fn bad_columns_and_rows_are_named_with_a_remedy() {
    let address = || Wide(vec![0, 8, 16]);
    let size = || Narrow(vec![4, 4, 4]);
    let kind = || Narrow(vec![0, 1, 2]);
    type Case = (&'static str, Vec<Values>, (&'static str, &'static str, Option<u64>), &'static str);
    let cases: Vec<Case> = vec![
        // Columns.
        ("required int64 addr; required int32 size; required int32 kind;", vec![address(), size(), kind()],
            ("Column", "address", None), "rename or add it"),
        ("required int64 address; required int32 kind;", vec![address(), kind()], ("Column", "size", None), "rename or add it"),
        ("required int64 address; required int32 size;", vec![address(), size()], ("Column", "kind", None), "rename or add it"),
        ("required double address; required int32 size; required int32 kind;", vec![Real(vec![0.0; 3]), size(), kind()],
            ("Column", "address", None), "cast it to an integer"),
        ("required int64 address; required int32 size; required int32 kind (DATE);", vec![address(), size(), kind()],
            ("Column", "kind", None), "cast it to an integer"),
        ("required int64 address; required int32 size; required int32 kind; required int64 time (TIMESTAMP_MICROS);",
            vec![address(), size(), kind(), address()], ("Column", "time", None), "cast it to an integer"),
        // Rows, decoded straight into the block.
        (OWN, vec![address(), Narrow(vec![4, 0, 4]), kind()], ("Row", "size", Some(1)), "1 to 1073741824"),
        (OWN, vec![address(), Narrow(vec![4, 4, -1]), kind()], ("Row", "size", Some(2)), "1 to 1073741824"),
        (OWN, vec![address(), size(), Narrow(vec![0, 3, 1])], ("Row", "kind", Some(1)), "0 (fetch), 1 (read) or 2 (write)"),
        (OWN, vec![address(), size(), Narrow(vec![-1, 0, 1])], ("Row", "kind", Some(0)), "0 (fetch), 1 (read) or 2 (write)"),
        (OWN, vec![Wide(vec![0, -3, 8]), size(), kind()], ("Row", "address", Some(1)), "within 64 bits"),
        // Rows, converted.
        ("required int64 address; required int64 size; required int64 kind;",
            vec![address(), Wide(vec![4, 4, 1 << 40]), Wide(vec![0, 0, 0])], ("Row", "size", Some(2)), "split larger"),
        ("required int64 address; required int64 size; required int64 kind;",
            vec![address(), Wide(vec![4, 4, 4]), Wide(vec![0, 1 << 32, 0])], ("Row", "kind", Some(1)), "map the source's kinds"),
        ("required int32 address; required int32 size; required int32 kind;",
            vec![Narrow(vec![0, -8, 16]), size(), kind()], ("Row", "address", Some(1)), "within 64 bits"),
        ("optional int64 address; required int32 size; required int32 kind;",
            vec![Optional(vec![0, 8], vec![1, 0, 1]), size(), kind()], ("Row", "address", Some(1)), "mend the recorder"),
        ("required int64 address; required int32 size; required int32 kind; required int32 task;",
            vec![address(), size(), kind(), Narrow(vec![0, 0, -1])], ("Row", "task", Some(2)), "unsigned 32-bit"),
        ("required int64 address; required int32 size; required int32 kind; required int64 time;",
            vec![address(), size(), kind(), Wide(vec![-5, 0, 1])], ("Row", "time", Some(0)), "unsigned nanoseconds"),
        ("required int64 address; required int32 size; required int32 kind; required int32 count (INTEGER(32,false));",
            vec![address(), size(), kind(), Narrow(vec![1, 0, 1])], ("Row", "count", Some(1)), "stand for nothing"),
        ("required int64 address; required int32 size; required int32 kind; required int64 count;",
            vec![address(), size(), kind(), Wide(vec![1, 1, 7])], ("Row", "count", Some(2)), "unreduced references"),
        // None at all.
        (OWN, vec![Wide(vec![]), Narrow(vec![]), Narrow(vec![])], ("Empty", "", None), "whole parquet trace"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    for (schema, columns, (expected, field, row), remedy) in cases {
        foreign(&path, schema, &columns, None);
        let error = import_parquet(&path).unwrap_err();
        assert_eq!(place(&error), (expected, field, row), "{schema}: {error}");
        assert_eq!(error.code(), 3);
        assert!(error.to_string().contains(remedy), "{schema}: {error}");
        assert!(error.to_string().contains("t.parquet"), "{error}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no half-imported store is left");
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
        for error in [Reader::open(&path).err().unwrap(), import_parquet(&path).unwrap_err()] {
            assert_eq!((place(&error).0, error.code()), ("Io", 5), "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
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

/// Sectors of 512 bytes, blocks of 4 KiB, milliseconds: all by hand.
#[test]
fn declared_columns_are_converted_by_their_units() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema = "required int64 lba; optional int64 blocks; required int32 op; required double ts; required int32 vm;";
    let blocks = Optional(vec![1, 2, 262_144], vec![1, 1, 1]);
    let columns =
        [Wide(vec![8, 16, 24]), blocks, Narrow(vec![0, 1, 0]), Real(vec![1.5, 2.25, 4.0]), Narrow(vec![7, 8, 7])];
    foreign(&path, schema, &columns, None);
    let names = "address=lba,size=blocks,kind=op,time=ts,task=5";
    let (summary, rows) = import_declared(&path, names, "address=512B,size=4KiB,time=ms", "0=write,1=read").unwrap();
    let row = |address, size, kind, time, task| Reference { time, task, ..Reference::new(address, size, kind) };
    let expected = [
        row(4096, 4096, Kind::Write, 0, 7),
        row(8192, 8192, Kind::Read, 750_000, 8),
        row(12_288, 1 << 30, Kind::Write, 2_500_000, 7),
    ];
    assert_eq!((summary.references, rows.as_slice()), (3, &expected[..]));
}

#[test]
fn text_flags_and_moments_are_taken_as_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema =
        "required binary a (UTF8); required binary k (UTF8); required boolean w; required int64 t (TIMESTAMP_MICROS);";
    let columns = [Text(vec!["0x10", "ff0"]), Text(vec!["R", "store"]), Flag(vec![true, false]), Wide(vec![5, 7])];
    foreign(&path, schema, &columns, None);
    let rows = import_declared(&path, "address=a,kind=k,time=t", "address=hex:1B,size=8B", "").unwrap().1;
    let row = |address, kind, time| Reference { time, ..Reference::new(address, 8, kind) };
    assert_eq!(rows, [row(0x10, Kind::Read, 0), row(0xff0, Kind::Write, 2_000)]);
    let rows =
        import_declared(&path, "address=a,kind=3", "address=hex:1B,size=8B", "true=write,false=fetch").unwrap().1;
    assert_eq!(rows, [row(0x10, Kind::Write, 0), row(0xff0, Kind::Fetch, 0)]);
}

#[test]
fn a_declaration_that_does_not_fit_the_file_is_refused_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema = "required int64 a; optional int64 s; required binary k (UTF8); required int64 t (TIMESTAMP_MILLIS);\
                  required int32 d (DATE); required int32 n; required double r;";
    let columns = [
        Wide(vec![4096, -4096]),
        Optional(vec![512], vec![1, 0]),
        Text(vec!["r", "trim"]),
        Wide(vec![1, 2]),
        Narrow(vec![1, 2]),
        Narrow(vec![1, -1]),
        Real(vec![0.5, -0.5]),
    ];
    foreign(&path, schema, &columns, None);
    // Each row: the declaration; the error's variant and row; its message.
    let cases = [
        ("size=s", "size=1B", ("Usage", None), "no column is declared to hold addresses"),
        ("address=a", "size=1B", ("Usage", None), "--unit address=512B"),
        ("address=a", "address=1B", ("Usage", None), "--unit size=1B"),
        ("address=a,time=n", "address=1B,size=1B", ("Usage", None), "--unit time=ns"),
        ("address=a,time=t", "address=1B,size=1B,time=ms", ("Usage", None), "says its unit itself"),
        ("", "address=1B", ("Usage", None), "--columns address=address"),
        ("address=b", "address=1B,size=1B", ("Column", None), "the file has a, s, k, t, d, n, r"),
        ("address=9", "address=1B,size=1B", ("Column", None), "name one of these in --columns"),
        ("address=d", "address=1B,size=1B", ("Column", None), "cast it to an integer"),
        ("address=a,size=s", "address=1B,size=1B", ("Row", Some(1)), "size: null"),
        ("address=a,kind=k", "address=1B,size=1B", ("Row", Some(1)), "--kinds 0=read"),
        ("address=a", "address=512B,size=1B", ("Row", Some(1)), "-4096 is not a whole number"),
        ("address=n", "address=1B,size=1B", ("Row", Some(1)), "-1 is not a whole number"),
        ("address=r", "address=1B,size=1B", ("Row", Some(0)), "0.5, not what this column"),
        ("address=a,time=r", "address=1B,size=1B,time=s", ("Row", Some(1)), "-0.5, not what this column"),
        ("address=a,task=n", "address=1B,size=1B", ("Row", Some(1)), "up to 4294967295"),
    ];
    for (columns, units, (expected, row), words) in cases {
        let error = import_declared(&path, columns, units, "").unwrap_err();
        let (variant, _, got) = place(&error);
        assert_eq!((variant, got), (expected, row), "{columns} {units}: {error}");
        assert!(error.to_string().contains(words), "{columns} {units}: {error}");
    }
    // Bits of an address, which a signed column keeps.
    let rows = import_declared(&path, "address=a", "address=1B,size=1B", "").unwrap().1;
    assert_eq!(rows[1].address, 4096u64.wrapping_neg());
}

/// 512 MiB of zeros in a page of some KiB.
#[test]
fn a_page_that_unpacks_to_more_than_any_writer_makes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let schema = Arc::new(parse_message_type("message foreign { required int64 address; }").unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
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
    group.close().unwrap();
    file.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let error = import_declared(&path, "address=address", "address=1B,size=1B", "").unwrap_err();
    assert!(error.to_string().contains("bytes unpacked, more than"), "{error}");
}
