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

use super::lines::Fault;
use super::options::{NUMBER_OBJECTS, UNIT_ADDRESS};
use super::records::{self, number, ParseRecord, Records};
use super::{Facts, Format};
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "oracleGeneral",
    summary: "libCacheSim oracleGeneral, 24-byte records; needs --unit address=...",
    example: "oracleGeneral:w105.oracleGeneral.bin.zst  (with --unit address=4KiB --number-objects)",
    fidelity: Fidelity::KeyRequests,
    skips: "nothing",
    takes: &[UNIT_ADDRESS, NUMBER_OBJECTS],
    guess: None,
    open: |input, options| {
        let objects = Objects {
            unit: options.address_unit("oracleGeneral")?,
            numbers: options.number_objects.then(FxHashMap::default),
            larger: 0,
        };
        Ok(records::read(Records::new(input.stream()?, RECORD), objects))
    },
};

const NANOSECONDS: u64 = 1_000_000_000;
const RECORD: usize = 24;

struct Objects {
    unit: u64,
    /// The number of each id met, if they are to be numbered.
    numbers: Option<FxHashMap<u64, u64>>,
    /// Objects larger than their unit.
    larger: u64,
}

impl ParseRecord for Objects {
    #[inline]
    fn request(&mut self, record: &[u8]) -> Result<Option<Reference>, Box<Fault>> {
        let (time, mut id, mut size) = (number::<4>(record, 0), number::<8>(record, 4), number::<4>(record, 12));
        if let Some(numbers) = &mut self.numbers {
            let next = numbers.len() as u64;
            id = *numbers.entry(id).or_insert(next);
            self.larger += u64::from(size > self.unit);
            size = size.clamp(1, self.unit);
        }
        let address = id.checked_mul(self.unit).ok_or_else(|| {
            let problem = format!("{id} x {} bytes is more than 64 bits", self.unit);
            let remedy = "these ids are names, not places: add --number-objects, or declare a smaller unit";
            Box::new(Fault { field: "id", span: 0..0, problem, remedy })
        })?;
        Ok(Some(Reference { time: time * NANOSECONDS, ..Reference::new(address, size as u32, Kind::Read) }))
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
        Facts { page_size: Some(self.unit), notes, ..Facts::default() }
    }
}
