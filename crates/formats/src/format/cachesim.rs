//! libCacheSim's binary traces: object requests, packed and little-endian.
//!
//! ```text
//! oracleGeneral      24 bytes   u32 time s   u64 id @4   u32 size @12   i64 next access @16
//! oracleGeneralOpNS  27 bytes   u32 time s   u64 id @4   u32 size @12   u8 operation @16   u16 name space @17   i64 next @19
//! lcs                1024 bytes of header, which says how its records are laid out (see `lcs.rs`)
//! ```
//! An id is a block number, a page number or a hash, and the trace does not say which: `--unit address=BYTES`
//! declares the distance between ids in bytes. With `--number-objects`, ids become 0, 1, ... in the order of their
//! first appearance, and an object of any size takes one unit, as in libCacheSim. The next access, which the
//! file contains, is not used.

use rustc_hash::FxHashMap;

use super::lines::Fault;
use super::options::{Options, NUMBER_OBJECTS, UNIT_ADDRESS};
use super::records::{flaw, Binary, Decode, Records};
use super::tasks::Tasks;
use super::{le, Format, Input, RowReader};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

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
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) length: usize,
    pub(super) id: (usize, usize),
    pub(super) size: (usize, usize),
    pub(super) time: (usize, usize),
    pub(super) operation: Option<(usize, usize)>,
}

const PLAIN: Layout = Layout { length: 24, id: (4, 8), size: (12, 4), time: (0, 4), operation: None };
const OP_NS: Layout = Layout { length: 27, operation: Some((16, 1)), ..PLAIN };

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
    Ok(Binary::boxed(records, Objects { layout, unit, numbers, larger: 0 }))
}

struct Objects {
    layout: Layout,
    unit: u64,
    /// The number of each id met, if they are to be numbered.
    numbers: Option<FxHashMap<u64, u64>>,
    /// Objects larger than their unit.
    larger: u64,
}

/// The number at a place. Ids, times and sizes of 4 and 8 bytes are the common ones, and compile to one load.
#[inline]
fn number(record: &[u8], (at, bytes): (usize, usize)) -> u64 {
    match bytes {
        8 => le::<8>(record, at),
        4 => le::<4>(record, at),
        2 => le::<2>(record, at),
        _ => u64::from(record[at]),
    }
}

/// Kinds of libCacheSim's operations (`req_op_e`): nop, get, gets and read; set to prepend, incr, decr, write and
/// update; delete has none.
fn kind(operation: u64) -> Result<Option<Kind>, Box<Fault>> {
    match operation {
        0..=2 | 12 => Ok(Some(Kind::Read)),
        3..=8 | 10 | 11 | 13 | 14 => Ok(Some(Kind::Write)),
        9 => Ok(None),
        _ => Err(flaw("operation", format!("{operation}"), "an operation is 0 to 14: check the format")),
    }
}

impl Objects {
    /// The request of a record; `None` for a deletion.
    #[inline]
    fn request(&mut self, record: &[u8]) -> Result<Option<Reference>, Box<Fault>> {
        let operation = self.layout.operation.map_or(0, |place| number(record, place));
        let Some(kind) = kind(operation)? else { return Ok(None) };
        let (mut id, mut size) = (number(record, self.layout.id), number(record, self.layout.size));
        if let Some(numbers) = &mut self.numbers {
            let next = numbers.len() as u64;
            id = *numbers.entry(id).or_insert(next);
            self.larger += u64::from(size > self.unit);
            size = size.clamp(1, self.unit);
        }
        let address = id.checked_mul(self.unit).ok_or_else(|| {
            let found = format!("{id} x {} bytes is more than 64 bits", self.unit);
            flaw("id", found, "these ids are names, not places: add --number-objects, or declare a smaller unit")
        })?;
        let time = number(record, self.layout.time).saturating_mul(NANOSECONDS);
        let size = u32::try_from(size)
            .map_err(|_| flaw("size", format!("{size} bytes"), "a size is 1 byte to 1 GiB: check the format"))?;
        Ok(Some(Reference { time, ..Reference::new(address, size, kind) }))
    }
}

impl Decode for Objects {
    fn next(&mut self, records: &mut Records, out: &mut Vec<Reference>, _: &mut Tasks) -> Result<bool, TraceError> {
        let record = records.take(self.layout.length)?;
        if record.is_empty() {
            return Ok(false);
        }
        out.extend(self.request(record).map_err(|flaw| records.bad_taken(*flaw))?);
        Ok(true)
    }

    fn columns(&self) -> Columns {
        Columns { time: true, ..Columns::default() }
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
        notes
    }
}
