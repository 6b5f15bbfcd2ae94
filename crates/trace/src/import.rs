//! From another tool's trace to a store, in one pass.

use std::fs;
use std::path::Path;

use crate::block::Block;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::format::{self, RowReader, Spec};
use crate::provenance::Provenance;
use crate::store::{Summary, Writer};

/// The progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// References stored.
    pub references: u64,
    /// Lines (or records) read, skipped ones included.
    pub lines: u64,
    /// Of these, skipped as the format asks.
    pub skipped: u64,
    /// Of these, left out because they break the format, as the user allowed.
    pub bad: u64,
    /// Bytes of the (compressed) input read.
    pub bytes: u64,
    /// Bytes of the (compressed) input; `None` for a pipe.
    pub bytes_total: Option<u64>,
}

/// Turns the trace `spec` into a store at `out`, and calls `progress` after each block of rows.
///
/// # Errors
/// Any fault of the input that the reader finds; [`TraceError::Empty`] if it holds no reference at all;
/// [`TraceError::Io`] if `out` cannot be written; [`TraceError::Usage`] if `out` is the input. After an error `out`
/// is unchanged.
pub fn import(spec: &Spec, out: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Summary, TraceError> {
    refuse_same_file(spec.path.as_deref(), out)?;
    let mut reader = format::open(spec)?;
    let mut writer = Writer::create(out, reader.columns())?;
    let mut block = Block::new();
    let mut spans = 0;
    while reader.read(&mut block)? > 0 {
        writer.write(&block)?;
        spans += crossings(&block);
        progress(Progress {
            references: writer.references(),
            lines: reader.lines(),
            skipped: reader.skipped(),
            bad: reader.bad().0,
            bytes: reader.position(),
            bytes_total: reader.length(),
        });
    }
    if writer.references() == 0 {
        return Err(TraceError::Empty {
            path: spec.path.clone().unwrap_or_else(|| "stdin".into()),
            lines: reader.lines(),
            skipped: reader.skipped(),
            remedy: format!("check that the file is a whole {} trace: {}", spec.format.name, spec.format.example)
                .into(),
        });
    }
    let summary = writer.finish(provenance(spec, &*reader, spans))?;
    let (bad, first_bad) = reader.bad();
    let first_bad = first_bad.map(ToString::to_string);
    Ok(Summary { skipped: reader.skipped(), lines: reader.lines(), bad, first_bad, ..summary })
}

/// The usual page size. Requests that cross its borders are counted.
const PAGE: u64 = 4096;

/// Rows that touch more than one page.
fn crossings(block: &Block) -> u64 {
    let spans = |(address, size): (&u64, &u32)| address / PAGE != (address + (u64::from(*size) - 1)) / PAGE;
    block.address().iter().zip(block.size()).filter(|row| spans(*row)).count() as u64
}

fn provenance(spec: &Spec, reader: &dyn RowReader, spans: u64) -> Provenance {
    let mut provenance = Provenance::new(format!("import {}", spec.format.name), spec.format.fidelity);
    provenance.command = reader.command().map(str::to_owned);
    provenance.page_size = reader.page_size();
    provenance.started = reader.started();
    provenance.clock = provenance.started.map(|_| format!("{} times", spec.format.name));
    provenance.tasks = reader.tasks();
    provenance.notes = reader.notes();
    if spec.guessed {
        provenance.notes.push(format!("format {} guessed from the contents", spec.format.name));
    }
    if let (bad @ 1.., Some(first)) = reader.bad() {
        provenance.notes.push(format!("{bad} lines that break the format were left out; the first: {first}"));
    }
    if provenance.fidelity == Fidelity::BlockOnly && spans > 0 {
        provenance
            .notes
            .push(format!("{spans} requests span pages of 4 KiB; the simulator splits them at its page size"));
    }
    provenance
}

/// If the store were renamed over its own source, the source would be lost.
pub(crate) fn refuse_same_file(from: Option<&Path>, out: &Path) -> Result<(), TraceError> {
    let same = match from {
        Some(path) => matches!((fs::canonicalize(path), fs::canonicalize(out)), (Ok(from), Ok(to)) if from == to),
        None => false,
    };
    if !same {
        return Ok(());
    }
    Err(TraceError::Usage {
        what: format!("output {}", out.display()),
        found: "it is the input as well".into(),
        remedy: "name another file".into(),
    })
}
