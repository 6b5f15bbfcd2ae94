//! Binary records, as slices of one buffer that never grows.

use super::input::Stream;
use super::time::Clock;
use super::RowReader;
use crate::block::Block;
use crate::error::TraceError;
use crate::provenance::Task;
use crate::reference::Reference;
use crate::store::{Columns, SIZE_MAX};

/// Bytes held. No record of any format here is longer, including a blktrace record with its 64 KiB of payload.
const BUFFER: usize = 256 * 1024;

/// What is wrong with a record. Its decoder knows neither the file nor the place.
pub(super) struct Flaw {
    pub(super) field: &'static str,
    pub(super) found: String,
    pub(super) remedy: &'static str,
}

pub(super) fn flaw(field: &'static str, found: String, remedy: &'static str) -> Flaw {
    Flaw { field, found, remedy }
}

/// Cuts a stream into records.
pub(super) struct Records {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    byte: u64,
    /// Records handed out.
    number: u64,
}

impl Records {
    pub(super) fn new(stream: Stream) -> Records {
        Records { stream, buffer: vec![0; BUFFER], start: 0, end: 0, byte: 0, number: 0 }
    }

    /// Up to `most` whole records of `length` bytes each; empty at the end.
    ///
    /// # Errors
    /// Those of the stream; the stream ends within a record.
    pub(super) fn take(&mut self, length: usize, most: usize) -> Result<&[u8], TraceError> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        let held = self.end - self.start;
        if held < length && held > 0 {
            let found = format!("the data end after {held} of {length} bytes");
            return Err(self.bad(flaw("record", found, "the file is cut off: copy or record it again")));
        }
        let records = (held / length).min(most);
        let from = self.start;
        self.start += records * length;
        self.byte += (records * length) as u64;
        self.number += records as u64;
        Ok(&self.buffer[from..self.start])
    }

    /// The next bytes without taking them: `length` of them, or fewer at the end.
    pub(super) fn peek(&mut self, length: usize) -> Result<&[u8], TraceError> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + length)])
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

    /// A complaint about the record that begins at the current place.
    pub(super) fn bad(&self, flaw: Flaw) -> TraceError {
        self.bad_at(flaw, self.number, self.byte)
    }

    /// A complaint about record `back` before the current place, of `length` bytes each.
    pub(super) fn bad_before(&self, flaw: Flaw, back: u64, length: usize) -> TraceError {
        self.bad_at(flaw, self.number - back, self.byte - back * length as u64)
    }

    fn bad_at(&self, flaw: Flaw, record: u64, byte: u64) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record, byte, field: flaw.field, found: flaw.found, remedy: flaw.remedy.into() }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn consumed(&self) -> u64 {
        self.stream.consumed()
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.stream.length()
    }
}

/// A binary format: how to read one of its records.
pub(super) trait Decode: Send + 'static {
    /// Takes the next record from `records` and appends its accesses, or none if it is skipped. Returns `false` at
    /// the end.
    ///
    /// # Errors
    /// Those of the stream; a flaw of the record.
    fn next(&mut self, records: &mut Records, out: &mut Vec<Reference>) -> Result<bool, TraceError>;

    /// Which optional columns its accesses have.
    fn columns(&self) -> Columns;

    /// As [`RowReader::tasks`].
    fn tasks(&self) -> Vec<Task> {
        Vec::new()
    }

    /// As [`RowReader::notes`].
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a binary format record by record.
pub(super) struct Binary<D> {
    records: Records,
    decoder: D,
    /// Accesses decoded and not handed out yet: `pending[taken..]`.
    pending: Vec<Reference>,
    taken: usize,
    skipped: u64,
    clock: Clock,
}

impl<D: Decode> Binary<D> {
    pub(super) fn new(records: Records, decoder: D) -> Binary<D> {
        Binary { records, decoder, pending: Vec::new(), taken: 0, skipped: 0, clock: Clock::default() }
    }

    /// Whether there is another access to hand out.
    fn refill(&mut self) -> Result<bool, TraceError> {
        while self.taken == self.pending.len() {
            self.pending.clear();
            self.taken = 0;
            if !self.decoder.next(&mut self.records, &mut self.pending)? {
                return Ok(false);
            }
            self.skipped += u64::from(self.pending.is_empty());
        }
        Ok(true)
    }
}

/// A value that no store can hold is a flaw of the record, in every format.
#[inline]
pub(super) fn admit(row: &Reference) -> Result<(), Flaw> {
    if !(1..=SIZE_MAX).contains(&row.size) {
        return Err(flaw("size", format!("{} bytes", row.size), "a size is 1 byte to 1 GiB: check the format"));
    }
    if row.address.checked_add(u64::from(row.size) - 1).is_none() {
        let found = format!("{:#x} and {} bytes run past 2^64", row.address, row.size);
        return Err(flaw(
            "address",
            found,
            "the access must end within 64 bits of address: check the format and the units",
        ));
    }
    Ok(())
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
            admit(&row).map_err(|flaw| self.records.bad(flaw))?;
            if columns.time {
                row.time = self.clock.since_start(row.time);
            }
            block.push_request(row, columns);
        }
        Ok(block.end_requests(columns))
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn lines(&self) -> u64 {
        self.records.number()
    }

    fn columns(&self) -> Columns {
        self.decoder.columns()
    }

    fn position(&self) -> u64 {
        self.records.consumed()
    }

    fn length(&self) -> Option<u64> {
        self.records.length()
    }

    fn started(&self) -> Option<u64> {
        self.clock.start()
    }

    fn tasks(&self) -> Vec<Task> {
        self.decoder.tasks()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.decoder.notes();
        notes.extend(self.clock.note());
        notes
    }
}

/// The unsigned number of `N` bytes at `at`, least byte first.
#[inline]
pub(super) fn le<const N: usize>(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&record[at..at + N]);
    u64::from_le_bytes(bytes)
}
