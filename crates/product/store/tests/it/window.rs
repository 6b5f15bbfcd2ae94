//! Files of a live recorder as traces.

use std::path::{Path, PathBuf};

use coldframe_recording::entries::{is_sampled, Record, Word, CHUNK, COMMAND, HEAD, MAGIC};
use coldframe_recording::span::{AddressKind, ReleaseReader, Span, PAGE};
use coldframe_store::window::{window, Recorded, MANAGED};
use coldframe_store::{Block, Fidelity, Kind, ProgramFacts, Reader, Reference, TraceError, Wanted};

const BASE: u64 = 1 << 40;
const PAGES: u64 = 1 << 20;

/// A recorder's file with these words and records.
fn file(folder: &Path, name: &str, words: &[(Word, u64)], records: &[Record]) -> PathBuf {
    let mut bytes = vec![0u8; HEAD];
    let fixed = [(Word::Magic, MAGIC), (Word::Records, records.len() as u64), (Word::Base, BASE), (Word::Pages, PAGES)];
    for (word, value) in fixed.iter().chain(words) {
        bytes[8 * *word as usize..][..8].copy_from_slice(&value.to_ne_bytes());
    }
    bytes[COMMAND.start..][..name.len()].copy_from_slice(name.as_bytes());
    for record in records {
        record.encode().iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    }
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn entry(page: u32, write: bool, thread: u32) -> Record {
    Record::Entry { page, write, thread, time: u64::from(page) * 10 }
}

fn trace(files: &[PathBuf], to: &Path) -> Result<(Vec<Reference>, Reader), TraceError> {
    let recorded = files.iter().map(|file| Recorded::read(file)).collect::<Result<Vec<_>, _>>()?;
    window(recorded, "a command", ProgramFacts::default(), Vec::new(), to)?;
    let mut reader = Reader::open(to)?;
    let mut block = Block::new();
    reader.read(&mut block, Wanted::ALL)?;
    Ok((block.iter().collect(), reader))
}

/// Page and kind of each row of managed memory, and pages given back.
fn rows_as_text(rows: &[Reference]) -> Vec<String> {
    let (span, mut releases) = (Span { start: BASE, len: PAGES * PAGE }, ReleaseReader::default());
    let tell = |row: &Reference| match span.kind_of(row.address) {
        AddressKind::Page(page) => Some(format!("{page}{}", if row.kind == Kind::Write { "w" } else { "r" })),
        AddressKind::Release(part) => releases.read(part).map(|pages| format!("-{}..{}", pages.start, pages.end)),
        AddressKind::Elsewhere => panic!("{row:?}"),
    };
    rows.iter().filter_map(tell).collect()
}

#[test]
fn a_row_is_an_entry_and_a_write_if_the_page_left_with_other_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let records = [
        Record::Window { pages: 2, shift: 0 },
        entry(3, false, 70),
        entry(5, true, 71),
        Record::Changed { page: 3 },
        entry(3, true, 70),
        entry(6, false, 70),
        entry(7, true, 70),
        // So 7 has left, with the same bytes. Nothing more is known of any page: two of them came by a write.
        entry(7, false, 70),
    ];
    let path = file(folder.path(), "p", &[(Word::Managed, 3)], &records);
    let (rows, reader) = trace(&[path], &folder.path().join("t.parquet")).unwrap();
    assert_eq!(rows_as_text(&rows), ["3w", "5w", "3w", "6r", "7r", "7r"]);
    assert_eq!(
        rows.iter().map(|row| (row.task, row.time)).collect::<Vec<_>>(),
        [(0, 30), (1, 50), (0, 30), (0, 60), (0, 70), (0, 70)]
    );
    let provenance = reader.provenance();
    assert_eq!((provenance.fidelity, provenance.window, provenance.sample), (Fidelity::Window, Some(2), None));
    assert_eq!(provenance.mappings[0].name, MANAGED);
}

#[test]
fn what_was_given_back_stands_between_the_rows_in_one_piece() {
    let folder = tempfile::tempdir().unwrap();
    let back = |page| Record::Released { page, pages: 1 };
    let records = [entry(8, false, 1), entry(9, false, 1), back(8), back(9), back(12), entry(8, false, 1), back(8)];
    let path = file(folder.path(), "p", &[(Word::Managed, 2)], &records);
    let (rows, _) = trace(&[path], &folder.path().join("t.parquet")).unwrap();
    assert_eq!(rows_as_text(&rows), ["8r", "9r", "-8..10", "-12..13", "8r", "-8..9"]);
}

#[test]
fn rows_are_of_the_smallest_sample_and_the_share_is_what_was_touched_of_it() {
    let folder = tempfile::tempdir().unwrap();
    // Of the first two chunks one is in the sample of one in two.
    let (sampled, other) = if is_sampled(0, 1) { (0, CHUNK) } else { (CHUNK, 0) };
    let records = [
        Record::Window { pages: 4, shift: 0 },
        entry(other, false, 1),
        entry(sampled, false, 1),
        entry(sampled + 1, false, 1),
        Record::Window { pages: 3, shift: 1 },
        entry(sampled + 2, false, 1),
        entry(sampled, false, 1),
    ];
    // Five pages were touched for the first time, one of them after it was not sampled any more.
    let path = file(folder.path(), "p", &[(Word::Managed, 5), (Word::ZeroFills, 5)], &records);
    let (rows, reader) = trace(&[path], &folder.path().join("t.parquet")).unwrap();
    assert_eq!(rows_as_text(&rows), [sampled, sampled + 1, sampled + 2, sampled].map(|page| format!("{page}r")));
    assert_eq!((reader.provenance().window, reader.provenance().sample), (Some(6), Some(0.6)));
}

#[test]
fn a_process_that_only_starts_another_is_named_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let small = file(
        folder.path(),
        "sh",
        &[(Word::Managed, 4), (Word::Started, 1), (Word::ZeroFills, 4)],
        &[entry(1, false, 1)],
    );
    let large = [entry(1, false, 2), entry(7, false, 2)];
    let large = file(
        folder.path(),
        "python3",
        &[(Word::Managed, 900), (Word::Started, 2), (Word::ZeroFills, 900), (Word::NotPaged, 123)],
        &large,
    );
    let (rows, reader) = trace(&[large, small], &folder.path().join("t.parquet")).unwrap();
    assert_eq!(rows_as_text(&rows), ["1r", "7r"]);
    let provenance = reader.provenance();
    let group: Vec<_> = provenance.group.iter().map(|p| (p.command.as_str(), p.left_out)).collect();
    assert_eq!(group, [("sh", true), ("python3", false)]);
    let facts = provenance.program.unwrap();
    assert_eq!((facts.managed_bytes, facts.not_paged_bytes, facts.zero_fills), (900 * PAGE, 123, 900));
    assert_eq!((facts.processes, provenance.tasks.len()), (2, 1));
}

#[test]
fn what_a_killed_program_had_not_written_yet_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        file(folder.path(), "p", &[(Word::Managed, 1), (Word::Records, 3)], &[entry(1, false, 1), entry(2, false, 1)]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([0; 16]);
    std::fs::write(&path, bytes).unwrap();
    let (rows, _) = trace(&[path], &folder.path().join("t.parquet")).unwrap();
    assert_eq!(rows_as_text(&rows), ["1r", "2r"]);
}

#[test]
fn a_file_that_is_no_recording_and_one_without_entries_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("t.parquet");
    let empty = file(folder.path(), "p", &[], &[Record::Window { pages: 2, shift: 0 }]);
    assert!(matches!(trace(&[empty], &to), Err(TraceError::Empty { .. })));
    for bytes in [&b""[..], b"PAR1", &[7; HEAD]] {
        let path = folder.path().join("other");
        std::fs::write(&path, bytes).unwrap();
        let error = Recorded::read(&path).unwrap_err().to_string();
        assert!(error.contains("record the program again"), "{error}");
    }
}
