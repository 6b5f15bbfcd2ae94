//! Block traces of Microsoft Research Cambridge, one host a file.
//!
//! ```text
//! Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime    100 ns since 1601, bytes, Read or Write
//! ```
//! Requests that reach a disk have passed a page cache, so such traces show the misses of a memory of unknown size.
//! They are marked `block-only`. A disk is a task with its own address space. For block traces in other columns see
//! `csv.rs`.

use super::fields::{fault, Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge block trace, one host a file",
    example: "msr:src1_0.csv.gz",
    fidelity: Fidelity::BlockOnly,
    skips: "header lines, blank lines",
    takes: &[],
    guess: Some(|head| text::looks_like(Msr::default(), head)),
    open: text::open::<Msr>,
};

const LAYOUT: &str =
    "a line is Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime with times of 100 ns and Type Read \
                      or Write";
/// Windows counts 100 ns.
const FILETIME_PS: u64 = 100_000;

#[derive(Default)]
struct Msr {
    begun: bool,
    /// The host of the first line. Disk 0 of one host is not disk 0 of another.
    host: Vec<u8>,
}

impl Parse for Msr {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Skip);
        }
        if !std::mem::replace(&mut self.begun, true) && line[0].is_ascii_alphabetic() {
            return Ok(Parsed::Skip);
        }
        let mut fields = Fields::new(line, Separator::Byte(b','), LAYOUT);
        let time = fields.next("Timestamp")?.nanoseconds(FILETIME_PS)?;
        let host = fields.next("Hostname")?;
        if self.host.is_empty() {
            self.host = host.text.to_vec();
        } else if self.host != host.text {
            let remedy = "import each host's lines by themselves and join them with `coldframe-lab trace merge`";
            return Err(fault("Hostname", host.span(), "a second host in one file".into(), remedy));
        }
        let disk = fields.next("DiskNumber")?.number(u64::from(u32::MAX))? as u32;
        let kind = fields.next("Type")?;
        let kind = match kind.text {
            b"Read" => Kind::Read,
            b"Write" => Kind::Write,
            _ => return Err(kind.fault("is neither Read nor Write")),
        };
        let address = fields.next("Offset")?.number(u64::MAX)?;
        let size = fields.next("Size")?.size(1)?;
        fields.next("ResponseTime")?.number(u64::MAX)?;
        fields.end()?;
        tasks.meet_number(disk, || format!("{} disk", String::from_utf8_lossy(&self.host)));
        match size {
            0 => Ok(Parsed::Skip),
            _ => Ok(Parsed::Request(Reference { task: disk, time, ..Reference::new(address, size, kind) })),
        }
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }
}
