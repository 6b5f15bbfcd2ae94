//! `record --raw` and `import`: the trace is the one that `record` makes.

use std::path::Path;
use std::process::Command;

use coldframe_store::{Block, Reader, Wanted};
use coldframe_toolbox::program_of;
use coldframe_toolbox::programs::can_page;

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program_of(words)).args(words).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Every row, with its address and kind, and the notes between them.
fn rows(trace: &Path) -> Vec<(u64, u8)> {
    let (mut reader, mut block, mut all) = (Reader::open(trace).unwrap(), Block::new(), Vec::new());
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        all.extend(block.iter().map(|row| (row.address, row.kind as u8)));
    }
    all
}

#[test]
fn a_raw_file_becomes_the_trace_that_record_makes_and_is_refused_if_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    if !can_page() {
        return;
    }
    let at = |name: &str| folder.path().join(name);
    let lines: String = (0..60_000u64).map(|i| format!("{}\n", i * 7919 % 100_003)).collect();
    std::fs::write(at("n.txt"), lines).unwrap();
    let program = ["--", "sort", "--parallel=1", "-o", "sorted", "n.txt"];
    let record = |more: &[&str]| run(folder.path(), &[&["record", "--window", "64"], more, &program].concat());
    assert_eq!(record(&["--raw", "-o", "sort.raw"]).0, Some(0));
    assert_eq!(record(&["-o", "direct.parquet"]).0, Some(0));
    assert_eq!(run(folder.path(), &["trace", "import", "sort.raw"]).0, Some(0));
    let (raw, direct) = (Reader::open(at("sort.parquet")).unwrap(), Reader::open(at("direct.parquet")).unwrap());
    assert_eq!(raw.provenance().command, direct.provenance().command);
    assert_eq!(raw.provenance().window, Some(64));
    // Two runs of one program with one thread, whose memory begins at the same address.
    let (raw_rows, direct_rows) = (rows(&at("sort.parquet")), rows(&at("direct.parquet")));
    assert!(raw_rows.len() > 500, "{} rows", raw_rows.len());
    let differ = raw_rows.len().abs_diff(direct_rows.len());
    assert!(differ * 20 < direct_rows.len(), "{} and {} rows", raw_rows.len(), direct_rows.len());
    let bytes = std::fs::read(at("sort.raw")).unwrap();
    for length in [40, bytes.len() / 2, bytes.len() - 5] {
        std::fs::write(at("cut.raw"), &bytes[..length]).unwrap();
        let (code, message) = run(folder.path(), &["trace", "import", "cut.raw"]);
        assert!(matches!(code, Some(2 | 3)), "{length}: {code:?}: {message}");
        assert!(message.starts_with("error: cut.raw"), "{message}");
    }
    let (code, message) = record(&["--raw", "--stats", "s.json"]);
    assert!(code == Some(2) && message.contains("--stats does not go with --raw"), "{message}");
}
