//! What a live pager would do with a recorded program: the recording's references to managed memory, and its notes of what the pager
//! would have been told besides, go through an engine of the live run's configuration.
//!
//! Each address space has an engine of its own, as each process has a pager of its own. All threads of a space stand in the order of
//! the recording, one reference after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Event, PageId, Ps};
use coldframe_device::StagePrices;
use coldframe_sim::clock::DeviceTimes;
use coldframe_sim::page_table::{Masks, PageTable};
use coldframe_sim::{Lane, LaneConfig, PageRef};
use coldframe_trace::journal::Head;
use coldframe_trace::span::{Note, Noted, Seen, Span};
use coldframe_trace::{Block, Kind, Reader, Reference, Wanted};
use serde::Serialize;

use crate::error::ReportError;

/// Pages that a live pager loads at a time when a program wishes for many (`live`: half of its `LOADS`).
const WISHES: usize = 32;

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
    /// Pages that left RAM and had been written to.
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

/// A process: its engine and what it has done.
struct Process {
    lane: Lane,
    table: PageTable,
    masks: Masks,
    touched: Vec<bool>,
}

/// Simulates the recording at `path` with the configuration that the journal of a live run names.
///
/// # Errors
/// A recording that cannot be read; a policy or handler that this version does not know.
pub fn predict(path: &Path, head: &Head, span: Span) -> Result<Prediction, ReportError> {
    let config = lane_config(head)?;
    let mut reader = Reader::open(path)?;
    let spaces: BTreeMap<u32, u32> = reader.provenance().tasks.iter().map(|t| (t.id, t.space)).collect();
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    let mut notes: BTreeMap<u32, Noted> = BTreeMap::new();
    let mut threads = BTreeSet::new();
    let mut prediction = Prediction::default();
    let mut block = Block::new();
    while reader.read(&mut block, Wanted::ALL)? > 0 {
        for row in block.iter().filter(|row| row.kind != Kind::Fetch) {
            let seen = span.seen(row.address);
            if seen == Seen::Elsewhere {
                continue;
            }
            let space = spaces.get(&row.task).copied().unwrap_or(row.task);
            if let std::collections::btree_map::Entry::Vacant(entry) = processes.entry(space) {
                entry.insert(Process::new(&config, head.config.pages)?);
            }
            let process = processes.get_mut(&space).expect("just made");
            match seen {
                Seen::Page(_) => {
                    process.touch(&row, span);
                    threads.insert(row.task);
                    prediction.runs += 1;
                    prediction.references += u64::from(row.count);
                }
                Seen::Note(part) => {
                    if let Some((note, range)) = notes.entry(row.task).or_default().read(part) {
                        process.note(note, range);
                    }
                }
                Seen::Elsewhere => {}
            }
        }
    }
    processes.values().for_each(|process| process.add_to(&mut prediction));
    (prediction.processes, prediction.threads) = (processes.len() as u64, threads.len() as u64);
    Ok(prediction)
}

/// Only counts are asked for. The device is instant: the thread that faulted waits for all that its fault led to, as in a live run.
fn lane_config(head: &Head) -> Result<LaneConfig, ReportError> {
    let handler = handler::find(&head.handler)
        .ok_or_else(|| ReportError::setting("handler", format!("there is no handler `{}`", head.handler)))?;
    Ok(LaneConfig {
        policy: PolicyChoice::parse(&head.policy)?,
        handler,
        frames: head.config.frames,
        evict_batch: head.config.evict_batch,
        caps: head.config.caps,
        prices: StagePrices::uniform(Ps::ZERO),
        device: DeviceTimes { load: Ps::ZERO, program: Some(Ps::ZERO) },
    })
}

impl Process {
    fn new(config: &LaneConfig, pages: usize) -> Result<Process, ReportError> {
        let table = PageTable::new(pages, 1);
        let lane = Lane::new(config, 0, pages, 1).map_err(coldframe_sim::RunError::from)?;
        Ok(Process { lane, masks: table.masks(), table, touched: vec![false; pages] })
    }

    /// A run of references to one page is as its first reference: on a machine without reference bits a hit changes nothing.
    fn touch(&mut self, row: &Reference, span: Span) {
        for address in [row.address, row.address + u64::from(row.size.max(1)) - 1] {
            if let Seen::Page(page) = span.seen(address) {
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
            self.lane.fault(&mut self.table, page, writing, false, Ps::ZERO);
        }
    }

    /// What the pager would do for `madvise`, `munmap`, `mlock` and their kin.
    fn note(&mut self, note: Note, pages: Range<u64>) {
        let mut pages = pages.map(|page| PageId(page as u32));
        match note {
            // Pages that were never touched have nothing to release, and there may be very many of them.
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
                let wishes = pages.by_ref().take(WISHES);
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
        let result = self.lane.result();
        all.true_faults += result.counts.true_faults;
        all.zero_fills += result.zero_loads;
        all.swap_loads += result.counts.page_loads - result.zero_loads;
        all.false_faults += result.counts.false_faults;
        all.pages_written += result.counts.dirty_evictions;
        all.pages += self.touched.iter().filter(|touched| **touched).count() as u64;
    }
}
