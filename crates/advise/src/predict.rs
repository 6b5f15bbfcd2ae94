//! Simulates a live pager with a recorded program. The recording has references to managed memory, and notes of the
//! other calls to the pager. Both go through an engine with the configuration of the live run.
//!
//! Each address space has its own engine, as each process has its own pager. The threads of a space take turns.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use coldframe_core::{Event, PageId, Ps};
use coldframe_journal::Head;
use coldframe_lane::page_table::{Masks, PageTable};
use coldframe_lane::{Lane, LaneConfig, PageRef};
use coldframe_plan::HINTS;
use coldframe_recording::span::{Note, Noted, Seen, Span};
use coldframe_store::{Block, Kind, Reader, Reference, Wanted};
use serde::Serialize;

use crate::interleave::Interleave;
use coldframe_answer::simulate::unpriced;
use coldframe_experiment::error::ExperimentError;

/// What the engines counted, all processes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Prediction {
    /// Faults on pages that had to be brought into RAM.
    pub true_faults: u64,
    /// Of those, on pages whose bytes the swap file has.
    pub swap_loads: u64,
    /// Of those, on pages without bytes: filled with zeros.
    pub zero_fills: u64,
    /// Faults on pages in RAM that were not mapped.
    pub false_faults: u64,
    /// Dirty pages evicted.
    pub pages_written: u64,
    /// Pages of managed memory touched.
    pub pages: u64,
    /// Rows of the recording that reference managed memory: runs of references to one page.
    pub runs: u64,
    /// References in them.
    pub references: u64,
    /// Address spaces with managed memory.
    pub processes: u64,
    /// Threads that touched managed memory.
    pub threads: u64,
}

/// A process: its threads and its machine.
struct Process {
    threads: Interleave,
    machine: Machine,
}

/// The engine of a process, and the calls that it has got.
struct Machine {
    span: Span,
    lane: Lane,
    table: PageTable,
    masks: Masks,
    touched: Vec<bool>,
    /// Pages that are out are read where they lie.
    in_slots: bool,
    notes: BTreeMap<u32, Noted>,
    runs: u64,
    references: u64,
}

/// Simulates the recording at `path` with the configuration in the head of a live run's journal.
///
/// # Errors
/// The recording cannot be read, or this version does not know the policy or handler.
pub fn predict(path: &Path, head: &Head, span: Span) -> Result<Prediction, ExperimentError> {
    let config = unpriced(head).map_err(|e| ExperimentError::setting("handler", e.to_string()))?;
    let mut reader = Reader::open(path)?;
    let tasks = reader.provenance().tasks.clone();
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    let mut threads = BTreeSet::new();
    let mut block = Block::new();
    while reader.read(&mut block, Wanted::ALL)? > 0 {
        for row in block.iter().filter(|row| row.kind != Kind::Fetch && span.seen(row.address) != Seen::Elsewhere) {
            let space = tasks.iter().find(|task| task.id == row.task).map_or(row.task, |task| task.space);
            if let Entry::Vacant(entry) = processes.entry(space) {
                let threads = tasks.iter().filter(|task| task.space == space).count();
                entry.insert(Process::new(&config, head.config.pages, span, threads)?);
            }
            processes.get_mut(&space).expect("just made").take(row);
            threads.insert(row.task);
        }
    }
    let mut prediction = Prediction { threads: threads.len() as u64, ..Prediction::default() };
    for process in processes.values_mut() {
        process.finish();
        process.machine.add_to(&mut prediction);
    }
    Ok(prediction)
}

impl Process {
    fn new(config: &LaneConfig, pages: usize, span: Span, threads: usize) -> Result<Process, ExperimentError> {
        let table = PageTable::new(pages, 1);
        let machine = Machine {
            span,
            lane: Lane::new(config, 0, pages, 1).map_err(coldframe_drivers::RunError::from)?,
            masks: table.masks(),
            table,
            touched: vec![false; pages],
            in_slots: config.caps.direct_read,
            notes: BTreeMap::new(),
            runs: 0,
            references: 0,
        };
        Ok(Process { threads: Interleave::new(threads), machine })
    }

    fn take(&mut self, row: Reference) {
        let machine = &mut self.machine;
        self.threads.push(row, &mut |row| machine.take(row));
    }

    fn finish(&mut self) {
        let machine = &mut self.machine;
        self.threads.finish(&mut |row| machine.take(row));
    }
}

impl Machine {
    /// A run of references to one page is like its first reference: on a machine without reference bits a hit changes
    /// nothing.
    fn take(&mut self, row: &Reference) {
        if let Seen::Note(part) = self.span.seen(row.address) {
            if let Some((note, range)) = self.notes.entry(row.task).or_default().read(part) {
                self.note(note, range);
            }
            return;
        }
        self.runs += 1;
        self.references += u64::from(row.count);
        for address in [row.address, row.address + u64::from(row.size.max(1)) - 1] {
            if let Seen::Page(page) = self.span.seen(address) {
                self.reference(PageId(page as u32), row.kind == Kind::Write);
            }
        }
    }

    fn reference(&mut self, page: PageId, writing: bool) {
        self.touched[page.index()] = true;
        let reference = PageRef::new(page.0, writing, false);
        if !self.table.hit(&self.masks, page.index(), reference.kind())
            && self.table.miss(&self.masks, page.index(), reference.kind()) != 0
        {
            self.lane.fault(&mut self.table, page, writing, false, Ps::ZERO, None);
        }
    }

    /// What the pager would do for `madvise`, `munmap`, `mlock` and similar calls.
    fn note(&mut self, note: Note, pages: Range<u64>) {
        let mut pages = pages.map(|page| PageId(page as u32));
        match note {
            // Pages that were never touched need no release, and there may be very many of them.
            Note::Released => pages.for_each(|page| {
                if self.touched[page.index()] {
                    self.tell(Event::Released { page });
                }
            }),
            Note::Unpinned => pages.for_each(|page| self.tell(Event::Unpinned { page })),
            Note::Pinned => pages.for_each(|page| {
                self.reference(page, false);
                self.tell(Event::Pinned { page });
            }),
            Note::WillNeed => loop {
                let wishes = pages.by_ref().take(HINTS);
                if wishes.map(|page| self.tell(Event::WillNeed { page })).count() == 0 {
                    break;
                }
                self.lane.settle(&mut self.table);
            },
        }
    }

    fn tell(&mut self, event: Event) {
        self.lane.tell(&mut self.table, event);
    }

    fn add_to(&self, all: &mut Prediction) {
        let result = self.lane.result(&self.table);
        // A write to a page that is read where it lies brings the page into RAM, too.
        all.true_faults += if self.in_slots { result.counts.page_loads } else { result.counts.true_faults };
        all.zero_fills += result.zero_loads;
        all.swap_loads += result.counts.page_loads - result.zero_loads;
        all.false_faults += result.counts.false_faults;
        all.pages_written += result.counts.dirty_evictions;
        all.processes += 1;
        all.runs += self.runs;
        all.references += self.references;
        all.pages += self.touched.iter().filter(|touched| **touched).count() as u64;
    }
}
