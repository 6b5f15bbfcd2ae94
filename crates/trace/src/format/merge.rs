//! Several readers as one, in the order of their clocks.

use super::RowReader;
use crate::block::Block;
use crate::error::TraceError;
use crate::provenance::Task;
use crate::reference::Reference;
use crate::store::Columns;

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
    /// Time of the last row taken, by the source's clock.
    time: u64,
}

/// Rows held of each source: there may be as many sources as threads.
const ROWS: usize = 4096;

impl Merged {
    pub(super) fn new(readers: Vec<Box<dyn RowReader>>) -> Merged {
        let source = |reader| Source { reader, block: Block::with_capacity(ROWS), row: 0, time: 0 };
        Merged { sources: readers.into_iter().map(source).collect(), started: None, opened: false }
    }

    /// Reads the first rows of all, which tells when each began.
    fn start(&mut self) -> Result<(), TraceError> {
        for source in &mut self.sources {
            source.refill()?;
        }
        self.started = self.sources.iter().filter_map(|source| source.reader.started()).min();
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
        self.time.max(time.saturating_add(self.reader.started().unwrap_or(0)))
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

    fn skipped(&self) -> u64 {
        self.sources.iter().map(|source| source.reader.skipped()).sum()
    }

    fn lines(&self) -> u64 {
        self.sources.iter().map(|source| source.reader.lines()).sum()
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }

    fn position(&self) -> u64 {
        self.sources.iter().map(|source| source.reader.position()).sum()
    }

    fn length(&self) -> Option<u64> {
        self.sources.iter().map(|source| source.reader.length()).sum()
    }

    fn started(&self) -> Option<u64> {
        self.started
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.sources.iter().flat_map(|source| source.reader.tasks()).collect();
        tasks.sort_by_key(|task| task.id);
        tasks.dedup_by_key(|task| task.id);
        tasks
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("{} files merged by time", self.sources.len())];
        notes.extend(self.sources.iter().flat_map(|source| source.reader.notes()));
        notes.dedup();
        notes
    }
}
