//! From another tool's trace to a store, in one pass.

use std::fs;
use std::path::Path;

use crate::format::{self, Facts, Progress, Spec};
use coldframe_store::block::Block;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::provenance::Provenance;
use coldframe_store::store::{Summary, Writer};

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
        progress(Progress { references: writer.references(), ..reader.progress() });
    }
    let Progress { lines, skipped, bad, .. } = reader.progress();
    if writer.references() == 0 {
        return Err(TraceError::Empty {
            path: spec.path.clone().unwrap_or_else(|| "stdin".into()),
            lines,
            skipped,
            remedy: format!(
                "skipped are {}; check that the file is a whole {} trace: {}",
                spec.format.skips, spec.format.name, spec.format.example
            )
            .into(),
        });
    }
    let facts = reader.facts();
    let first_bad = facts.first_bad.clone();
    let summary = writer.finish(provenance(spec, facts, bad, spans))?;
    Ok(Summary { skipped, lines, bad, first_bad, ..summary })
}

/// The usual page size. Requests that cross its borders are counted.
const PAGE: u64 = 4096;

/// Rows that touch more than one page.
fn crossings(block: &Block) -> u64 {
    let spans = |(address, size): (&u64, &u32)| address / PAGE != (address + (u64::from(*size) - 1)) / PAGE;
    block.address().iter().zip(block.size()).filter(|row| spans(*row)).count() as u64
}

fn provenance(spec: &Spec, facts: Facts, bad: u64, spans: u64) -> Provenance {
    let fidelity = if spec.options.number_objects { Fidelity::KeyRequests } else { spec.format.fidelity };
    let mut provenance = Provenance {
        command: facts.command,
        page_size: facts.page_size,
        started: facts.started,
        clock: facts.started.map(|_| format!("{} times", spec.format.name)),
        tasks: facts.tasks,
        notes: facts.notes,
        ..Provenance::new(format!("import {}", spec.format.name), fidelity)
    };
    let notes = &mut provenance.notes;
    if spec.guessed {
        notes.push(format!("format {} guessed from the contents", spec.format.name));
    }
    if let Some(first) = facts.first_bad {
        notes.push(format!("{bad} lines that break the format were left out; the first: {first}"));
    }
    if fidelity == Fidelity::BlockOnly && spans > 0 {
        notes.push(format!("{spans} requests span pages of 4 KiB; the simulator splits them at its page size"));
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
        problem: "it is the input as well".into(),
        remedy: "name another file".into(),
    })
}
