//! Several readers as one, in the order of their clocks.

use super::{Facts, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::reference::Reference;

/// Merges readers by time. A reader whose rows go back in time keeps its own order.
pub(super) struct Merged {
    sources: Vec<Source>,
    started: Option<u64>,
    opened: bool,
}

/// One reader and the block of it that is being merged.
struct Source {
    reader: Box<dyn RowReader>,
    block: Block,
    row: usize,
    /// The source's own clock at its time 0.
    started: Option<u64>,
    /// Time of the last row taken, by the source's clock.
    time: u64,
}

/// Rows held of each source: there may be as many sources as threads.
const ROWS: usize = 4096;

impl Merged {
    pub(super) fn new(readers: Vec<Box<dyn RowReader>>) -> Merged {
        let source = |reader| Source { reader, block: Block::with_capacity(ROWS), row: 0, started: None, time: 0 };
        Merged { sources: readers.into_iter().map(source).collect(), started: None, opened: false }
    }

    /// Reads the first rows of all, which tells when each began.
    fn start(&mut self) -> Result<(), TraceError> {
        for source in &mut self.sources {
            source.refill()?;
            source.started = source.reader.facts().started;
        }
        self.started = self.sources.iter().filter_map(|source| source.started).min();
        self.opened = true;
        Ok(())
    }

    /// The source whose next row is the earliest.
    fn earliest(&mut self) -> Option<&mut Source> {
        self.sources.iter_mut().filter(|source| source.row < source.block.len()).min_by_key(|source| source.next_time())
    }
}

impl Source {
    fn next_time(&self) -> u64 {
        let time = self.block.time().get(self.row).copied().unwrap_or(0);
        self.time.max(time.saturating_add(self.started.unwrap_or(0)))
    }

    fn refill(&mut self) -> Result<(), TraceError> {
        self.row = 0;
        self.reader.read(&mut self.block).map(|_| ())
    }

    /// Takes the next row, with its time by the source's own clock.
    fn take(&mut self) -> Result<Reference, TraceError> {
        self.time = self.next_time();
        let row = Reference { time: self.time, ..self.block.get(self.row) };
        self.row += 1;
        if self.row == self.block.len() {
            self.refill()?;
        }
        Ok(row)
    }
}

impl RowReader for Merged {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        if !self.opened {
            self.start()?;
        }
        let columns = self.columns();
        let started = self.started.unwrap_or(0);
        block.begin_accesses();
        for _ in 0..block.capacity() {
            let Some(source) = self.earliest() else { break };
            let row = source.take()?;
            block.push_request(Reference { time: row.time - started.min(row.time), ..row }, columns);
        }
        Ok(block.end_requests(columns))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }

    fn progress(&self) -> Progress {
        let all = || self.sources.iter().map(|source| source.reader.progress());
        Progress {
            lines: all().map(|one| one.lines).sum(),
            skipped: all().map(|one| one.skipped).sum(),
            bytes: all().map(|one| one.bytes).sum(),
            bytes_total: all().map(|one| one.bytes_total).sum(),
            ..Progress::default()
        }
    }

    fn facts(&self) -> Facts {
        let mut merged = Facts { started: self.started, ..Facts::default() };
        merged.notes.push(format!("{} files merged by time", self.sources.len()));
        for facts in self.sources.iter().map(|source| source.reader.facts()) {
            merged.tasks.extend(facts.tasks);
            merged.notes.extend(facts.notes);
        }
        merged.tasks.sort_by_key(|task| task.id);
        merged.tasks.dedup_by_key(|task| task.id);
        merged.notes.dedup();
        merged
    }
}
