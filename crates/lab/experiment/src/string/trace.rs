//! Facts about a trace that a run needs in addition to its references.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use coldframe_drivers::shorten::{Short, Shortener};
use coldframe_store::{Block, Provenance, Reader, Wanted};
use sha2::{Digest, Sha256};

use crate::error::ExperimentError;
use crate::progress::{tell, Progress, Unit};
use crate::systems::front_end::FrontKey;
use crate::traced::Trace;

/// The columns that the file has and the simulator needs.
pub(super) fn wanted(reader: &Reader) -> Wanted {
    let columns = reader.columns();
    Wanted { task: columns.task, count: columns.count, time: false, ..Wanted::ACCESS }
}

/// Pages that the trace touches, for RAM given in percent.
pub fn pages_touched(path: &Path, front: &FrontKey) -> Result<usize, ExperimentError> {
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    let mut front_end = front.whole_trace().build(&trace);
    let (mut block, mut out) = (Block::new(), Vec::new());
    let wanted = wanted(&reader);
    while reader.read(&mut block, wanted)? > 0 {
        out.clear();
        front_end.filter(&block, 0, &mut out);
    }
    Ok(front_end.numbering().count())
}

/// The same, counted once for each front end.
pub(crate) fn pages_by_front(path: &Path) -> impl FnMut(&FrontKey) -> Result<usize, ExperimentError> + '_ {
    let mut known: Vec<(FrontKey, usize)> = Vec::new();
    move |front| {
        let whole = front.whole_trace();
        if let Some((_, pages)) = known.iter().find(|(front, _)| *front == whole) {
            return Ok(*pages);
        }
        let pages = pages_touched(path, front)?;
        known.push((whole, pages));
        Ok(pages)
    }
}

/// The trace's string behind this front end, exact for OPT in memories of at least `pages` pages. `None`: more than
/// `most` references are left.
pub fn shortened(
    path: &Path,
    front: &FrontKey,
    (pages, most): (usize, usize),
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Short>, ExperimentError> {
    let mut reader = Reader::open(path)?;
    let mut front_end = front.build(reader.provenance());
    let mut shortener = Shortener::new(pages, most);
    let (mut block, mut next, mut out) = (Block::new(), Block::new(), Vec::new());
    let wanted = wanted(&reader);
    let (mut at, mut more) = (0, true);
    let mut rows = reader.read(&mut block, wanted)? as u64;
    while rows > 0 && more {
        let take = || {
            let from = front.skip.saturating_sub(at);
            if from < rows {
                out.clear();
                more = front_end.filter(&block, from as usize, &mut out);
                shortener.push(&out, front_end.counts(), at + rows);
            }
        };
        let ((), read) = rayon::join(take, || reader.read(&mut next, wanted));
        at += rows;
        tell(progress, (at, reader.rows()), Unit::Rows)?;
        rows = read? as u64;
        std::mem::swap(&mut block, &mut next);
    }
    Ok(shortener.finish(front_end.as_ref()))
}

/// What results say of a trace.
pub fn facts(path: &Path, trace: &Provenance) -> Result<Trace, ExperimentError> {
    Ok(Trace {
        path: path.display().to_string(),
        sha256: sha256(path)?,
        fidelity: Some(trace.fidelity.name().into()),
        references: Some(trace.references),
        instructions: Some(trace.instructions),
        pages: None,
        window_pages: trace.window,
        cuts: trace.cuts.clone(),
        caveat: caveat(trace),
        notes: Vec::new(),
    })
}

/// A note for readers of results, if the trace does not have every reference.
fn caveat(trace: &Provenance) -> Option<String> {
    let cuts = trace.cuts.iter().map(|cut| format!("A part of a trace: {cut}."));
    let window = trace.window.map(|window| {
        format!(
            "Recorded through a window of {window} pages: true faults are bounds, the rows' own with more and less \
             RAM by the window; \
             hits were not seen, so there is no miss ratio."
        )
    });
    let all: Vec<String> = window.into_iter().chain(cuts).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// The hash of a file, in hex.
pub fn sha256(path: &Path) -> Result<String, ExperimentError> {
    let io = |e: std::io::Error| ExperimentError::Io { path: path.display().to_string(), reason: e.to_string() };
    let mut file = File::open(path).map_err(io)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
