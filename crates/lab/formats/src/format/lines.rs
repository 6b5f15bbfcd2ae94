//! Lines of a text, as slices of one buffer that never grows.

use std::ops::Range;

use super::input::Stream;
use coldframe_store::error::{printable, BadLine, TraceError};
use coldframe_store::reference::Reference;
use coldframe_store::store::SIZE_MAX;

/// The most bytes of a line. The longest line of any format here has some 30 bytes. A longer line is not such a text,
/// and must not fill the memory.
pub(super) const LINE_MAX: usize = 64 * 1024;
/// Bytes held: some lines of any length, and blocks large enough to make refilling cheap.
const BUFFER: usize = 8 * LINE_MAX;

/// What is wrong with one line or record. Its parser knows neither the file nor the place.
pub(super) struct Fault {
    pub(super) field: &'static str,
    /// The bytes of a line at fault; empty where something is missing.
    pub(super) span: Range<usize>,
    pub(super) problem: String,
    pub(super) remedy: &'static str,
}

/// A value that no store can hold is a fault of the line or record, in every format.
#[inline]
pub(super) fn admit(row: &Reference) -> Result<(), Box<Fault>> {
    let fault = |field, problem, remedy| Err(Box::new(Fault { field, span: 0..usize::MAX, problem, remedy }));
    if !(1..=SIZE_MAX).contains(&row.size) {
        let remedy =
            "a size is 1 byte to 1 GiB; check the units and the format; keys of objects: add --number-objects; \
             --skip-bad leaves such lines of text out";
        return fault("size", format!("{} bytes", row.size), remedy);
    }
    if row.address.checked_add(u64::from(row.size) - 1).is_none() {
        let problem = format!("{:#x} and {} bytes run past 2^64", row.address, row.size);
        let remedy = "the access must end within 64 bits of address; check the units and the format";
        return fault("address", problem, remedy);
    }
    Ok(())
}

pub(super) struct Lines {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Lines handed out.
    number: u64,
    /// Whether a NUL byte was ever seen. Only then is each line searched for one.
    nul: bool,
    finished: bool,
}

impl Lines {
    pub(super) fn new(stream: Stream) -> Lines {
        let buffer = vec![0; BUFFER];
        Lines { stream, buffer, start: 0, end: 0, number: 0, nul: false, finished: false }
    }

    /// The place of the next line, without its end (LF or CR LF); `None` after the last. A last line may lack its end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Range<usize>>, TraceError> {
        let line = match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => {
                let line = self.start..self.start + length;
                self.start += length + 1;
                line
            }
            None => match self.next_slow()? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        self.number += 1;
        if line.len() > LINE_MAX || self.nul {
            self.admit(&line)?;
        }
        let end = line.end - usize::from(self.buffer[line.clone()].ends_with(b"\r"));
        Ok(Some(line.start..end))
    }

    /// The bytes of a line, until the next call of [`Lines::next`].
    #[inline]
    pub(super) fn line(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Refills the buffer until it holds a line or there is no more.
    #[cold]
    fn next_slow(&mut self) -> Result<Option<Range<usize>>, TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            let searched = self.end;
            if !self.finished && self.end < self.buffer.len() {
                let read = self.stream.read(&mut self.buffer[self.end..])?;
                self.finished = read == 0;
                self.end += read;
            }
            let fresh = &self.buffer[searched..self.end];
            self.nul |= memchr::memchr(0, fresh).is_some();
            if let Some(length) = memchr::memchr(b'\n', fresh) {
                self.start = searched + length + 1;
                return Ok(Some(0..searched + length));
            }
            if self.finished || self.end > LINE_MAX {
                // The last line, or one that is too long; that is the last one as well, since it is an error.
                let line = 0..self.end;
                self.start = self.end;
                return Ok(if line.is_empty() { None } else { Some(line) });
            }
        }
    }

    /// Refuses what cannot be a line of text.
    #[cold]
    fn admit(&self, line: &Range<usize>) -> Result<(), TraceError> {
        let fault = |span, problem: String, remedy| Err(self.bad(line, Fault { field: "line", span, problem, remedy }));
        if line.len() > LINE_MAX {
            let problem = format!("more than {LINE_MAX} bytes without an end");
            return fault(0..line.len(), problem, "this is not a text trace: check the format and the path");
        }
        let remedy = "this is not a text trace (or UTF-16): check the format, or convert it to ASCII";
        match memchr::memchr(0, self.line(line.clone())) {
            Some(place) => fault(place..place + 1, "a NUL byte".into(), remedy),
            None => Ok(()),
        }
    }

    /// A parser's complaint about the line handed out last.
    pub(super) fn bad(&self, line: &Range<usize>, fault: Fault) -> TraceError {
        let text = printable(self.line(line.clone()));
        let offset = fault.span.start.min(text.len());
        TraceError::Line(Box::new(BadLine {
            path: self.stream.name().to_owned(),
            line: self.number,
            offset,
            len: fault.span.len().min(text.len() - offset),
            text,
            field: fault.field,
            problem: fault.problem,
            remedy: fault.remedy.into(),
        }))
    }
}
