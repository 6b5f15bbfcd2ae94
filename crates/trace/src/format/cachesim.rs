//! libCacheSim's binary traces: object requests, packed and little-endian.
//!
//! ```text
//! oracleGeneral      24 bytes   u32 time s   u64 id @4   u32 size @12   i64 next access @16
//! oracleGeneralOpNS  27 bytes   u32 time s   u64 id @4   u32 size @12   u8 operation @16   u16 name space @17   i64 next @19
//! lcs                1024 bytes of header, which says how its records are laid out (see `lcs.rs`)
//! ```
//! An id is a block number, a page number or a hash, and the trace does not say which: `--unit address=BYTES`
//! declares the distance between ids in bytes. With `--number-objects`, ids become 0, 1, ... in the order of their
//! first appearance, and an object takes one unit, whatever its size, as in libCacheSim. The next access, which the
//! file contains, is not used.

use rustc_hash::FxHashMap;

use super::options::{Options, NUMBER_OBJECTS, UNIT_ADDRESS};
use super::records::{flaw, le, Flaw, Records};
use super::time::Clock;
use super::{Format, Input, RowReader};
use crate::block::Block;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::reference::Kind;
use crate::store::{Columns, SIZE_MAX};

pub(super) const ORACLE: Format = Format {
    name: "oracleGeneral",
    summary: "libCacheSim oracleGeneral, 24-byte records; needs --unit address=...",
    example: "oracleGeneral:w105.oracleGeneral.bin.zst  (with --unit address=4KiB --number-objects)",
    fidelity: Fidelity::PageReferences,
    skips: "deletions",
    takes: &[UNIT_ADDRESS, NUMBER_OBJECTS],
    guess: None,
    open: |input, options| open(Records::new(input.stream()?), PLAIN, options, "oracleGeneral"),
};
pub(super) const OPNS: Format = Format {
    name: "oracleGeneralOpNS",
    summary: "libCacheSim oracleGeneralOpNS, 27-byte records; needs --unit address=...",
    example: "oracleGeneralOpNS:cluster.bin.zst  (with --unit address=4KiB --number-objects)",
    open: |input: Input, options: &Options| open(Records::new(input.stream()?), OP_NS, options, "oracleGeneralOpNS"),
    ..ORACLE
};

/// The places of a record's fields. A place is an offset and a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) length: usize,
    pub(super) id: (usize, usize),
    pub(super) size: (usize, usize),
    pub(super) time: (usize, usize),
    pub(super) operation: Option<(usize, usize)>,
}

const PLAIN: Layout = Layout { length: 24, id: (4, 8), size: (12, 4), time: (0, 4), operation: None };
const OP_NS: Layout = Layout { length: 27, operation: Some((16, 1)), ..PLAIN };

/// The places of a record's fields, for code that is compiled once for each kind of layout.
trait Fields: Copy {
    fn length(self) -> usize;
    fn id(self, record: &[u8]) -> u64;
    fn size(self, record: &[u8]) -> u64;
    fn seconds(self, record: &[u8]) -> u64;
}

/// The most common layout, [`PLAIN`]: each field is one load from a place known at compile time.
#[derive(Clone, Copy)]
struct Plain;

impl Fields for Plain {
    #[inline(always)]
    fn length(self) -> usize {
        24
    }

    #[inline(always)]
    fn id(self, record: &[u8]) -> u64 {
        le::<8>(record, 4)
    }

    #[inline(always)]
    fn size(self, record: &[u8]) -> u64 {
        le::<4>(record, 12)
    }

    #[inline(always)]
    fn seconds(self, record: &[u8]) -> u64 {
        le::<4>(record, 0)
    }
}

impl Fields for Layout {
    fn length(self) -> usize {
        self.length
    }

    #[inline]
    fn id(self, record: &[u8]) -> u64 {
        number(record, self.id)
    }

    #[inline]
    fn size(self, record: &[u8]) -> u64 {
        number(record, self.size)
    }

    #[inline]
    fn seconds(self, record: &[u8]) -> u64 {
        number(record, self.time)
    }
}

const NANOSECONDS: u64 = 1_000_000_000;

/// Opens the records after any header.
pub(super) fn open(
    records: Records,
    layout: Layout,
    options: &Options,
    format: &'static str,
) -> Result<Box<dyn RowReader>, TraceError> {
    let unit = options.address_unit(format)?;
    let numbers = options.number_objects.then(FxHashMap::default);
    Ok(Box::new(Objects { records, layout, unit, numbers, clock: Clock::default(), skipped: 0, larger: 0, read: 0 }))
}

struct Objects {
    records: Records,
    layout: Layout,
    unit: u64,
    /// The number of each id met, if they are to be numbered.
    numbers: Option<FxHashMap<u64, u64>>,
    clock: Clock,
    skipped: u64,
    /// Objects larger than their unit.
    larger: u64,
    read: u64,
}

/// Records converted to columns at a time: their bytes stay in a level-1 cache between the columns.
const CHUNK: usize = 1024;

/// The number at a place. Ids, times and sizes of 4 and 8 bytes are the common ones, and compile to one load.
#[inline(always)]
fn number(record: &[u8], (at, bytes): (usize, usize)) -> u64 {
    match bytes {
        8 => le::<8>(record, at),
        4 => le::<4>(record, at),
        2 => le::<2>(record, at),
        _ => u64::from(record[at]),
    }
}

/// Kinds of libCacheSim's operations (`req_op_e`): nop, get, gets and read; set to prepend, incr, decr, write and
/// update.
fn kind(operation: u64) -> Result<Option<Kind>, Flaw> {
    match operation {
        0..=2 | 12 => Ok(Some(Kind::Read)),
        3..=8 | 10 | 11 | 13 | 14 => Ok(Some(Kind::Write)),
        9 => Ok(None),
        _ => Err(flaw("operation", format!("{operation}"), "an operation is 0 to 14: check the format")),
    }
}

impl Objects {
    /// Converts up to `room` records into rows. Returns `false` at the end.
    fn chunk(&mut self, block: &mut Block, room: usize) -> Result<bool, TraceError> {
        let layout = self.layout;
        let chunk = self.records.take(layout.length, room.min(CHUNK))?;
        let records = (chunk.len() / layout.length) as u64;
        let plain = self.numbers.is_none() && layout.operation.is_none();
        let done = match plain {
            true if layout == PLAIN => columns(chunk, Plain, self.unit, &mut self.clock, block),
            true => columns(chunk, layout, self.unit, &mut self.clock, block),
            false => rows(
                chunk,
                layout,
                self.unit,
                &mut self.numbers,
                &mut self.clock,
                block,
                &mut self.skipped,
                &mut self.larger,
            ),
        };
        self.read += records;
        match done {
            Ok(()) => Ok(records > 0),
            Err((record, flaw)) => Err(self.records.bad_before(flaw, records - record as u64, layout.length)),
        }
    }
}

/// All columns of a chunk whose ids are used unchanged and whose requests are all reads. One pass for each column,
/// without branches. Values that look out of range are then checked one by one.
fn columns<F: Fields>(
    chunk: &[u8],
    fields: F,
    unit: u64,
    clock: &mut Clock,
    block: &mut Block,
) -> Result<(), (usize, Flaw)> {
    let each = || chunk.chunks_exact(fields.length());
    let id_max = (u64::MAX - u64::from(SIZE_MAX)) / unit;
    let suspect =
        |record: &[u8]| (fields.id(record) > id_max) | (fields.size(record).wrapping_sub(1) >= u64::from(SIZE_MAX));
    if each().fold(false, |any, record| any | suspect(record)) {
        refuse(chunk, fields, unit)?;
    }
    let time = |record: &[u8]| fields.seconds(record).saturating_mul(NANOSECONDS);
    let Some(first) = each().next() else { return Ok(()) };
    let start = clock.begin(time(first));
    let addresses = each().map(|record| fields.id(record) * unit);
    let sizes = each().map(|record| fields.size(record) as u32);
    if each().fold(u64::MAX, |least, record| least.min(time(record))) >= start {
        block.extend_reads(addresses, sizes, each().map(|record| time(record) - start));
    } else {
        block.extend_reads(addresses, sizes, each().map(|record| clock.since_start(time(record))));
    }
    Ok(())
}

/// The first record that cannot be stored, if there is one.
#[cold]
fn refuse<F: Fields>(chunk: &[u8], fields: F, unit: u64) -> Result<(), (usize, Flaw)> {
    let each = chunk.chunks_exact(fields.length()).enumerate();
    each.map(|(row, record)| (row, access(fields.id(record), fields.size(record), unit)))
        .try_for_each(|(row, access)| access.map(|_| ()).map_err(|flaw| (row, flaw)))
}

/// Checks and scales one request.
#[inline(always)]
fn access(id: u64, size: u64, unit: u64) -> Result<u64, Flaw> {
    let address = id.checked_mul(unit);
    let last = address.and_then(|address| address.checked_add(size.wrapping_sub(1)));
    match address {
        Some(address) if last.is_some() && size.wrapping_sub(1) < u64::from(SIZE_MAX) => Ok(address),
        _ => Err(refusal(id, size, unit)),
    }
}

#[cold]
fn refusal(id: u64, size: u64, unit: u64) -> Flaw {
    if size.wrapping_sub(1) >= u64::from(SIZE_MAX) {
        return flaw("size", format!("{size} bytes"), "a size is 1 byte to 1 GiB: check the format");
    }
    let found = format!("{id} x {unit} bytes is more than 64 bits");
    flaw("id", found, "these ids are names, not places: add --number-objects, or declare a smaller unit")
}

/// The general way, request by request.
#[allow(clippy::too_many_arguments)] // The parts of a reader that is borrowed by its own buffer.
fn rows(
    chunk: &[u8],
    layout: Layout,
    unit: u64,
    numbers: &mut Option<FxHashMap<u64, u64>>,
    clock: &mut Clock,
    block: &mut Block,
    skipped: &mut u64,
    larger: &mut u64,
) -> Result<(), (usize, Flaw)> {
    for (row, record) in chunk.chunks_exact(layout.length).enumerate() {
        let operation = layout.operation.map_or(0, |place| number(record, place));
        let Some(kind) = kind(operation).map_err(|flaw| (row, flaw))? else {
            *skipped += 1;
            continue;
        };
        let (mut id, mut size) = (number(record, layout.id), number(record, layout.size));
        if let Some(numbers) = numbers {
            let next = numbers.len() as u64;
            id = *numbers.entry(id).or_insert(next);
            *larger += u64::from(size > unit);
            size = size.clamp(1, unit);
        }
        let address = access(id, size, unit).map_err(|flaw| (row, flaw))?;
        let time = clock.since_start(number(record, layout.time).saturating_mul(NANOSECONDS));
        block.push_timed(address, size as u32, kind, time);
    }
    Ok(())
}

impl RowReader for Objects {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        loop {
            let room = block.capacity() - block.gathered();
            if room == 0 || !self.chunk(block, room)? {
                return Ok(block.end_requests(self.columns()));
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn lines(&self) -> u64 {
        self.read
    }

    fn columns(&self) -> Columns {
        Columns { time: true, ..Columns::default() }
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

    fn page_size(&self) -> Option<u64> {
        Some(self.unit)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("object ids are numbers of {} bytes, as declared by the import", self.unit)];
        if self.layout.operation.is_none() {
            notes.push("the format has no operations: all requests are stored as reads".into());
        }
        if let Some(numbers) = &self.numbers {
            notes.push(format!("{} objects numbered in the order of their first request", numbers.len()));
            notes.push(format!("{} requests for objects larger than the unit are stored as one unit", self.larger));
        }
        notes.extend(self.clock.note());
        notes
    }
}
