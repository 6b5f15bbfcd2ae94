//! A part of a trace as a trace of its own, compressed harder: what one ships or mails.

use std::path::Path;

use crate::block::Block;
use crate::error::TraceError;
use crate::reference::Kind;
use crate::store::{Reader, Summary, Wanted, Writer};

/// Which part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Rows left out at the start.
    pub skip: u64,
    /// Rows kept after that, before `instructions_only` is looked at; all if `None`.
    pub rows: Option<u64>,
    /// Instruction fetches only.
    pub instructions_only: bool,
}

/// Writes the part of the trace at `from` to `to`, at a zstd level from 1 to 22. Provenance is kept; a note says what was cut.
///
/// # Errors
/// As [`Reader`] and [`Writer`]; [`TraceError::Empty`] if nothing is left, [`TraceError::Usage`] if `to` is `from`.
pub fn cut(from: &Path, to: &Path, part: Part, level: i32) -> Result<Summary, TraceError> {
    crate::import::refuse_same_file(Some(from), to)?;
    let mut reader = Reader::open(from)?;
    crate::reduce::refuse_reduced(from, reader.provenance(), "a part of it has not")?;
    let mut provenance = reader.provenance().clone();
    let mut writer = Writer::create_at_level(to, reader.columns(), level)?;
    let total = reader.rows();
    reader.skip(part.skip)?;
    let mut left = part.rows.unwrap_or(u64::MAX);
    let (mut block, mut kept) = (Block::new(), Block::new());
    while left > 0 && reader.read(&mut block, Wanted::ALL)? > 0 {
        let rows = left.min(block.len() as u64);
        left -= rows;
        kept.clear();
        kept.extend(block.iter().take(rows as usize).filter(|row| !part.instructions_only || row.kind == Kind::Fetch));
        if !kept.is_empty() {
            writer.write(&kept)?;
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
    let rows = part.rows.map_or_else(|| "all rows".to_string(), |n| format!("{n} rows"));
    let kinds = if part.instructions_only { ", of these the instruction fetches" } else { "" };
    provenance.notes.push(format!("cut from a trace of {total} rows: {rows} after row {}{kinds}", part.skip));
    writer.finish(provenance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Fidelity, Provenance, Reference};

    #[test]
    fn a_cut_keeps_the_rows_asked_for_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
        let kinds = [Kind::Fetch, Kind::Read, Kind::Write];
        let block: Block = (0..90u64).map(|i| Reference::new(i * 64, 4, kinds[i as usize % 3])).collect();
        let mut writer = Writer::create(&from, Columns::default()).unwrap();
        writer.write(&block).unwrap();
        writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
        let part = Part { skip: 10, rows: Some(9), instructions_only: true };
        assert_eq!(cut(&from, &to, part, 3).unwrap().references, 3);
        let mut reader = Reader::open(&to).unwrap();
        reader.read(&mut Block::new(), Wanted::ALL).unwrap();
        assert!(reader.provenance().notes.iter().any(|n| n.contains("9 rows after row 10")));
        assert!(matches!(cut(&from, &to, Part { skip: 90, ..part }, 3), Err(TraceError::Empty { .. })));
        assert!(matches!(cut(&from, &from, part, 3), Err(TraceError::Usage { .. })));
    }
}
