//! The store from outside: rows are read back as written, in every combination of columns, and no incomplete file is
//! left.

use std::fs;
use std::path::Path;

use coldframe_store::{
    store::SIZE_MAX, Block, Columns, Fidelity, Kind, Mapping, Provenance, Reader, Reference, Summary, Task, TraceError,
    Wanted, Writer,
};
use proptest::prelude::*;

/// Rows per row group of the writer (`GROUP_ROWS`); the tests only need to cross it.
const GROUP_ROWS: u64 = 1 << 20;

fn provenance() -> Provenance {
    Provenance {
        command: Some("ls -l \"a b\"".into()),
        page_size: Some(4096),
        clock: Some("CLOCK_MONOTONIC".into()),
        mappings: vec![Mapping { name: "[heap]".into(), start: 4096, end: 8192, protection: "rw-p".into() }],
        tasks: vec![Task { id: 7, name: "worker".into(), space: 1 }],
        notes: vec!["größer".into()],
        ..Provenance::new("test", Fidelity::PageReferences)
    }
}

fn write(path: &Path, columns: Columns, blocks: &[Block]) -> Summary {
    let mut writer = Writer::create(path, columns).unwrap();
    blocks.iter().for_each(|block| writer.write(block).unwrap());
    writer.finish(provenance()).unwrap()
}

fn read_all(reader: &mut Reader, capacity: usize, wanted: Wanted) -> Vec<Reference> {
    let mut block = Block::with_capacity(capacity);
    let mut rows = Vec::new();
    while reader.read(&mut block, wanted).unwrap() > 0 {
        assert!(block.len() <= capacity);
        rows.extend(block.iter());
    }
    assert_eq!(reader.read(&mut block, wanted).unwrap(), 0, "the end stays the end");
    rows
}

fn reference() -> impl Strategy<Value = Reference> {
    // Few addresses and wild ones, so that both dictionaries and plain pages occur.
    let address = prop_oneof![0u64..64, any::<u64>(), (u64::MAX - 99)..=u64::MAX];
    let small = prop_oneof![Just(4u32), 1u32..100];
    let kind = prop_oneof![Just(Kind::Fetch), Just(Kind::Read), Just(Kind::Write)];
    (address, small, kind, any::<u32>(), any::<u64>(), 1..=u32::MAX).prop_map(
        |(address, size, kind, task, time, count)| {
            let size = size.min(u32::try_from(u64::MAX - address).map_or(size, |rest| rest.saturating_add(1)));
            Reference { address, size, kind, task, time, count }
        },
    )
}

fn columns() -> impl Strategy<Value = Columns> {
    any::<[bool; 3]>().prop_map(|[time, count, task]| Columns { time, count, task })
}

/// A row as read from a file without some columns, when only some columns are wanted.
fn visible(row: Reference, columns: Columns, wanted: Wanted) -> Reference {
    Reference {
        address: row.address,
        size: if wanted.size { row.size } else { 1 },
        kind: if wanted.kind { row.kind } else { Kind::Read },
        task: if wanted.task && columns.task { row.task } else { 0 },
        time: if wanted.time && columns.time { row.time } else { 0 },
        count: if wanted.count && columns.count { row.count } else { 1 },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_come_back_as_they_went_in(
        rows in prop::collection::vec(reference(), 0..400),
        split in 1usize..50,
        capacity in 1usize..300,
        columns in columns(),
        wanted in any::<[bool; 5]>(),
        skip in 0u64..500,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.parquet");
        let blocks: Vec<Block> = rows.chunks(split).map(|chunk| chunk.iter().copied().collect()).collect();
        let summary = write(&path, columns, &blocks);

        let weighted = |kind: Option<Kind>| -> u64 {
            let counted = rows.iter().filter(|row| kind.is_none_or(|kind| row.kind == kind));
            counted.map(|row| u64::from(row.count)).sum()
        };
        prop_assert_eq!(summary.references, weighted(None));
        prop_assert_eq!(summary.instructions, weighted(Some(Kind::Fetch)));
        prop_assert_eq!(summary.reads, weighted(Some(Kind::Read)));
        prop_assert_eq!(summary.writes, weighted(Some(Kind::Write)));
        prop_assert_eq!(summary.bytes_written, fs::metadata(&path).unwrap().len());

        let mut reader = Reader::open(&path).unwrap();
        prop_assert_eq!(reader.rows(), rows.len() as u64);
        prop_assert_eq!(reader.columns(), columns);
        prop_assert_eq!(reader.provenance().references, summary.references);
        prop_assert_eq!(reader.provenance().pages_1KiB, summary.pages_1KiB);

        let expect = |wanted| rows.iter().map(|&row| visible(row, columns, wanted)).collect::<Vec<_>>();
        prop_assert_eq!(read_all(&mut reader, capacity, Wanted::ALL), expect(Wanted::ALL));

        let [size, kind, task, time, count] = wanted;
        let wanted = Wanted { size, kind, task, time, count };
        reader.rewind();
        let skipped = reader.skip(skip).unwrap();
        prop_assert_eq!(skipped, skip.min(rows.len() as u64));
        prop_assert_eq!(reader.position(), skipped);
        prop_assert_eq!(read_all(&mut reader, capacity, wanted), &expect(wanted)[skipped as usize..]);
    }
}

/// A row that its number determines, in a file of more than one row group.
fn numbered(row: u64) -> Reference {
    let kind = [Kind::Fetch, Kind::Read, Kind::Write][(row % 3) as usize];
    Reference { time: row, task: (row % 5) as u32, ..Reference::new(row * 64 % 100_000, 4, kind) }
}

#[test]
fn skipping_and_rewinding_land_on_the_right_row_in_any_row_group() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    let total = 2 * GROUP_ROWS + 10_000;
    let columns = Columns { time: true, task: true, count: false };
    let mut writer = Writer::create(&path, columns).unwrap();
    for start in (0..total).step_by(100_000) {
        let block: Block = (start..total.min(start + 100_000)).map(numbered).collect();
        writer.write(&block).unwrap();
    }
    writer.finish(provenance()).unwrap();

    let mut reader = Reader::open(&path).unwrap();
    let mut block = Block::with_capacity(1000);
    let mut next = 0;
    // Steps within a row group, over its border, over a whole one, and past the end.
    for (skip, wanted) in [
        (0, Wanted::ALL),
        (1, Wanted::ALL),
        (300_000, Wanted::ALL),
        (5, Wanted { time: true, ..Wanted::ADDRESS }),
        (GROUP_ROWS - 302_500, Wanted { time: true, ..Wanted::ADDRESS }),
        (GROUP_ROWS, Wanted::ALL),
    ] {
        next += skip;
        assert_eq!(reader.skip(skip).unwrap(), skip);
        let rows = reader.read(&mut block, wanted).unwrap();
        assert!(rows > 0);
        for row in 0..rows {
            assert_eq!(block.address()[row], numbered(next).address);
            assert_eq!(block.time()[row], next);
            next += 1;
        }
    }
    assert_eq!(reader.skip(u64::MAX).unwrap(), total - next);
    assert_eq!(reader.read(&mut block, Wanted::ALL).unwrap(), 0);
    assert_eq!(reader.skip(1).unwrap(), 0);
    reader.rewind();
    assert_eq!(reader.read(&mut block, Wanted::ALL).unwrap(), 1000);
    assert_eq!(block.get(999), numbered(999));
}

#[test]
fn a_constant_column_is_filled_in_every_block_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    let rows: Vec<Reference> = (0..1000).map(|row| Reference::new(row * 4096, 4096, Kind::Write)).collect();
    write(&path, Columns::default(), &[rows.iter().copied().collect()]);
    let mut reader = Reader::open(&path).unwrap();
    let mut block = Block::with_capacity(300);
    block.push(Reference { task: 9, count: 9, time: 9, ..Reference::new(1, 1, Kind::Read) });
    let mut next = 0;
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        assert_eq!(
            (block.size().len(), block.task().len(), block.count().len()),
            (block.len(), block.len(), block.len())
        );
        assert!(block.time().is_empty(), "a file without time has none to show");
        for row in block.iter() {
            assert_eq!(row, rows[next]);
            next += 1;
        }
    }
    assert_eq!(next, 1000);
}

#[test]
fn provenance_is_kept_and_its_totals_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    let columns = Columns { count: true, ..Columns::default() };
    let block: Block =
        [Reference { count: 5, ..Reference::new(0, 4096, Kind::Fetch) }, Reference::new(4096, 4096, Kind::Write)]
            .into_iter()
            .collect();
    write(&path, columns, &[block]);
    let reader = Reader::open(&path).unwrap();
    let stored = reader.provenance();
    let expected = Provenance {
        references: 6,
        instructions: 5,
        writes: 1,
        pages_1KiB: 8,
        writer: env!("CARGO_PKG_VERSION").into(),
        ..provenance()
    };
    assert_eq!(stored, &expected);
}

#[test]
fn a_store_without_rows_is_read_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    assert_eq!(write(&path, Columns::default(), &[Block::new()]).references, 0);
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.rows(), 0);
    assert!(read_all(&mut reader, 10, Wanted::ALL).is_empty());
}

#[test]
fn a_writer_dropped_early_leaves_the_old_file_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    fs::write(&path, "old").unwrap();
    let mut writer = Writer::create(&path, Columns::default()).unwrap();
    writer.write(&(0..2 * GROUP_ROWS).map(numbered).collect()).unwrap();
    assert!(directory.path().join("trace.parquet.partial").exists());
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn finishing_replaces_the_old_file_and_leaves_no_partial_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    fs::write(&path, "old").unwrap();
    fs::write(directory.path().join("trace.parquet.partial"), "left by a killed process").unwrap();
    write(&path, Columns::default(), &[(0..10).map(numbered).collect()]);
    assert_eq!(Reader::open(&path).unwrap().rows(), 10);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_io_error_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    let partial = directory.path().join("trace.parquet.partial");
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let mut writer = Writer::create(&path, Columns::default()).unwrap();
    let error = match writer.write(&(0..2 * GROUP_ROWS).map(numbered).collect()) {
        Ok(()) => writer.finish(provenance()).unwrap_err(),
        Err(error) => {
            drop(writer);
            error
        }
    };
    assert_eq!(error.code(), 5);
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(!path.exists() && !partial.is_symlink());
}

#[test]
fn a_reader_that_did_not_ask_for_kinds_cannot_be_written_out_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    write(&path, Columns::default(), &[(0..10).map(numbered).collect()]);
    let mut block = Block::new();
    Reader::open(&path).unwrap().read(&mut block, Wanted::ADDRESS).unwrap();
    let mut writer = Writer::create(directory.path().join("copy.parquet"), Columns::default()).unwrap();
    let error = writer.write(&block).unwrap_err();
    assert!(matches!(error, TraceError::Usage { .. }) && error.to_string().contains("Wanted::ACCESS"), "{error}");
}

#[test]
fn rows_that_no_program_makes_are_refused_on_writing() {
    let directory = tempfile::tempdir().unwrap();
    let good = Reference::new(8, 4, Kind::Read);
    for (bad, field, remedy) in [
        (Reference { size: 0, ..good }, "size", "1 to 1073741824"),
        (Reference { size: SIZE_MAX + 1, ..good }, "size", "split larger accesses"),
        (Reference { size: u32::MAX, ..good }, "size", "mend the recorder"),
        (Reference { count: 0, ..good }, "count", "leave out rows"),
        (Reference { address: u64::MAX - 2, ..good }, "address", "within 64 bits"),
    ] {
        let mut writer = Writer::create(directory.path().join("t.parquet"), Columns::default()).unwrap();
        writer.write(&[good, good].into_iter().collect()).unwrap();
        let error = writer.write(&[good, bad].into_iter().collect()).unwrap_err();
        assert!(matches!(&error, TraceError::Row { row: 3, field: named, .. } if *named == field), "{error}");
        assert_eq!(error.code(), 3);
        assert!(error.to_string().contains(remedy), "{error}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn places_that_cannot_be_written_and_levels_that_do_not_exist_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let create = |path: &Path, level| Writer::create_at_level(path, Columns::default(), level).err().unwrap();
    for (path, level, code, remedy) in [
        (directory.path().to_owned(), 1, 5, "name a file, not a directory"),
        (directory.path().join("none/t.parquet"), 1, 5, "check the path"),
        (directory.path().join("t.parquet"), 0, 2, "choose 1 (fast) to 22 (small)"),
        (directory.path().join("t.parquet"), 23, 2, "choose 1 (fast) to 22 (small)"),
    ] {
        let error = create(&path, level);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
