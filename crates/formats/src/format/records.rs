//! Binary records of one size, one after the other.

use super::input::Stream;
use super::lines::Fault;
use super::Progress;
use coldframe_store::error::TraceError;

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
    pub(super) fn take(&mut self) -> Result<Option<&[u8]>, TraceError> {
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
    pub(super) fn fault(&self, fault: Fault) -> TraceError {
        self.bad(self.taken - 1, fault.field, fault.problem, fault.remedy)
    }

    fn bad(&self, record: u64, field: &'static str, problem: String, remedy: &'static str) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record, byte: record * self.size as u64, field, problem, remedy: remedy.into() }
    }

    pub(super) fn progress(&self, skipped: u64) -> Progress {
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
