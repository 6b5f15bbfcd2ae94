//! blktrace's binary files, one a CPU, version 7 (`blktrace_api.h`).
//!
//! ```text
//!  0 u32 magic 0x65617400 | version   4 u32 sequence   8 u64 time ns   16 u64 sector   24 u32 bytes   28 u32 action
//! 32 u32 pid   36 u32 device   40 u32 cpu   44 u16 error   46 u16 length of the payload that follows the 48 bytes
//! ```
//! The byte order is that of the recording machine; the magic shows it. Name one file, or the name given to `blktrace
//! -o`: the files of all CPUs are then merged by time. As in `blkparse.rs`, the issue of a request counts.

use super::blkparse::MINOR_BITS;
use super::merge::Merged;
use super::options::Options;
use super::records::{flaw, Binary, Decode, Records};
use super::tasks::Tasks;
use super::{Format, Input, RowReader};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    summary: "blktrace binary, one file or all CPUs' files by their common name; the requests issued to the device",
    example: "blktrace:sda  (blktrace -d /dev/sda -o sda)",
    fidelity: Fidelity::BlockOnly,
    skips: "actions other than issue, flushes, discards, messages",
    takes: &[],
    guess: Some(|head| magic(head).is_some()),
    open,
};

const HEAD: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const SECTOR: u64 = 512;
/// `BLK_TA_ISSUE`, and the categories in the upper half of an action.
const ISSUE: u32 = 7;
const READ: u32 = 1;
const WRITE: u32 = 2;
const NOTIFY: u32 = 0x400;
const DISCARD: u32 = 0x2000;
const CGROUP: u32 = 1 << 8;

const REMEDY: &str =
    "this is no blktrace file of version 7: check the path, or read it with blkparse and import that text";

struct Blktrace;

fn open(input: Input, _: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    let Input::Path(path) = &input else { return one(input) };
    if path.exists() {
        return one(input);
    }
    let cpu = |cpu: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".blktrace.{cpu}"));
        std::path::PathBuf::from(name)
    };
    let files: Vec<_> = (0..).map(cpu).take_while(|file| file.exists()).collect();
    match files.len() {
        0 => one(input),
        1 => one(Input::Path(files[0].clone())),
        _ => Ok(Box::new(Merged::new(files.into_iter().map(|file| one(Input::Path(file))).collect::<Result<_, _>>()?))),
    }
}

fn one(input: Input) -> Result<Box<dyn RowReader>, TraceError> {
    Ok(Binary::boxed(Records::new(input.stream()?), Blktrace))
}

/// Whether a record is byte-swapped; `None` if it is no record of this version.
fn magic(record: &[u8]) -> Option<bool> {
    let bytes: [u8; 4] = record.get(..4)?.try_into().ok()?;
    match (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)) {
        (value, _) if value == MAGIC | VERSION => Some(false),
        (_, value) if value == MAGIC | VERSION => Some(true),
        _ => None,
    }
}

/// The fields of a record that matter here.
struct Head {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    payload: usize,
}

impl Head {
    fn new(record: &[u8], swapped: bool) -> Head {
        let bytes = |at: usize, length: usize| {
            let field = &record[at..at + length];
            let place = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            if swapped {
                field.iter().fold(0, place)
            } else {
                field.iter().rev().fold(0, place)
            }
        };
        Head {
            time: bytes(8, 8),
            sector: bytes(16, 8),
            bytes: bytes(24, 4) as u32,
            action: bytes(28, 4) as u32,
            device: bytes(36, 4) as u32,
            payload: bytes(46, 2) as usize,
        }
    }

    /// Read or write, if it is the issue of a request that moves data.
    fn kind(&self) -> Option<Kind> {
        let category = self.action >> 16;
        let issue = self.action & 0xffff & !CGROUP == ISSUE && category & (NOTIFY | DISCARD) == 0 && self.bytes > 0;
        match (category & READ != 0, category & WRITE != 0) {
            _ if !issue => None,
            (true, false) => Some(Kind::Read),
            (false, true) => Some(Kind::Write),
            _ => None,
        }
    }
}

impl Decode for Blktrace {
    fn next(&mut self, records: &mut Records, out: &mut Vec<Reference>, tasks: &mut Tasks) -> Result<bool, TraceError> {
        let head = records.peek(HEAD)?;
        if head.is_empty() {
            return Ok(false);
        }
        let Some(swapped) = magic(head) else {
            let found = format!("{:02x?}", &head[..head.len().min(4)]);
            return Err(records.bad(*flaw("magic", found, REMEDY)));
        };
        if head.len() < HEAD {
            return records.take(HEAD).map(|_| true);
        }
        let head = Head::new(head, swapped);
        records.take(HEAD + head.payload)?;
        let Some(kind) = head.kind() else { return Ok(true) };
        let address = head.sector.checked_mul(SECTOR).ok_or_else(|| {
            records.bad_taken(*flaw("sector", format!("{} x 512 bytes is more than 64 bits", head.sector), REMEDY))
        })?;
        let name = format!("{},{}", head.device >> MINOR_BITS, head.device & ((1 << MINOR_BITS) - 1));
        tasks.meet(head.device, head.device, name.as_bytes());
        out.push(Reference { task: head.device, time: head.time, ..Reference::new(address, head.bytes, kind) });
        Ok(true)
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }
}
