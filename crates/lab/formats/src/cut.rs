//! Writes a part of a trace as a new trace with stronger compression, to ship or mail.

use std::path::Path;

use coldframe_store::block::Block;
use coldframe_store::error::TraceError;
use coldframe_store::provenance::{Cut, Part};
use coldframe_store::reference::{Kind, Reference};
use coldframe_store::store::{Reader, Summary, Wanted, Writer};

/// Writes a part of the trace at `from` to `to`, at a zstd level from 1 to 22. The provenance is kept, with a note of
/// the cut.
///
/// # Errors
/// As [`Reader`] and [`Writer`]; [`TraceError::Empty`] if nothing is left; [`TraceError::Usage`] if `to` is `from`, or
/// if a part by time is requested of a trace without times.
pub fn cut(from: &Path, to: &Path, part: Part, level: i32) -> Result<Summary, TraceError> {
    crate::import::refuse_same_file(Some(from), to)?;
    let mut reader = Reader::open(from)?;
    if timed(&part) && !reader.columns().time {
        return Err(TraceError::Usage {
            what: from.display().to_string(),
            problem: "it has no times to cut at".into(),
            remedy: "cut by rows, with --skip and --rows".into(),
        });
    }
    let mut provenance = reader.provenance().clone();
    let mut writer = Writer::create_at_level(to, reader.columns(), level)?;
    let total = reader.rows();
    reader.skip(part.skip)?;
    let mut left = part.rows.unwrap_or(u64::MAX);
    let (mut block, mut rows_in_part) = (Block::new(), Block::new());
    while left > 0 && reader.read(&mut block, Wanted::ALL)? > 0 {
        let rows = left.min(block.len() as u64);
        left -= rows;
        rows_in_part.clear();
        rows_in_part.extend(block.iter().take(rows as usize).filter(|row| holds(&part, row)));
        if !rows_in_part.is_empty() {
            writer.write(&rows_in_part)?;
        }
    }
    if writer.references() == 0 {
        return Err(TraceError::Empty {
            path: from.to_owned(),
            lines: total,
            skipped: part.skip.min(total),
            remedy: format!("the trace has {total} rows; leave fewer out").into(),
        });
    }
    let cut = Cut { part, of_rows: total };
    provenance.notes.push(format!("cut: {cut}"));
    provenance.cuts.push(cut);
    writer.finish(provenance)
}

fn timed(part: &Part) -> bool {
    part.from_ns.is_some() || part.until_ns.is_some()
}

/// Whether a row is in the part by its time and kind.
fn holds(part: &Part, row: &Reference) -> bool {
    let before_start = part.from_ns.is_some_and(|from| row.time < from);
    let late = part.until_ns.is_some_and(|until| row.time >= until);
    !before_start && !late && (!part.instructions_only || row.kind == Kind::Fetch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_store::{Columns, Fidelity, Provenance};

    fn write(path: &Path, time: bool, row: impl Fn(u64) -> Reference) {
        let mut writer = Writer::create(path, Columns { time, ..Columns::default() }).unwrap();
        writer.write(&(0..90).map(row).collect()).unwrap();
        writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
    }

    #[test]
    fn a_cut_keeps_the_rows_asked_for_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
        let kinds = [Kind::Fetch, Kind::Read, Kind::Write];
        write(&from, false, |i| Reference::new(i * 64, 4, kinds[i as usize % 3]));
        let part = Part { skip: 10, rows: Some(9), instructions_only: true, ..Part::default() };
        assert_eq!(cut(&from, &to, part, 3).unwrap().references, 3);
        let mut reader = Reader::open(&to).unwrap();
        reader.read(&mut Block::new(), Wanted::ALL).unwrap();
        assert_eq!(reader.provenance().cuts, [Cut { part, of_rows: 90 }]);
        assert!(reader.provenance().notes.iter().any(|n| n.contains("9 rows after row 10")));
        assert!(matches!(cut(&from, &to, Part { skip: 90, ..part }, 3), Err(TraceError::Empty { .. })));
        assert!(matches!(cut(&from, &from, part, 3), Err(TraceError::Usage { .. })));
    }

    #[test]
    fn a_cut_by_time_keeps_the_rows_of_that_time() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
        let row = |i: u64| Reference { time: i * 100, ..Reference::new(i * 64, 4, Kind::Read) };
        write(&from, true, row);
        let part = Part { from_ns: Some(1000), until_ns: Some(1300), ..Part::default() };
        assert_eq!(cut(&from, &to, part, 3).unwrap().references, 3);
        let mut block = Block::new();
        Reader::open(&to).unwrap().read(&mut block, Wanted::ALL).unwrap();
        assert_eq!(block.time(), [1000, 1100, 1200]);
        write(&from, false, row);
        let error = cut(&from, &to, part, 3).unwrap_err();
        assert!(error.to_string().contains("--skip and --rows"), "{error}");
    }
}
