//! fio's iolog, versions 2 and 3, as `write_iolog` writes them (checked with fio 3.33).
//!
//! ```text
//! fio version 3 iolog
//! 26 /dev/loop0 add             microseconds, file, action
//! 175 /dev/loop0 write 0 4096   ... and offset and length in bytes
//! ```
//! Version 2 has no timestamps; its `wait` lines give pauses in microseconds, from which its clock is made. Each file
//! is a task. The log has the requests that fio made, whether or not a page cache answered them.

use rustc_hash::FxHashMap;

use super::fields::{Field, Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "fio",
    summary: "fio iolog, version 2 or 3",
    example: "fio:job.log  (fio --write_iolog=job.log JOB)",
    fidelity: Fidelity::BlockOnly,
    skips: "add, open, close, sync and trim lines",
    takes: &[],
    guess: Some(|head| head.starts_with(b"fio version ")),
    open: text::open::<Fio>,
};

const LAYOUT: &str =
    "a line is [MICROSECONDS] FILE ACTION [OFFSET LENGTH] after `fio version 2 iolog` or `fio version 3 iolog`; \
                      write the log again with fio's write_iolog";
const MICROSECOND_PS: u64 = 1_000_000;
const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;
/// Most files of one log.
const FILES_MAX: usize = 1 << 16;

#[derive(Default)]
struct Fio {
    /// 2 or 3 once the first line is read.
    version: u8,
    /// Nanoseconds of version 2's waits so far.
    waited: u64,
    files: FxHashMap<Vec<u8>, u32>,
}

impl Parse for Fio {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        if self.version == 0 {
            return self.first(line);
        }
        let Some(first) = fields.optional("timestamp") else { return Ok(Parsed::Skip) };
        let (time, file) = match self.version {
            2 => (self.waited, first),
            _ => (first.nanoseconds(MICROSECOND_PS)?, fields.next("file")?),
        };
        let action = fields.next("action")?;
        let kind = match action.text {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"wait" if self.version == 2 => return self.wait(fields.next("offset")?),
            b"add" | b"open" | b"close" | b"sync" | b"datasync" | b"trim" => return Ok(Parsed::Skip),
            _ => return Err(action.fault("is no action of an iolog")),
        };
        let address = fields.next("offset")?.number(u64::MAX)?;
        let size = fields.next("length")?.size(1)?;
        fields.end()?;
        let task = self.file(file, tasks)?;
        Ok(Parsed::Request(Reference { task, time, ..Reference::new(address, size, kind) }))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }
}

impl Fio {
    fn first(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        self.version = match line {
            b"fio version 2 iolog" => 2,
            b"fio version 3 iolog" => 3,
            _ => {
                let problem = format!("{}, not an iolog of version 2 or 3", text::shown(line));
                return Err(super::fields::fault("version", 0..line.len(), problem, LAYOUT));
            }
        };
        Ok(Parsed::Skip)
    }

    fn wait(&mut self, pause: Field<'_>) -> Result<Parsed, Box<Fault>> {
        let ns = pause.number(u64::MAX)?.checked_mul(NANOSECONDS_PER_MICROSECOND);
        let waited = ns.and_then(|ns| self.waited.checked_add(ns));
        self.waited = waited.ok_or_else(|| pause.fault("makes the clock run over"))?;
        Ok(Parsed::Skip)
    }

    fn file(&mut self, file: Field<'_>, tasks: &mut Tasks) -> Result<u32, Box<Fault>> {
        if let Some(id) = self.files.get(file.text) {
            return Ok(*id);
        }
        if self.files.len() == FILES_MAX {
            return Err(file.fault("is one file too many (65536)"));
        }
        let id = self.files.len() as u32;
        self.files.insert(file.text.to_vec(), id);
        tasks.meet(id, id, file.text);
        Ok(id)
    }
}
