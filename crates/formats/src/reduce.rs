//! Makes a trace smaller, and states what is kept: exact results of LRU and OPT above a size, or a sample of pages.
//!
//! ```text
//! trace ─ rows ─► pages ─┬─ Compaction ─► compact.rs: references that no larger memory can tell are dropped
//!                        └─ HashSample ─► sample.rs: pages whose hash is small are kept, with all their references
//! ```
//! The result's [`Provenance::reduction`] says how it was reduced, from what, and the totals of the whole trace.
//! Results carry this note, and questions that a reduced trace cannot answer are refused. A part of a trace (`cut`)
//! counts as a whole trace: cut first, then reduce.

mod compact;
mod sample;

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::provenance::{Provenance, Reduction};
use coldframe_store::reference::Reference;
use coldframe_store::store::{Reader, Summary, Wanted, Writer};

use compact::{Compactor, Page};
use sample::{hash, threshold};

pub use coldframe_store::provenance::Method;
pub use sample::MODULUS;

const MILLION: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// The results of LRU and OPT in memories of at least this many pages.
    Above(u64),
    /// This many millionths of the pages.
    Share(u64),
    Pages(u64),
}

/// The result of a reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reduced {
    /// The reduced trace.
    pub summary: Summary,
    /// How it was made, and from what.
    pub reduction: Reduction,
    /// Rows of the whole trace.
    pub rows: u64,
}

/// Writes the trace `from`, in pages of `page` bytes and reduced as `keep` says, to `to`.
///
/// # Errors
/// As [`Reader`] and [`Writer`]; [`TraceError::Usage`] for an impossible page size or number, for a trace that lacks
/// references already, and if `to` is `from`; [`TraceError::Empty`] if no page is kept.
pub fn reduce(from: &Path, to: &Path, keep: Keep, page: u64, level: i32) -> Result<Reduced, TraceError> {
    crate::import::refuse_same_file(Some(from), to)?;
    let mut reader = Reader::open(from)?;
    check(from, reader.provenance(), keep, page)?;
    let split = Split::new(reader.provenance(), page);
    let whole = whole(&mut reader, &split)?;
    let (of, pages) = (reader.provenance().fidelity, whole.pages.len() as u64);
    let reduction = Reduction { method: whole.method(keep), of, references: whole.references, pages };
    reader.rewind();
    let columns = Columns { count: true, ..reader.columns() };
    let mut writer = Writer::create_at_level(to, columns, level)?;
    filter(&mut reader, &split, reduction.method, &mut writer)?;
    if writer.references() == 0 {
        let (path, lines) = (from.to_owned(), reader.rows());
        let remedy = "none of the trace's pages is in the sample; keep more".into();
        return Err(TraceError::Empty { path, lines, skipped: lines, remedy });
    }
    let summary = writer.finish(provenance(reader.provenance(), reduction, page))?;
    Ok(Reduced { summary, reduction, rows: reader.rows() })
}

fn check(path: &Path, trace: &Provenance, keep: Keep, page: u64) -> Result<(), TraceError> {
    let usage = |what: String, found: String, remedy: &'static str| {
        Err(TraceError::Usage { what, found, remedy: remedy.into() })
    };
    match (keep, trace.page_size, trace.fidelity) {
        (_, _, fidelity)
            if ![Fidelity::ExactReferences, Fidelity::PageReferences, Fidelity::BlockOnly].contains(&fidelity) =>
        {
            usage(
                path.display().to_string(),
                format!("the trace ({fidelity}) has lost references already, so what a reduction keeps cannot be said"),
                "reduce a trace of every reference",
            )
        }
        _ if !page.is_power_of_two() || page > 1 << 30 => {
            usage(format!("page of {page} bytes"), "not a power of two up to 1 GiB".into(), "give a page such as 4KiB")
        }
        (_, Some(own), _) if page < own => usage(
            format!("page of {page} bytes"),
            format!("the trace is reduced to pages of {own} bytes"),
            "give a page that is not smaller",
        ),
        (Keep::Above(0) | Keep::Share(0) | Keep::Pages(0), ..) => {
            usage("reduction".into(), "nothing is left of 0".into(), "keep at least one page")
        }
        (Keep::Share(parts), ..) if parts > MILLION => {
            usage("sample".into(), "it is more than the whole".into(), "give at most 100%")
        }
        (Keep::Above(pages) | Keep::Pages(pages), ..) if pages > u64::from(u32::MAX) / 2 => {
            usage(format!("{pages} pages"), "more than can be held".into(), "give less, or larger pages")
        }
        _ => Ok(()),
    }
}

/// Splits rows into references to single pages.
struct Split {
    shift: u32,
    spaces: FxHashMap<u32, u32>,
}

impl Split {
    fn new(trace: &Provenance, page: u64) -> Split {
        let spaces = trace.tasks.iter().map(|task| (task.id, task.space)).collect();
        Split { shift: page.trailing_zeros(), spaces }
    }

    fn each(&self, row: Reference, out: &mut impl FnMut(Page, Reference)) {
        let space = self.spaces.get(&row.task).copied().unwrap_or(row.task);
        let last = row.address.saturating_add(u64::from(row.size.max(1)) - 1) >> self.shift;
        for number in row.address >> self.shift..=last {
            let reference = Reference { address: number << self.shift, size: 1 << self.shift, ..row };
            out((space, number), reference);
        }
    }
}

struct Whole {
    references: u64,
    pages: FxHashSet<Page>,
}

impl Whole {
    fn method(&self, keep: Keep) -> Method {
        let sample = |threshold| Method::HashSample { threshold, modulus: MODULUS };
        match keep {
            Keep::Above(pages) => Method::Compaction { pages },
            Keep::Share(parts) => sample((parts * MODULUS).div_ceil(MILLION)),
            Keep::Pages(pages) => sample(threshold(self.pages.iter().copied(), pages as usize)),
        }
    }
}

fn whole(reader: &mut Reader, split: &Split) -> Result<Whole, TraceError> {
    let mut whole = Whole { references: 0, pages: FxHashSet::default() };
    let (mut block, mut last) = (Block::new(), None);
    while reader.read(&mut block, wanted(reader))? > 0 {
        for row in block.iter() {
            split.each(row, &mut |page, reference| {
                whole.references += u64::from(reference.count);
                if last.replace(page) != Some(page) {
                    whole.pages.insert(page);
                }
            });
        }
    }
    Ok(whole)
}

fn wanted(reader: &Reader) -> Wanted {
    let columns = reader.columns();
    Wanted { task: columns.task, time: columns.time, count: columns.count, ..Wanted::ACCESS }
}

/// Writes the references that `method` keeps. In a sample, consecutive references to one page become one
/// row.
fn filter(reader: &mut Reader, split: &Split, method: Method, writer: &mut Writer) -> Result<(), TraceError> {
    let (keep_all, threshold, pages) = match method {
        Method::Compaction { pages } => (true, MODULUS, pages),
        Method::HashSample { threshold, .. } => (false, threshold, 1),
    };
    let mut compactor = Compactor::new(pages as usize);
    let (mut block, mut kept) = (Block::new(), Block::new());
    while reader.read(&mut block, wanted(reader))? > 0 {
        for row in block.iter() {
            split.each(row, &mut |page, reference| {
                if keep_all || hash(page) < threshold {
                    compactor.push(page, reference, &mut |row| kept.push(row));
                }
            });
            // A row may be many pages.
            if kept.len() >= kept.capacity() {
                writer.write(&kept)?;
                kept.clear();
            }
        }
    }
    compactor.finish(&mut |row| kept.push(row));
    writer.write(&kept)
}

fn provenance(whole: &Provenance, reduction: Reduction, page: u64) -> Provenance {
    let mut reduced = whole.clone();
    (reduced.page_size, reduced.reduction) = (Some(page), Some(reduction));
    let (references, pages) = (reduction.references, reduction.pages);
    let (fidelity, note) = match reduction.method {
        Method::Compaction { pages: least } => (
            Fidelity::Compacted,
            format!("compacted: the misses of LRU and OPT are those of the whole trace in memories of {least} pages and more; a row stands for all its count, and is a write if any of them was"),
        ),
        Method::HashSample { .. } => (
            Fidelity::HashSampled,
            format!("sampled by hash: {:.4} % of the pages with all their references", 100.0 * reduction.rate().unwrap_or(1.0)),
        ),
    };
    reduced.fidelity = fidelity;
    reduced.notes.push(format!("{note}; the whole trace had {references} references to {pages} pages of {page} bytes"));
    reduced
}

/// Refuses a reduced trace.
///
/// # Errors
/// [`TraceError::Usage`] if it is reduced; the message says that `what` is not possible with it.
pub(crate) fn refuse_reduced(path: &Path, trace: &Provenance, what: &str) -> Result<(), TraceError> {
    if trace.reduction.is_none() {
        return Ok(());
    }
    let found = format!("the trace is {}, and {what} what that preserves", trace.fidelity);
    let remedy = "do it to the whole trace, then reduce".into();
    Err(TraceError::Usage { what: path.display().to_string(), found, remedy })
}
