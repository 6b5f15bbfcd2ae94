//! A live pager's recording as a trace: a row for each page that entered its window of N mapped pages, first in,
//! first out.
//!
//! ```text
//! program ── every reference ──► window of N pages ── each entry ──► trace
//!                                  hits: unseen
//! ```
//! What the rows preserve, for a memory of C pages, if the program's misses are M and those of the rows alone are R:
//!
//! - OPT: R(C) <= M(C) <= R(C - N) for C > N. The first inequality holds because fewer references never cost more.
//!   For the second: with C pages, follow the best plan for the rows in C - N of them and keep the window in the
//!   other N; every reference then finds its page.
//! - LRU: R(C + N) <= M(C) <= R(C - N) for C >= 2 N. Between a page's entry and its last hit, fewer than N pages
//!   enter. A page touched after that hit has entered since or was in the window then. So distances in rows and in
//!   references differ by less than N, and those of hits are below 2 N. A page that stays longer (pinned) breaks
//!   this, and is noted.
//!
//! A row is a write if the page left the window with other bytes than when it last left: only then must a swap area
//! take it. If the page has not left the window, the row is a write if the page entered by a write.
//!
//! The window may change while a program runs, and pages may be sampled in chunks. Then N is the longest window of
//! all, in pages of the whole program, and the rows are those of the smallest sample of all.
//!
//! Between the rows, notes ([`coldframe_recording::span`]) behind the mapping `[managed]` say which memory the program
//! unmapped.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::block::{Block, Columns};
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::provenance::{Mapping, ProcessFacts, ProgramFacts, Provenance, Task};
pub use crate::recorded::Recorded;
use crate::reference::{Kind, Reference};
use crate::store::{Summary, Writer};
use crate::together::Together;
use coldframe_recording::entries::{is_sampled, Record, Word, RECORDS};
use coldframe_recording::span::{Span, PAGE};

/// The name of the mapping that is managed memory.
pub const MANAGED: &str = "[managed]";
/// A process with less than this part of the largest one's memory is left out, for example a shell that only started
/// it.
const MATTERS: u64 = 16;

/// Writes the recordings of one command's processes as one trace to `to`: one process after the other, without those
/// that do not matter. `program` has what is known of the command as a whole; the rest is filled in from the
/// recordings.
pub fn window(
    mut recorded: Vec<Recorded>,
    command: &str,
    program: ProgramFacts,
    mappings: Vec<Mapping>,
    to: &Path,
) -> Result<(Summary, ProgramFacts), TraceError> {
    recorded.sort_by_key(|process| process.word(Word::Started));
    let most = recorded.iter().map(|process| process.word(Word::Managed)).max().unwrap_or(0);
    let matters = |process: &Recorded| process.word(Word::Managed) * MATTERS >= most && !process.records.is_empty();
    let mut group: Vec<ProcessFacts> = recorded.iter().map(Recorded::facts).collect();
    group.iter_mut().zip(&recorded).for_each(|(facts, process)| facts.left_out = !matters(process));
    let shift = recorded.iter().filter(|process| matters(process)).map(Recorded::shift).max().unwrap_or(0);
    let mut together = Together::of(&recorded, shift);
    let mut inherited = std::mem::take(&mut together.inherited).into_iter().zip(&group);
    let mut inherited = Vec::from_iter(inherited.by_ref().filter(|(_, facts)| !facts.left_out).map(|(pages, _)| pages));
    recorded.retain(matters);
    let mut rows = Rows::new(shift, Writer::create(to, Columns { time: true, task: true, count: false })?);
    for (space, process) in recorded.iter().enumerate() {
        rows.process(process, space as u32, std::mem::take(&mut inherited[space]))?;
    }
    if rows.written == 0 {
        let path = recorded.first().map_or_else(|| PathBuf::from(command), |process| process.path.clone());
        let remedy = "no managed page was touched; record a program with a heap".into();
        return Err(TraceError::Empty { path, lines: 0, skipped: 0, remedy });
    }
    let mut provenance = provenance(command, &recorded);
    // In front of the span that holds them all.
    provenance.mappings.splice(0..0, mappings);
    // The share of first touches that are in the sample: closer to the truth than the nominal rate of sampling.
    let fills: u64 = recorded.iter().map(|process| process.word(Word::ZeroFills)).sum();
    provenance.sample = (shift > 0 && fills > 0).then(|| rows.fills as f64 / fills as f64);
    provenance.tasks = std::mem::take(&mut rows.tasks);
    let program = whole(program, &group);
    provenance.moments = together.moments(provenance.sample.unwrap_or(1.0));
    (provenance.program, provenance.group) = (Some(program), group);
    Ok((rows.finish(provenance)?, program))
}

/// The largest process is the one that matters; the others add their first touches.
fn whole(program: ProgramFacts, group: &[ProcessFacts]) -> ProgramFacts {
    let most = |of: fn(&ProcessFacts) -> u64| group.iter().map(of).max().unwrap_or(0);
    let largest = group.iter().max_by_key(|process| process.managed_bytes);
    ProgramFacts {
        managed_bytes: most(|process| process.managed_bytes),
        not_paged_bytes: largest.map_or(0, |process| process.not_paged_bytes),
        zero_fills: group.iter().filter(|process| !process.left_out).map(|process| process.zero_fills).sum(),
        processes: group.len() as u32,
        ..program
    }
}

fn provenance(command: &str, recorded: &[Recorded]) -> Provenance {
    let frames = recorded.iter().map(Recorded::window).max().unwrap_or(0);
    let mut provenance = Provenance::new("window of mapped pages", Fidelity::Window);
    provenance.command = Some(command.into());
    (provenance.page_size, provenance.window) = (Some(PAGE), Some(frames));
    provenance.clock = Some("CLOCK_THREAD_CPUTIME_ID".into());
    let managed = recorded.first().map(Recorded::span);
    provenance.mappings.extend(managed.map(|span| Mapping {
        name: MANAGED.into(),
        start: span.start,
        end: span.start + span.len,
        protection: "rw-p".into(),
    }));
    provenance.notes = notes_of_bounds(frames).into();
    provenance.notes.push("heap and large private anonymous mappings only: no code, stacks or files".into());
    let full = recorded.iter().any(|process| process.word(Word::Records) > RECORDS as u64);
    if full {
        provenance.notes.push("the recording was full before the program's end, which is left out".into());
    }
    provenance
}

/// The notes of a trace about the bounds of policies, which are for its readers and not for those of an answer.
pub fn notes_of_bounds(frames: u64) -> [String; 2] {
    [
        format!(
            "filtered by a window of at most {frames} pages, first in first out: a row is a page's entry, a \
                 write if its bytes changed"
        ),
        format!(
            "with C pages OPT's misses M lie between those of the rows: R(C) <= M(C) <= R(C - {frames}); LRU's \
                 R(C + {frames}) <= M(C) <= R(C - {frames}) from C = {} on",
            2 * frames
        ),
    ]
}

/// Rows on their way to the file.
struct Rows {
    shift: u32,
    tasks: Vec<Task>,
    block: Block,
    writer: Writer,
    written: u64,
    /// First touches, including those of memory that was unmapped later.
    fills: u64,
}

impl Rows {
    fn new(shift: u32, writer: Writer) -> Rows {
        Rows { shift, tasks: Vec::new(), block: Block::new(), writer, written: 0, fills: 0 }
    }

    /// `touched`: pages that it has from its parent.
    fn process(&mut self, process: &Recorded, space: u32, mut touched: FxHashSet<u32>) -> Result<(), TraceError> {
        let (writes, span) = (writes(&process.records), process.span());
        let threads = self.tasks.len();
        let mut task = 0;
        let mut back: Option<(u64, u64)> = None;
        for (number, record) in process.records.iter().enumerate() {
            match *record {
                Record::Released { page, pages } if is_sampled(page, self.shift) => {
                    (page..page + pages as u32).for_each(|page| _ = touched.remove(&page));
                    let (page, end) = (u64::from(page), u64::from(page) + pages);
                    match &mut back {
                        Some((_, last)) if *last == page => *last = end,
                        _ => {
                            self.note(span, task, back.replace((page, end)))?;
                        }
                    }
                }
                Record::Entry { page, thread, time, .. } if is_sampled(page, self.shift) => {
                    self.note(span, task, back.take())?;
                    task = self.task(threads, thread, space);
                    let kind = if writes[number] { Kind::Write } else { Kind::Read };
                    let address = span.start + u64::from(page) * PAGE;
                    self.put(Reference { task, time, ..Reference::new(address, 1, kind) })?;
                    self.written += 1;
                    self.fills += u64::from(touched.insert(page));
                }
                _ => {}
            }
        }
        self.note(span, task, back)
    }

    /// Writes the release of the memory that was unmapped.
    fn note(&mut self, span: Span, task: u32, back: Option<(u64, u64)>) -> Result<(), TraceError> {
        let Some((first, end)) = back else { return Ok(()) };
        let bytes = span.start + first * PAGE..span.start + end * PAGE;
        for address in span.release(bytes) {
            self.put(Reference { task, ..Reference::new(address, 1, Kind::Read) })?;
        }
        Ok(())
    }

    fn task(&mut self, first: usize, thread: u32, space: u32) -> u32 {
        let name = format!("thread {thread}");
        let known = self.tasks[first..].iter().position(|task| task.name == name);
        let number = first + known.unwrap_or(self.tasks.len() - first);
        if known.is_none() {
            self.tasks.push(Task { id: number as u32, name, space });
        }
        number as u32
    }

    fn put(&mut self, row: Reference) -> Result<(), TraceError> {
        self.block.push(row);
        if self.block.len() == self.block.capacity() {
            self.writer.write(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    fn finish(mut self, provenance: Provenance) -> Result<Summary, TraceError> {
        if !self.block.is_empty() {
            self.writer.write(&self.block)?;
        }
        self.writer.finish(provenance)
    }
}

/// For each record: whether it is an entry whose page was written before it left.
fn writes(records: &[Record]) -> Vec<bool> {
    let mut writes = vec![false; records.len()];
    let mut last: FxHashMap<u32, usize> = FxHashMap::default();
    let mut open: FxHashMap<u32, bool> = FxHashMap::default();
    for (number, record) in records.iter().enumerate() {
        match *record {
            Record::Entry { page, write, .. } => {
                last.insert(page, number);
                open.insert(page, write);
            }
            Record::Changed { page } => {
                if let Some(entry) = last.get(&page) {
                    writes[*entry] = true;
                }
                open.remove(&page);
            }
            _ => {}
        }
    }
    // Pages that never left the window: by the access that brought them in.
    for (page, write) in open {
        if let Some(entry) = last.get(&page) {
            writes[*entry] |= write;
        }
    }
    writes
}
