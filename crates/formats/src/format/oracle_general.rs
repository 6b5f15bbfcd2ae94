//! libCacheSim's oracleGeneral: object requests in packed, little-endian records.
//!
//! ```text
//! 24 bytes   u32 time s   u64 id @4   u32 size @12   i64 next access @16
//! ```
//! An id is a block number, a page number or a hash, and the trace does not say which: `--unit address=BYTES`
//! declares the distance between ids in bytes. With `--number-objects`, ids become 0, 1, ... in the order of their
//! first appearance, and an object takes one unit, whatever its size, as in libCacheSim. The next access, which the
//! file contains, is not used. libCacheSim's `traceConv` writes its other formats as this one.

use rustc_hash::FxHashMap;

use super::input::Stream;
use super::lines::{admit, Fault};
use super::options::{NUMBER_OBJECTS, UNIT_ADDRESS};
use super::time::Clock;
use super::{Facts, Format, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "oracleGeneral",
    summary: "libCacheSim oracleGeneral, 24-byte records; needs --unit address=...",
    example: "oracleGeneral:w105.oracleGeneral.bin.zst  (with --unit address=4KiB --number-objects)",
    fidelity: Fidelity::PageReferences,
    skips: "nothing",
    takes: &[UNIT_ADDRESS, NUMBER_OBJECTS],
    guess: None,
    open: |input, options| {
        Ok(Box::new(Objects {
            unit: options.address_unit("oracleGeneral")?,
            numbers: options.number_objects.then(FxHashMap::default),
            stream: input.stream()?,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            records: 0,
            larger: 0,
            clock: Clock::default(),
        }))
    },
};

const NANOSECONDS: u64 = 1_000_000_000;
const COLUMNS: Columns = Columns { time: true, count: false, task: false };
const RECORD: usize = 24;
/// Bytes held.
const BUFFER: usize = 256 * 1024;

struct Objects {
    unit: u64,
    /// The number of each id met, if they are to be numbered.
    numbers: Option<FxHashMap<u64, u64>>,
    stream: Stream,
    /// The bytes read and not taken yet are `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Records taken.
    records: u64,
    /// Objects larger than their unit.
    larger: u64,
    clock: Clock,
}

impl Objects {
    /// The next record; none at the end.
    #[inline]
    fn take(&mut self) -> Result<Option<[u8; RECORD]>, TraceError> {
        if self.end - self.start < RECORD {
            self.fill()?;
        }
        let held = &self.buffer[self.start..self.end];
        match held.first_chunk() {
            Some(record) => {
                self.start += RECORD;
                self.records += 1;
                Ok(Some(*record))
            }
            None if held.is_empty() => Ok(None),
            None => {
                let problem = format!("the data end after {} of {RECORD} bytes", held.len());
                Err(self.bad(self.records, "record", problem, "the file is cut off: copy or record it again"))
            }
        }
    }

    /// Moves what is held to the front and reads until a record is held or there is no more.
    #[cold]
    fn fill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < RECORD {
            match self.stream.read(&mut self.buffer[self.end..])? {
                0 => break,
                read => self.end += read,
            }
        }
        Ok(())
    }

    /// The request of the record that was taken last.
    #[inline]
    fn request(&mut self, record: &[u8; RECORD]) -> Result<Reference, Box<Fault>> {
        let (time, mut size) = (word(record, 0), word(record, 12));
        let mut id = u64::from(word(record, 8)) << 32 | u64::from(word(record, 4));
        if let Some(numbers) = &mut self.numbers {
            let next = numbers.len() as u64;
            id = *numbers.entry(id).or_insert(next);
            self.larger += u64::from(u64::from(size) > self.unit);
            size = u64::from(size).clamp(1, self.unit) as u32;
        }
        let address = id.checked_mul(self.unit).ok_or_else(|| {
            let problem = format!("{id} x {} bytes is more than 64 bits", self.unit);
            let remedy = "these ids are names, not places: add --number-objects, or declare a smaller unit";
            Box::new(Fault { field: "id", span: 0..0, problem, remedy })
        })?;
        let time = self.clock.since_start(u64::from(time) * NANOSECONDS);
        let row = Reference { time, ..Reference::new(address, size, Kind::Read) };
        admit(&row)?;
        Ok(row)
    }

    fn bad(&self, record: u64, field: &'static str, problem: String, remedy: &'static str) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record, byte: record * RECORD as u64, field, problem, remedy: remedy.into() }
    }
}

/// The number of 32 bits at `at`, least byte first.
#[inline]
fn word(record: &[u8; RECORD], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

impl RowReader for Objects {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        for _ in 0..block.capacity() {
            let Some(record) = self.take()? else { break };
            let row = self.request(&record);
            let row = row.map_err(|flaw| self.bad(self.records - 1, flaw.field, flaw.problem, flaw.remedy))?;
            block.push_request(row, COLUMNS);
        }
        Ok(block.end_requests(COLUMNS))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn progress(&self) -> Progress {
        self.stream.progress(self.records, 0)
    }

    fn facts(&self) -> Facts {
        let mut notes = vec![
            format!("object ids are numbers of {} bytes, as declared by the import", self.unit),
            "the format has no operations: all requests are stored as reads".into(),
        ];
        if let Some(numbers) = &self.numbers {
            notes.push(format!("{} objects numbered in the order of their first request", numbers.len()));
            notes.push(format!("{} requests for objects larger than the unit are stored as one unit", self.larger));
        }
        notes.extend(self.clock.note());
        Facts { started: self.clock.start(), page_size: Some(self.unit), notes, ..Facts::default() }
    }
}
