//! Text of blkparse in its default form.
//!
//! ```text
//! device cpu sequence seconds pid action rwbs sector + blocks
//! 8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]
//! ```
//! Sector and length count 512 bytes. Of the actions of a request, only `D` (issued to the device) counts, since the
//! others repeat the request. Discards, flushes and the summary at the end are skipped. Each device is a task.

use super::fields::{Field, Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "blkparse text of a block trace; the requests issued to the device (action D)",
    example: "blkparse:sda.txt  (blktrace -d /dev/sda -o - | blkparse -i - > sda.txt)",
    fidelity: Fidelity::BlockOnly,
    skips: "actions other than D (issued to the device), flushes, discards, messages, the summary",
    takes: &[],
    guess: Some(|head| text::looks_like(Blkparse::default(), head)),
    open: text::open::<Blkparse>,
};

const LAYOUT: &str =
    "a line is DEVICE CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + BLOCKS [COMMAND]; print it with blkparse \
                      without -f";
const SECOND_PS: u64 = 1_000_000_000_000;
const SECTOR: u64 = 512;
/// Minor numbers take 20 bits in the kernel.
const MINOR_BITS: u32 = 20;

#[derive(Default)]
struct Blkparse {
    /// From the summary on, which begins with `CPU0 (...):` or `Total`, nothing is a request.
    summary: bool,
}

impl Parse for Blkparse {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        self.summary |= line.starts_with(b"CPU") || line.starts_with(b"Total (");
        let device = match fields.optional("device") {
            Some(device) if !self.summary => device,
            _ => return Ok(Parsed::Skip),
        };
        let number = device_number(device)?;
        fields.next("cpu")?.number(u64::from(u32::MAX))?;
        fields.next("sequence")?.number(u64::MAX)?;
        let time = fields.next("time")?.nanoseconds(SECOND_PS)?;
        fields.next("pid")?.number(u64::from(u32::MAX))?;
        let action = fields.next("action")?;
        if action.text != b"D" {
            return known(action);
        }
        let rwbs = fields.next("rwbs")?;
        let Some(kind) = kind(rwbs)? else { return Ok(Parsed::Skip) };
        let address = fields.next("sector")?.scaled(SECTOR)?;
        let plus = fields.next("+")?;
        if plus.text != b"+" {
            return Err(plus.fault("is no plus sign"));
        }
        let size = fields.next("blocks")?.size(SECTOR)?;
        tasks.meet(number, number, device.text);
        Ok(Parsed::Request(Reference { task: number, time, ..Reference::new(address, size, kind) }))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }
}

/// `8,0` as the kernel packs it.
fn device_number(field: Field<'_>) -> Result<u32, Box<Fault>> {
    let mut parts = field.text.splitn(2, |byte| *byte == b',');
    let mut part = |most: u64| parts.next().and_then(super::fields::decimal).filter(|number| *number <= most);
    let device = part(u64::from(u32::MAX >> MINOR_BITS)).zip(part((1 << MINOR_BITS) - 1));
    let (major, minor) = device.ok_or_else(|| field.fault("is no device, as in 8,0"))?;
    Ok((major as u32) << MINOR_BITS | minor as u32)
}

/// The other actions (man blkparse), and `m`, a message.
fn known(action: Field<'_>) -> Result<Parsed, Box<Fault>> {
    const ACTIONS: [&[u8]; 18] =
        [b"A", b"B", b"C", b"F", b"G", b"I", b"M", b"P", b"Q", b"R", b"S", b"T", b"U", b"UT", b"X", b"W", b"m", b"V"];
    match ACTIONS.contains(&action.text) {
        true => Ok(Parsed::Skip),
        false => Err(action.fault("is no action")),
    }
}

/// Read or write, or neither for discards, flushes without data and commands.
fn kind(rwbs: Field<'_>) -> Result<Option<Kind>, Box<Fault>> {
    if !rwbs.text.iter().all(|byte| b"RWDFNSMAEZ".contains(byte)) {
        return Err(rwbs.fault("is no RWBS field"));
    }
    let has = |letter| rwbs.text.contains(letter);
    Ok(match (has(&b'R'), has(&b'W'), has(&b'D') || has(&b'N')) {
        (true, false, false) => Some(Kind::Read),
        (false, true, false) => Some(Kind::Write),
        _ => None,
    })
}
