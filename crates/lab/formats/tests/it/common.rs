//! Reading a trace to its end.

use std::fs;
use std::path::Path;

use coldframe_formats::{open, parse_spec, Options};
use coldframe_store::{Reference, TraceError};

/// All rows, the lines and the skipped ones.
pub type Read = (Vec<Reference>, u64, u64);

pub fn read_file(format: &str, path: &Path, options: &Options) -> Result<Read, TraceError> {
    let mut spec = parse_spec(&format!("{format}:{}", path.display()))?;
    spec.options = options.clone();
    let mut reader = open(&spec)?;
    let mut block = coldframe_store::Block::with_capacity(5);
    let mut rows = Vec::new();
    while reader.read(&mut block)? > 0 {
        rows.extend(block.iter());
    }
    let progress = reader.progress();
    Ok((rows, progress.lines, progress.skipped))
}

pub fn read(format: &str, data: &[u8], options: &Options) -> Result<Read, TraceError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.txt");
    fs::write(&path, data).unwrap();
    read_file(format, &path, options)
}

/// Reads a text whose `line` is bad and asserts its field, place, length, exit code and remedy.
pub fn bad_line(
    format: &str,
    text: &[u8],
    options: &Options,
    (line, (field, offset, len)): (u64, (&str, usize, usize)),
    remedy: &str,
) {
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
    let error = read(format, text, options).expect_err(&shown);
    let TraceError::Line(bad) = &error else { panic!("{shown:?}: {error:?}") };
    assert_eq!((bad.line, bad.field, bad.offset, bad.len), (line, field, offset, len), "{shown:?}: {error}");
    assert_eq!(error.code(), 3);
    assert!(bad.offset + bad.len <= bad.text.len(), "{shown:?}: the span leaves the line");
    let message = error.to_string();
    assert!(message.contains(remedy), "{shown:?}: {message}");
    assert!(message.contains(&format!("t.txt:{line}:{}: {field}", offset + 1)), "{shown:?}: {message}");
}
