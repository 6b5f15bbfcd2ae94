//! The output of the writers for other tools, read back by our own readers and compared with the layouts.

use std::fs;
use std::path::{Path, PathBuf};

use coldframe_formats::export;
use coldframe_store::{Columns, Fidelity, Kind, Provenance, Reference, TraceError, Writer};

fn rows() -> Vec<Reference> {
    let row = |address, size, kind, task, time| Reference { task, time, ..Reference::new(address, size, kind) };
    vec![
        row(0x7000_1000, 8, Kind::Read, 0, 0),
        row(0x7000_1ffc, 8, Kind::Write, 0, 1_000_000),
        row(0x40_0000, 4, Kind::Fetch, 0, 2_000_000_000),
        Reference { count: 2, ..row(0x7000_1000, 1, Kind::Read, 0, 3_000_000_000) },
    ]
}

fn store(folder: &Path, fidelity: Fidelity) -> PathBuf {
    let path = folder.join("t.parquet");
    let mut writer = Writer::create(&path, Columns { time: true, count: true, task: true }).unwrap();
    writer.write(&rows().into_iter().collect()).unwrap();
    writer.finish(Provenance::new("test", fidelity)).unwrap();
    path
}

fn written(format: &str, fidelity: Fidelity) -> (u64, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let requests = export(&store(folder.path(), fidelity), format, &out, 4096).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    (requests, fs::read(out).unwrap())
}

#[test]
fn oracle_general_has_every_page_request_and_when_it_comes_next() {
    let (requests, bytes) = written("oracleGeneral", Fidelity::ExactReferences);
    let record = |at: usize| {
        let record = &bytes[at * 24..][..24];
        let number = |from: usize, to: usize| record[from..to].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        (number(0, 4), number(4, 12), number(12, 16), number(16, 24) as i64)
    };
    assert_eq!((requests, bytes.len()), (6, 6 * 24));
    let all: Vec<_> = (0..6).map(record).collect();
    // Time in seconds, page, bytes, next request of the page counted from 1.
    assert_eq!(
        all,
        [
            (0, 0x70001, 4096, 2),
            (0, 0x70001, 4096, 5),
            (0, 0x70002, 4096, -1),
            (2, 0x400, 4096, -1),
            (3, 0x70001, 4096, 6),
            (3, 0x70001, 4096, -1),
        ]
    );
}

#[test]
fn what_cannot_be_written_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(folder.path(), Fidelity::ExactReferences);
    let out = folder.path().join("out");
    for (format, page, remedy) in
        [("gem5", 4096, "oracleGeneral, swap"), ("swap", 1000, "give the page size"), ("swap", 0, "give the page size")]
    {
        let error = export(&from, format, &out, page).unwrap_err();
        assert!(matches!(error, TraceError::Usage { .. }) && error.to_string().contains(remedy), "{error}");
    }
    let error = export(&from, "swap", &from, 4096).unwrap_err();
    assert!(error.to_string().contains("name another file"), "{error}");
    assert!(!out.exists());
}

#[test]
fn a_block_trace_is_a_swap_trace_of_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("t.parquet"), folder.path().join("t.csv"));
    let row = |address, size, kind, time| Reference { time, task: 8, ..Reference::new(address, size, kind) };
    let write = |rows: &[Reference], fidelity| {
        let mut writer = Writer::create(&from, Columns { time: true, count: false, task: true }).unwrap();
        writer.write(&rows.iter().copied().collect()).unwrap();
        writer.finish(Provenance::new("test", fidelity)).unwrap();
    };
    let rows = [row(4096, 8192, Kind::Write, 5), row(8192, 512, Kind::Read, 9)];
    write(&rows, Fidelity::BlockOnly);
    assert_eq!(export(&from, "swap", &to, 4096).unwrap(), 3);
    assert_eq!(fs::read_to_string(&to).unwrap(), "ts_ns,op,slot,pid\n5,out,1,1\n5,out,2,1\n9,in,2,1\n");
    let trace = coldframe_formats::swap::read(&to).unwrap();
    assert_eq!((trace.events.len(), trace.slots()), (3, 3));
    let refused = |rows: &[Reference], fidelity, words: &str| {
        write(rows, fidelity);
        let error = export(&from, "swap", &to, 4096).unwrap_err();
        assert!(matches!(error, TraceError::Usage { .. }) && error.to_string().contains(words), "{error}");
    };
    refused(&rows, Fidelity::ExactReferences, "does not say what is written back");
    refused(&[row(1 << 40, 512, Kind::Read, 0)], Fidelity::BlockOnly, "at most 64 GiB");
    refused(&[rows[0], Reference { task: 9, ..rows[1] }], Fidelity::BlockOnly, "2 devices");
}
