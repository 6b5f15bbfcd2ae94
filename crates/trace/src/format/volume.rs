//! Block traces of storage studies: one request a line, commas between fields.
//!
//! ```text
//! msr      Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime   100 ns since 1601, bytes, Read or Write
//! spc      ASU,LBA,Size,Opcode,Timestamp[,...]                           sectors of 512 B, bytes, r or w, seconds
//! alibaba  device_id,opcode,offset,length,timestamp                      bytes, R or W, microseconds
//! tencent  Timestamp,Offset,Size,IOType,VolumeID                         seconds, sectors of 512 B, 0 read 1 write
//! ```
//! Requests that reach a disk have passed a page cache, so such traces show the misses of a memory of unknown size.
//! They are marked `block-only`. A device, disk or volume is a task with its own address space.

use super::fields::{Field, Fields, Separator};
use super::lines::Fault;
use super::options::Options;
use super::text::{self, Parse, Parsed};
use super::volumes::Volumes;
use super::Format;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::provenance::Task;
use crate::reference::{Kind, Reference};
use crate::store::Columns;

const BASE: Format = Format {
    name: "",
    summary: "",
    example: "",
    fidelity: Fidelity::BlockOnly,
    skips: "header lines, blank lines",
    takes: &[],
    guess: None,
    open: text::open::<Msr>,
};

pub(super) const MSR: Format = Format {
    name: "msr",
    summary: "MSR Cambridge block trace, one host a file",
    example: "msr:src1_0.csv.gz",
    guess: Some(text::looks_like::<Msr>),
    ..BASE
};
pub(super) const SPC: Format = Format {
    name: "spc",
    summary: "SPC (UMass) block trace: ASU, LBA of 512 bytes, size, opcode, seconds",
    example: "spc:Financial1.spc.bz2",
    open: text::open::<Spc>,
    ..BASE
};
pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    summary: "Alibaba Cloud 2020 block trace: device, opcode, offset, length, microseconds",
    example: "alibaba:io_traces.csv",
    open: text::open::<Alibaba>,
    ..BASE
};
pub(super) const TENCENT: Format = Format {
    name: "tencent",
    summary: "Tencent CBS block trace: seconds, offset and size in sectors of 512 bytes, type, volume",
    example: "tencent:atc_2020_trace/trace_1.csv",
    open: text::open::<Tencent>,
    ..BASE
};

/// Bytes of a sector, the unit of the formats that count in sectors.
const SECTOR: u64 = 512;
const SECOND_PS: u64 = 1_000_000_000_000;
const MICROSECOND_PS: u64 = 1_000_000;
/// Windows counts 100 ns.
const FILETIME_PS: u64 = 100_000;

const COLUMNS: Columns = Columns { time: true, count: false, task: true };

/// A size in bytes, or nothing if the request moves none.
fn size(field: Field<'_>, unit: u64) -> Result<u32, Box<Fault>> {
    u32::try_from(field.scaled(unit)?).map_err(|_| field.fault("is too large for one request"))
}

fn task(field: Field<'_>) -> Result<u32, Box<Fault>> {
    Ok(field.number(u64::from(u32::MAX))? as u32)
}

/// A request, or a skip if it moves no byte.
fn request(address: u64, size: u32, kind: Kind, task: u32, time: u64) -> Parsed {
    match size {
        0 => Parsed::Skip,
        _ => Parsed::Request(Reference { task, time, ..Reference::new(address, size, kind) }),
    }
}

/// A line of letters where numbers belong is a header, and may only be the first.
fn is_header(line: &[u8], first: &mut bool) -> bool {
    std::mem::take(first) && line.first().is_some_and(u8::is_ascii_alphabetic)
}

struct Msr {
    first: bool,
    host: Option<Vec<u8>>,
    volumes: Volumes,
}

const MSR_LAYOUT: &str =
    "a line is Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime with times of 100 ns and \
                          Type Read or Write";

impl Parse for Msr {
    fn new(_: &Options) -> Result<Msr, TraceError> {
        Ok(Msr { first: true, host: None, volumes: Volumes::default() })
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.is_empty() || is_header(line, &mut self.first) {
            return Ok(Parsed::Skip);
        }
        let mut fields = Fields::new(line, Separator::Byte(b','), MSR_LAYOUT);
        let time = fields.next("Timestamp")?.nanoseconds(FILETIME_PS)?;
        self.same_host(fields.next("Hostname")?)?;
        let disk = task(fields.next("DiskNumber")?)?;
        let kind = fields.next("Type")?;
        let kind = match kind.text {
            b"Read" => Kind::Read,
            b"Write" => Kind::Write,
            _ => return Err(kind.fault("is neither Read nor Write")),
        };
        let offset = fields.next("Offset")?.number(u64::MAX)?;
        let size = size(fields.next("Size")?, 1)?;
        fields.next("ResponseTime")?.number(u64::MAX)?;
        fields.end()?;
        self.volumes.meet(disk);
        Ok(request(offset, size, kind, disk, time))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn tasks(&self) -> Vec<Task> {
        let host = String::from_utf8_lossy(self.host.as_deref().unwrap_or_default()).into_owned();
        self.volumes.tasks(&format!("{host} disk"))
    }
}

impl Msr {
    /// Disk 0 of one host is not disk 0 of another.
    fn same_host(&mut self, field: Field<'_>) -> Result<(), Box<Fault>> {
        let host = self.host.get_or_insert_with(|| field.text.to_vec());
        if host == field.text {
            return Ok(());
        }
        Err(Box::new(Fault {
            field: "Hostname",
            span: field.span(),
            found: "a second host in one file".into(),
            remedy: "import each host's lines by themselves and join them with `coldframe merge`",
        }))
    }
}

/// Letters for kinds, in either case.
fn letter(field: Field<'_>) -> Result<Kind, Box<Fault>> {
    match field.text {
        b"r" | b"R" => Ok(Kind::Read),
        b"w" | b"W" => Ok(Kind::Write),
        _ => Err(field.fault("is neither r nor w")),
    }
}

struct Spc(Volumes);

const SPC_LAYOUT: &str =
    "a line is ASU,LBA,Size,Opcode,Timestamp with LBA in sectors of 512 bytes, Size in bytes, r or w, and seconds";

impl Parse for Spc {
    fn new(_: &Options) -> Result<Spc, TraceError> {
        Ok(Spc(Volumes::default()))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.is_empty() {
            return Ok(Parsed::Skip);
        }
        let mut fields = Fields::new(line, Separator::Byte(b','), SPC_LAYOUT);
        let asu = task(fields.next("ASU")?)?;
        let address = fields.next("LBA")?.scaled(SECTOR)?;
        let size = size(fields.next("Size")?, 1)?;
        let kind = letter(fields.next("Opcode")?)?;
        let time = fields.next("Timestamp")?.nanoseconds(SECOND_PS)?;
        self.0.meet(asu);
        Ok(request(address, size, kind, asu, time))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn tasks(&self) -> Vec<Task> {
        self.0.tasks("ASU")
    }
}

struct Alibaba {
    first: bool,
    volumes: Volumes,
}

const ALIBABA_LAYOUT: &str = "a line is device_id,opcode,offset,length,timestamp with R or W, bytes, and microseconds";

impl Parse for Alibaba {
    fn new(_: &Options) -> Result<Alibaba, TraceError> {
        Ok(Alibaba { first: true, volumes: Volumes::default() })
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.is_empty() || is_header(line, &mut self.first) {
            return Ok(Parsed::Skip);
        }
        let mut fields = Fields::new(line, Separator::Byte(b','), ALIBABA_LAYOUT);
        let device = task(fields.next("device_id")?)?;
        let kind = letter(fields.next("opcode")?)?;
        let offset = fields.next("offset")?.number(u64::MAX)?;
        let size = size(fields.next("length")?, 1)?;
        let time = fields.next("timestamp")?.nanoseconds(MICROSECOND_PS)?;
        fields.end()?;
        self.volumes.meet(device);
        Ok(request(offset, size, kind, device, time))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn tasks(&self) -> Vec<Task> {
        self.volumes.tasks("device")
    }
}

struct Tencent {
    first: bool,
    volumes: Volumes,
}

const TENCENT_LAYOUT: &str =
    "a line is Timestamp,Offset,Size,IOType,VolumeID with seconds, sectors of 512 bytes, and IOType 0 \
                              (read) or 1 (write)";

impl Parse for Tencent {
    fn new(_: &Options) -> Result<Tencent, TraceError> {
        Ok(Tencent { first: true, volumes: Volumes::default() })
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.is_empty() || is_header(line, &mut self.first) {
            return Ok(Parsed::Skip);
        }
        let mut fields = Fields::new(line, Separator::Byte(b','), TENCENT_LAYOUT);
        let time = fields.next("Timestamp")?.nanoseconds(SECOND_PS)?;
        let address = fields.next("Offset")?.scaled(SECTOR)?;
        let size = size(fields.next("Size")?, SECTOR)?;
        let kind = fields.next("IOType")?;
        let kind = match kind.text {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            _ => return Err(kind.fault("is neither 0 nor 1")),
        };
        let volume = task(fields.next("VolumeID")?)?;
        fields.end()?;
        self.volumes.meet(volume);
        Ok(request(address, size, kind, volume, time))
    }

    fn columns(&self) -> Columns {
        COLUMNS
    }

    fn tasks(&self) -> Vec<Task> {
        self.volumes.tasks("volume")
    }
}
