//! CloudPhysics' block traces of virtual disks (Waldspurger et al., FAST 2015), in the records of VMware's vscsiStats:
//! little-endian, of one virtual disk, in one of two layouts.
//!
//! ```text
//! 32 bytes   u32 number   u32 bytes @4   u32 @8   u16 command @12   u16 version @14   u64 sector @16   u64 us @24
//! 40 bytes   u16 command  u16 version @2   u32 @4   u32 bytes @8   u32 @12   u64 sector @16   u64 us @24   u64 @32
//! ```
//! The upper byte of the version is 1 or 2, the layout. A sector has 512 bytes. A command is one of SCSI's: reads and
//! writes are requests; other commands, and those of no bytes, are skipped and counted.

use super::lines::Fault;
use super::records::{self, number, ParseRecord, Records};
use super::Format;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    summary: "CloudPhysics block trace of a virtual disk (vscsiStats)",
    example: "vscsi:w105.vscsitrace.zst",
    fidelity: Fidelity::BlockOnly,
    skips: "commands that neither read nor write, requests of no bytes",
    takes: &[],
    guess: Some(|head| FIRST.fits(head) != SECOND.fits(head)),
    open: |input, _| {
        let records = Records::new(input.stream()?, FIRST.size);
        let records = records.with_size(HEAD, |head| if SECOND.fits(head) { SECOND.size } else { FIRST.size })?;
        Ok(records::read(records, Vscsi))
    },
};

/// Where the fields of a record are.
struct Layout {
    size: usize,
    command: usize,
    version: usize,
    bytes: usize,
    /// The upper byte of the version.
    number: u64,
}

const FIRST: Layout = Layout { size: 32, command: 12, version: 14, bytes: 4, number: 1 };
const SECOND: Layout = Layout { size: 40, command: 0, version: 2, bytes: 8, number: 2 };
const SECTOR_AT: usize = 16;
const TIME_AT: usize = 24;
/// Three records of either layout.
const HEAD: usize = 120;

impl Layout {
    fn is_of(&self, record: &[u8]) -> bool {
        number::<2>(record, self.version) >> 8 == self.number
    }

    /// Whether the first records, one to three, are of this layout.
    fn fits(&self, head: &[u8]) -> bool {
        let mut records = head.chunks_exact(self.size).take(3);
        records.len() > 0 && records.all(|record| self.is_of(record))
    }
}

const SECTOR: u64 = 512;
const MICROSECOND: u64 = 1000;

struct Vscsi;

impl ParseRecord for Vscsi {
    fn request(&mut self, record: &[u8]) -> Result<Option<Reference>, Box<Fault>> {
        let fault = |field, problem, remedy| Box::new(Fault { field, span: 0..0, problem, remedy });
        let layout = if record.len() == SECOND.size { SECOND } else { FIRST };
        if !layout.is_of(record) {
            let version = number::<2>(record, layout.version);
            let problem = format!("{version:#06x} is not of layout {}, as the first records are", layout.number);
            return Err(fault("version", problem, "check the format; the file may be cut or of two traces"));
        }
        // READ and WRITE with addresses of 21 to 64 bits (SCSI Block Commands).
        let kind = match number::<2>(record, layout.command) {
            0x08 | 0x28 | 0xa8 | 0x88 => Kind::Read,
            0x0a | 0x2a | 0xaa | 0x8a => Kind::Write,
            _ => return Ok(None),
        };
        let (bytes, sector) = (number::<4>(record, layout.bytes), number::<8>(record, SECTOR_AT));
        if bytes == 0 {
            return Ok(None);
        }
        let too_far = || fault("sector", format!("{sector} x 512 is more than 64 bits"), "check the format");
        let address = sector.checked_mul(SECTOR).ok_or_else(too_far)?;
        let time = number::<8>(record, TIME_AT).saturating_mul(MICROSECOND);
        Ok(Some(Reference { time, ..Reference::new(address, bytes as u32, kind) }))
    }
}
