//! The part that binary formats share: records of one size, one after the other, of which each is at most one request.

use super::input::Stream;
use super::lines::{admit, Fault};
use super::time::Clock;
use super::{Facts, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::reference::Reference;

/// A binary format: how to read one of its records.
pub(super) trait ParseRecord: Send + 'static {
    /// The request of a record, with the time by the format's own clock; none: the format tells readers to skip it.
    fn request(&mut self, record: &[u8]) -> Result<Option<Reference>, Box<Fault>>;

    /// What it has learned so far, apart from the clock.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

struct Requests<P> {
    records: Records,
    parser: P,
    clock: Clock,
    skipped: u64,
}

/// A reader of these records, which have times and no tasks.
pub(super) fn read(records: Records, parser: impl ParseRecord) -> Box<dyn RowReader> {
    Box::new(Requests { records, parser, clock: Clock::default(), skipped: 0 })
}

const COLUMNS: Columns = Columns { time: true, count: false, task: false };

impl<P: ParseRecord> RowReader for Requests<P> {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let mut room = block.capacity();
        while room > 0 {
            let Some(record) = self.records.take()? else { break };
            match self.parser.request(record).and_then(|row| row.map(|row| admit(&row).map(|()| row)).transpose()) {
                Ok(Some(row)) => {
                    block.push_request(Reference { time: self.clock.since_start(row.time), ..row }, COLUMNS);
                    room -= 1;
                }
                Ok(None) => self.skipped += 1,
                Err(fault) => return Err(self.records.fault(*fault)),
            }
        }
        Ok(block.end_requests(COLUMNS))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn progress(&self) -> Progress {
        self.records.progress(self.skipped)
    }

    fn facts(&self) -> Facts {
        let mut facts = self.parser.facts();
        facts.notes.extend(self.clock.note());
        Facts { started: self.clock.start(), ..facts }
    }
}

/// Bytes held.
const BUFFER: usize = 256 * 1024;

/// The records of a stream.
pub(super) struct Records {
    stream: Stream,
    /// Bytes of a record.
    size: usize,
    buffer: Vec<u8>,
    /// The bytes read and not taken yet are `start..end`.
    start: usize,
    end: usize,
    /// Records taken.
    taken: u64,
}

impl Records {
    pub(super) fn new(stream: Stream, size: usize) -> Records {
        Records { stream, size, buffer: vec![0; BUFFER], start: 0, end: 0, taken: 0 }
    }

    /// Chooses the size by the first bytes, at most `most` of them.
    pub(super) fn with_size(mut self, most: usize, size: impl Fn(&[u8]) -> usize) -> Result<Records, TraceError> {
        self.fill(most)?;
        self.size = size(&self.buffer[..self.end.min(most)]);
        Ok(self)
    }

    /// The next record; none at the end.
    #[inline]
    fn take(&mut self) -> Result<Option<&[u8]>, TraceError> {
        if self.end - self.start < self.size {
            self.fill(self.size)?;
            match self.end - self.start {
                0 => return Ok(None),
                held if held < self.size => {
                    let problem = format!("the data end after {held} of {} bytes", self.size);
                    return Err(self.bad(
                        self.taken,
                        "record",
                        problem,
                        "the file is cut off: copy or record it again",
                    ));
                }
                _ => {}
            }
        }
        let record = &self.buffer[self.start..self.start + self.size];
        self.start += self.size;
        self.taken += 1;
        Ok(Some(record))
    }

    /// Moves what is held to the front and reads until so many bytes are held or there are no more.
    #[cold]
    fn fill(&mut self, wanted: usize) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted {
            match self.stream.read(&mut self.buffer[self.end..])? {
                0 => break,
                read => self.end += read,
            }
        }
        Ok(())
    }

    /// A fault of the record that was taken last.
    #[cold]
    fn fault(&self, fault: Fault) -> TraceError {
        self.bad(self.taken - 1, fault.field, fault.problem, fault.remedy)
    }

    fn bad(&self, record: u64, field: &'static str, problem: String, remedy: &'static str) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record, byte: record * self.size as u64, field, problem, remedy: remedy.into() }
    }

    fn progress(&self, skipped: u64) -> Progress {
        self.stream.progress(self.taken, skipped)
    }
}

/// The number of `N` bytes at `at`, least byte first.
#[inline]
pub(super) fn number<const N: usize>(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&record[at..at + N]);
    u64::from_le_bytes(bytes)
}
