//! Block traces of storage studies and SSD simulators: one request a line, in fields whose order a [`Layout`] says.
//!
//! ```text
//! msr      Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime   100 ns since 1601, bytes, Read or Write
//! spc      ASU,LBA,Size,Opcode,Timestamp[,...]                           sectors of 512 B, bytes, r or w, seconds
//! alibaba  device_id,opcode,offset,length,timestamp                      bytes, R or W, microseconds
//! tencent  Timestamp,Offset,Size,IOType,VolumeID                         seconds, sectors of 512 B, 0 read 1 write
//! mqsim    arrival device lba size type                                  sectors of 512 B, 0 write 1 read
//! ```
//! Requests that reach a disk have passed a page cache, so such traces show the misses of a memory of unknown size.
//! They are marked `block-only`. A device, disk or volume is a task with its own address space. The unit of mqsim's
//! arrival is in the simulator's configuration and not in the trace, so it must be declared.

use super::fields::{Field, Fields, Separator};
use super::lines::Fault;
use super::options::{Options, UNIT_TIME};
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::{Format, Input, RowReader};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const MSR: Format = Format {
    name: "msr",
    summary: "MSR Cambridge block trace, one host a file",
    example: "msr:src1_0.csv.gz",
    fidelity: Fidelity::BlockOnly,
    skips: "header lines, blank lines",
    takes: &[],
    guess: Some(|head| text::looks_like(Volumes::new(&MSR_LAYOUT), head)),
    open: |input, options| open(input, options, &MSR_LAYOUT),
};
pub(super) const SPC: Format = Format {
    name: "spc",
    summary: "SPC (UMass) block trace: ASU, LBA of 512 bytes, size, opcode, seconds",
    example: "spc:Financial1.spc.bz2",
    guess: None,
    open: |input: Input, options: &Options| open(input, options, &SPC_LAYOUT),
    ..MSR
};
pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    summary: "Alibaba Cloud 2020 block trace: device, opcode, offset, length, microseconds",
    example: "alibaba:io_traces.csv",
    open: |input: Input, options: &Options| open(input, options, &ALIBABA_LAYOUT),
    ..SPC
};
pub(super) const TENCENT: Format = Format {
    name: "tencent",
    summary: "Tencent CBS block trace: seconds, offset and size in sectors of 512 bytes, type, volume",
    example: "tencent:atc_2020_trace/trace_1.csv",
    open: |input: Input, options: &Options| open(input, options, &TENCENT_LAYOUT),
    ..SPC
};
pub(super) const MQSIM: Format = Format {
    name: "mqsim",
    summary:
        "MQSim / DiskSim text: arrival, device, LBA, sectors of 512 bytes, 0 write or 1 read; needs --unit time=...",
    example: "mqsim:trace.txt  (with --unit time=ns, or what the simulator's configuration says)",
    skips: "blank lines",
    takes: &[UNIT_TIME],
    open: |input: Input, options: &Options| open(input, options, &MQSIM_LAYOUT),
    ..SPC
};

/// How a format's lines are laid out.
struct Layout {
    /// Commas between fields; the first line may be a header, and requests of no bytes are skipped. Otherwise blanks.
    commas: bool,
    /// The fields of a line, with their names in messages.
    fields: &'static [(&'static str, What)],
    /// Further fields are ignored.
    more: bool,
    /// The layout in words, as the remedy of all faults.
    words: &'static str,
    /// What a task is.
    task: &'static str,
}

/// The content of a field.
enum What {
    /// A time in ticks of this many picoseconds.
    Time(u64),
    /// A time in ticks that the user declares.
    Declared,
    Task,
    /// First byte, in units of this many bytes.
    Address(u64),
    /// Bytes, in the same way.
    Size(u64),
    /// One of these words. The first two are named in messages.
    Kind(&'static [(&'static [u8], Kind)]),
    /// The same in the whole file: disk 0 of one host is not disk 0 of another.
    Host,
    /// A number that is not used.
    Number,
}

const SECTOR: u64 = 512;
const SECOND_PS: u64 = 1_000_000_000_000;
const MICROSECOND_PS: u64 = 1_000_000;
/// Windows counts 100 ns.
const FILETIME_PS: u64 = 100_000;
const LETTERS: What = What::Kind(&[(b"r", Kind::Read), (b"w", Kind::Write), (b"R", Kind::Read), (b"W", Kind::Write)]);

const MSR_LAYOUT: Layout = Layout {
    commas: true,
    fields: &[
        ("Timestamp", What::Time(FILETIME_PS)),
        ("Hostname", What::Host),
        ("DiskNumber", What::Task),
        ("Type", What::Kind(&[(b"Read", Kind::Read), (b"Write", Kind::Write)])),
        ("Offset", What::Address(1)),
        ("Size", What::Size(1)),
        ("ResponseTime", What::Number),
    ],
    more: false,
    words: "a line is Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime with times of 100 ns and Type Read \
            or Write",
    task: "disk",
};
const SPC_LAYOUT: Layout = Layout {
    fields: &[
        ("ASU", What::Task),
        ("LBA", What::Address(SECTOR)),
        ("Size", What::Size(1)),
        ("Opcode", LETTERS),
        ("Timestamp", What::Time(SECOND_PS)),
    ],
    more: true,
    words:
        "a line is ASU,LBA,Size,Opcode,Timestamp with LBA in sectors of 512 bytes, Size in bytes, r or w, and seconds",
    task: "ASU",
    ..MSR_LAYOUT
};
const ALIBABA_LAYOUT: Layout = Layout {
    fields: &[
        ("device_id", What::Task),
        ("opcode", LETTERS),
        ("offset", What::Address(1)),
        ("length", What::Size(1)),
        ("timestamp", What::Time(MICROSECOND_PS)),
    ],
    words: "a line is device_id,opcode,offset,length,timestamp with R or W, bytes, and microseconds",
    task: "device",
    ..MSR_LAYOUT
};
const TENCENT_LAYOUT: Layout = Layout {
    fields: &[
        ("Timestamp", What::Time(SECOND_PS)),
        ("Offset", What::Address(SECTOR)),
        ("Size", What::Size(SECTOR)),
        ("IOType", What::Kind(&[(b"0", Kind::Read), (b"1", Kind::Write)])),
        ("VolumeID", What::Task),
    ],
    words:
        "a line is Timestamp,Offset,Size,IOType,VolumeID with seconds, sectors of 512 bytes, and IOType 0 (read) or \
            1 (write)",
    task: "volume",
    ..MSR_LAYOUT
};
const MQSIM_LAYOUT: Layout = Layout {
    commas: false,
    fields: &[
        ("arrival", What::Declared),
        ("device", What::Task),
        ("lba", What::Address(SECTOR)),
        ("size", What::Size(SECTOR)),
        ("type", What::Kind(&[(b"0", Kind::Write), (b"1", Kind::Read)])),
    ],
    words: "a line is ARRIVAL DEVICE LBA SIZE TYPE with sectors of 512 bytes and TYPE 0 (write) or 1 (read)",
    task: "device",
    ..MSR_LAYOUT
};

struct Volumes {
    layout: &'static Layout,
    time_ps: u64,
    begun: bool,
    /// The host, and a blank behind it.
    host: Vec<u8>,
}

fn open(input: Input, options: &Options, layout: &'static Layout) -> Result<Box<dyn RowReader>, TraceError> {
    let stream = input.stream()?;
    let time_ps = if layout.commas { 0 } else { options.time_unit("mqsim")? };
    Ok(text::read(stream, options, Volumes { time_ps, ..Volumes::new(layout) }))
}

impl Parse for Volumes {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let layout = self.layout;
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Skip);
        }
        let first = !std::mem::replace(&mut self.begun, true);
        if layout.commas && first && line[0].is_ascii_alphabetic() {
            return Ok(Parsed::Skip);
        }
        let separator = if layout.commas { Separator::Byte(b',') } else { Separator::Blanks };
        let mut fields = Fields::new(line, separator, layout.words);
        let mut row = Reference::new(0, 0, Kind::Read);
        for (name, what) in layout.fields {
            let field = fields.next(name)?;
            match what {
                What::Time(ps) => row.time = field.nanoseconds(*ps)?,
                What::Declared => row.time = field.nanoseconds(self.time_ps)?,
                What::Task => row.task = field.number(u64::from(u32::MAX))? as u32,
                What::Address(unit) => row.address = field.scaled(*unit)?,
                What::Size(unit) => row.size = field.size(*unit)?,
                What::Kind(words) => row.kind = kind(field, words)?,
                What::Host => self.same_host(field)?,
                What::Number => drop(field.number(u64::MAX)?),
            }
        }
        if !layout.more {
            fields.end()?;
        }
        tasks.meet_number(row.task, || format!("{}{}", String::from_utf8_lossy(&self.host), layout.task));
        Ok(if layout.commas && row.size == 0 { Parsed::Skip } else { Parsed::Request(row) })
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }
}

impl Volumes {
    fn new(layout: &'static Layout) -> Volumes {
        Volumes { layout, time_ps: 0, begun: false, host: Vec::new() }
    }

    fn same_host(&mut self, field: Field<'_>) -> Result<(), Box<Fault>> {
        if self.host.is_empty() {
            self.host = [field.text, b" "].concat();
        }
        match self.host.strip_suffix(b" ") == Some(field.text) {
            true => Ok(()),
            false => Err(Box::new(Fault {
                field: "Hostname",
                span: field.span(),
                found: "a second host in one file".into(),
                remedy: "import each host's lines by themselves and join them with `coldframe-lab trace merge`",
            })),
        }
    }
}

fn kind(field: Field<'_>, words: &[(&[u8], Kind)]) -> Result<Kind, Box<Fault>> {
    let shown = |at: usize| String::from_utf8_lossy(words[at].0);
    let known = words.iter().find(|(word, _)| *word == field.text);
    known.map(|(_, kind)| *kind).ok_or_else(|| field.fault(&format!("is neither {} nor {}", shown(0), shown(1))))
}
