//! Binary records, as slices of one buffer that never grows.

use super::input::Stream;
use super::lines::{admit, Fault};
use super::tasks::Tasks;
use super::time::Clock;
use super::{Facts, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::reference::Reference;

/// Bytes held. No record of any format here is longer.
const BUFFER: usize = 256 * 1024;

pub(super) fn flaw(field: &'static str, found: String, remedy: &'static str) -> Box<Fault> {
    Box::new(Fault { field, span: 0..0, found, remedy })
}

struct Records {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    byte: u64,
    /// Records handed out, and the length of the last.
    number: u64,
    last: usize,
}

impl Records {
    /// The next record, of `length` bytes; empty at the end.
    ///
    /// # Errors
    /// Those of the stream; the stream ends within a record.
    #[inline]
    fn take(&mut self, length: usize) -> Result<&[u8], TraceError> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        match self.end - self.start {
            0 => return Ok(&[]),
            held if held < length => {
                let found = format!("the data end after {held} of {length} bytes");
                let flaw = flaw("record", found, "the file is cut off: copy or record it again");
                return Err(self.bad_at(*flaw, self.number, self.byte));
            }
            _ => {}
        }
        let from = self.start;
        self.start += length;
        self.byte += length as u64;
        (self.number, self.last) = (self.number + 1, length);
        Ok(&self.buffer[from..self.start])
    }

    /// Moves what is held to the front and reads until `least` bytes are held or there is no more.
    #[cold]
    fn fill(&mut self, least: usize) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < least {
            match self.stream.read(&mut self.buffer[self.end..])? {
                0 => break,
                read => self.end += read,
            }
        }
        Ok(())
    }

    /// A complaint about the record that was taken last.
    fn bad_taken(&self, flaw: Fault) -> TraceError {
        self.bad_at(flaw, self.number.saturating_sub(1), self.byte - self.last as u64)
    }

    fn bad_at(&self, flaw: Fault, record: u64, byte: u64) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record, byte, field: flaw.field, found: flaw.found, remedy: flaw.remedy.into() }
    }
}

/// A binary format: how to read one of its records.
pub(super) trait Decode: Send + 'static {
    const RECORD: usize;

    /// Appends the accesses of a record to `out`, or none if it is skipped. Tasks are noted in `tasks`.
    ///
    /// # Errors
    /// A flaw of the record.
    fn next(&mut self, record: &[u8], out: &mut Vec<Reference>, tasks: &mut Tasks) -> Result<(), Box<Fault>>;

    /// Which optional columns its accesses have.
    fn columns(&self) -> Columns;

    /// Bytes of the page that the source reduced its references to.
    fn page_size(&self) -> Option<u64> {
        None
    }

    /// Notes for readers of results.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a binary format record by record.
pub(super) struct Binary<D> {
    records: Records,
    decoder: D,
    tasks: Tasks,
    /// Accesses decoded and not handed out yet: `pending[taken..]`.
    pending: Vec<Reference>,
    taken: usize,
    skipped: u64,
    clock: Clock,
}

impl<D: Decode> Binary<D> {
    pub(super) fn boxed(stream: Stream, decoder: D) -> Box<dyn RowReader> {
        let records = Records { stream, buffer: vec![0; BUFFER], start: 0, end: 0, byte: 0, number: 0, last: 0 };
        let (tasks, clock) = (Tasks::default(), Clock::default());
        Box::new(Binary { records, decoder, tasks, pending: Vec::new(), taken: 0, skipped: 0, clock })
    }

    /// Whether there is another access to hand out.
    fn refill(&mut self) -> Result<bool, TraceError> {
        while self.taken == self.pending.len() {
            self.pending.clear();
            self.taken = 0;
            let record = self.records.take(D::RECORD)?;
            if record.is_empty() {
                return Ok(false);
            }
            let decoded = self.decoder.next(record, &mut self.pending, &mut self.tasks);
            decoded.map_err(|flaw| self.records.bad_taken(*flaw))?;
            self.skipped += u64::from(self.pending.is_empty());
        }
        Ok(true)
    }
}

impl<D: Decode> RowReader for Binary<D> {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let columns = self.decoder.columns();
        for _ in 0..block.capacity() {
            if !self.refill()? {
                break;
            }
            let mut row = self.pending[self.taken];
            self.taken += 1;
            admit(&row).map_err(|flaw| self.records.bad_taken(*flaw))?;
            if columns.time {
                row.time = self.clock.since_start(row.time);
            }
            block.push_request(row, columns);
        }
        Ok(block.end_requests(columns))
    }

    fn columns(&self) -> Columns {
        self.decoder.columns()
    }

    fn progress(&self) -> Progress {
        self.records.stream.progress(self.records.number, self.skipped)
    }

    fn facts(&self) -> Facts {
        Facts {
            started: self.clock.start(),
            page_size: self.decoder.page_size(),
            tasks: self.tasks.list(),
            notes: self.decoder.notes().into_iter().chain(self.clock.note()).collect(),
            ..Facts::default()
        }
    }
}
