//! DynamoRIO's drmemtrace, trace versions 2 to 7, of 64-bit programs.
//!
//! ```text
//! record of 12 bytes   u16 type   u16 size   u64 value      little-endian, packed (`trace_entry.h`)
//! ```
//! Name a `drmemtrace.trace.gz`, or one thread's `*.memtrace.zip` (its members are parts of one stream); `trace merge`
//! joins the threads by their time stamps. DynamoRIO's maintainers do not promise that this form stays, so other
//! versions are refused. Prefetches, flushes, encodings and instructions that were not fetched are no accesses, and are
//! skipped.

use super::lines::Fault;
use super::records::{flaw, Binary, Decode};
use super::tasks::Tasks;
use super::{le, Format};
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "drmemtrace",
    summary:
        "DynamoRIO drmemtrace: a trace.gz or a thread's memtrace.zip (`trace merge` joins threads); versions 2 to 7",
    example: "drmemtrace:drmemtrace.app.1234.memtrace.zip",
    fidelity: Fidelity::ExactReferences,
    skips: "prefetches, flushes, markers, encodings, headers",
    takes: &[],
    guess: Some(|head| {
        head.len() >= Drmemtrace::RECORD && le::<2>(head, 0) == HEADER && VERSIONS.contains(&le::<8>(head, 4))
    }),
    open: |input, _| Ok(Binary::boxed(input.stream_or_members()?, Drmemtrace::default())),
};

const VERSIONS: std::ops::RangeInclusive<u64> = 2..=7;

// Types, as in `trace_entry.h`.
const READ: u64 = 0;
const WRITE: u64 = 1;
const BUNDLE: u64 = 17;
const THREAD: u64 = 22;
const PID: u64 = 24;
const HEADER: u64 = 25;
const MARKER: u64 = 28;
const SYSENTER: u64 = 31;
const TYPE_MAX: u64 = 64;
// Marker sub-types.
const TIMESTAMP: u64 = 2;
const FILE_TYPE: u64 = 9;
/// Bits of the file type: accesses that hit a cache while recording are missing: `OFFLINE_FILE_TYPE_FILTERED` 0x1 of
/// old files, `_IFILTERED` 0x80, `_DFILTERED` 0x100 (DynamoRIO, `clients/drcachesim/common/trace_entry.h`).
const FILTERED: u64 = 0x1 | 0x80 | 0x100;

const REMEDY: &str =
    "print the trace with DynamoRIO's view tool, or record with a DynamoRIO whose trace version is 2 to 7";

#[derive(Default)]
struct Drmemtrace {
    started: bool,
    thread: u32,
    process: u32,
    /// Nanoseconds of the last time stamp.
    time: u64,
    /// Where the next instruction of a bundle begins.
    next: u64,
    filtered: bool,
}

impl Drmemtrace {
    fn access(&self, address: u64, size: u64, kind: Kind) -> Reference {
        Reference { task: self.thread, time: self.time, ..Reference::new(address, size as u32, kind) }
    }

    fn header(&mut self, kind: u64, version: u64) -> Result<(), Box<Fault>> {
        if kind != HEADER {
            let found = format!("type {kind}, where the header (type {HEADER}) belongs");
            return Err(flaw("header", found, "name a *.memtrace.zip or a drmemtrace.trace.gz, not a raw file"));
        }
        if !VERSIONS.contains(&version) {
            return Err(flaw("version", format!("{version}; known are 2 to 7"), REMEDY));
        }
        self.started = true;
        Ok(())
    }

    /// Instructions that follow the last one, a byte of length each.
    fn bundle(&mut self, count: u64, lengths: u64, out: &mut Vec<Reference>) -> Result<(), Box<Fault>> {
        let lengths = lengths.to_le_bytes();
        let Some(lengths) = lengths.get(..count as usize) else {
            return Err(flaw("bundle", format!("{count} instructions, but a bundle holds 8"), REMEDY));
        };
        for length in lengths {
            out.push(self.access(self.next, u64::from(*length), Kind::Fetch));
            self.next = self.next.wrapping_add(u64::from(*length));
        }
        Ok(())
    }

    fn identity(&mut self, kind: u64, value: u64, tasks: &mut Tasks) -> Result<(), Box<Fault>> {
        let number = u32::try_from(value).map_err(|_| flaw("thread", format!("{value}, more than 32 bits"), REMEDY))?;
        match kind {
            PID => self.process = number,
            _ => self.thread = number,
        }
        let name = format!("thread {}", self.thread);
        if kind == PID || self.process != 0 {
            tasks.meet(self.thread, self.process, name.as_bytes());
        }
        Ok(())
    }

    fn marker(&mut self, kind: u64, value: u64) -> Result<(), Box<Fault>> {
        match kind {
            TIMESTAMP => {
                let time = value.checked_mul(1000);
                self.time =
                    time.ok_or_else(|| flaw("time stamp", format!("{value} us, more than 64 bits of ns"), REMEDY))?;
            }
            FILE_TYPE => self.filtered |= value & FILTERED != 0,
            _ => {}
        }
        Ok(())
    }
}

impl Decode for Drmemtrace {
    const RECORD: usize = 12;

    fn next(&mut self, record: &[u8], out: &mut Vec<Reference>, tasks: &mut Tasks) -> Result<(), Box<Fault>> {
        let (kind, size, value) = (le::<2>(record, 0), le::<2>(record, 2), le::<8>(record, 4));
        if !self.started {
            return self.header(kind, value);
        }
        match kind {
            READ => out.push(self.access(value, size, Kind::Read)),
            WRITE => out.push(self.access(value, size, Kind::Write)),
            10..=16 | 48 | 49 | SYSENTER => {
                self.next = value.wrapping_add(size);
                out.push(self.access(value, size, Kind::Fetch));
            }
            BUNDLE => self.bundle(size, value, out)?,
            THREAD | PID => self.identity(kind, value, tasks)?,
            HEADER => self.header(kind, value)?,
            MARKER => self.marker(size, value)?,
            _ if kind < TYPE_MAX => {}
            _ => return Err(flaw("type", format!("{kind}, which no known version has"), REMEDY)),
        }
        Ok(())
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }

    fn notes(&self) -> Vec<String> {
        let note = "the recorder left out accesses that hit its cache filter: counts of references are too low";
        self.filtered.then(|| note.to_owned()).into_iter().collect()
    }
}
