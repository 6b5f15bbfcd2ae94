//! DAMON's samples as damo writes them: JSON, or `json_compressed`, which is zlib of it.
//!
//! ```text
//! [{target_id, snapshots: [{start_time, end_time, regions: [{start, end, nr_accesses: {samples, percent}, age}]}]}]
//! ```
//! Numbers may be strings with commas between thousands. Times are nanoseconds; a snapshot's rows have its end time.
//! The whole text is in memory, so its size is limited.

use std::io::Read;

use serde::Deserialize;
use serde_json::Value;

use super::input::Stream;
use super::options::Options;
use super::tasks::Tasks;
use super::time::Clock;
use super::{Facts, Format, Input, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::{printable, BadLine, TraceError};
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};
use coldframe_store::store::SIZE_MAX;

pub(super) const FORMAT: Format = Format {
    name: "damon",
    summary: "DAMON samples as damo's json or json_compressed",
    example: "damon:damon.data",
    fidelity: Fidelity::Sampled,
    skips: "regions without accesses",
    takes: &[],
    guess: Some(|head| memchr::memmem::find(head, b"\"snapshots\"").is_some()),
    open,
};

const NOTE: &str =
    "samples of regions: a row is a read of a whole region, counted as often as a sample met an access in it";

/// Most bytes of JSON text: some 2 million regions.
const TEXT_MAX: u64 = 256 << 20;
const REMEDY: &str = "write the record again with damo's json or json_compressed";

#[derive(Deserialize)]
struct Target {
    target_id: Value,
    snapshots: Vec<Snapshot>,
}

#[derive(Deserialize)]
struct Snapshot {
    end_time: Value,
    regions: Vec<Region>,
}

#[derive(Deserialize)]
struct Region {
    start: Value,
    end: Value,
    nr_accesses: Accesses,
}

#[derive(Deserialize)]
struct Accesses {
    samples: Value,
}

/// Rows, all of them held: a region is a row, or some if it is larger than a row can be.
struct Json {
    rows: Vec<Reference>,
    taken: usize,
    skipped: u64,
    regions: u64,
    tasks: Tasks,
    clock: Clock,
    stream: Stream,
}

fn open(input: Input, _: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    let mut stream = input.stream()?;
    let text = text(&mut stream)?;
    let targets: Vec<Target> = serde_json::from_slice(&text).map_err(|error| bad_json(&stream, &text, &error))?;
    let (tasks, clock) = (Tasks::default(), Clock::default());
    let mut json = Json { rows: Vec::new(), taken: 0, skipped: 0, regions: 0, tasks, clock, stream };
    for target in &targets {
        json.target(target)?;
    }
    json.rows.sort_by_key(|row| row.time);
    Ok(Box::new(json))
}

/// The JSON text, unpacked if it begins as zlib data do (RFC 1950: 0x78 and a multiple of 31).
fn text(stream: &mut Stream) -> Result<Vec<u8>, TraceError> {
    let raw = stream.read_all(TEXT_MAX, REMEDY)?;
    if !raw.starts_with(&[0x78]) {
        return Ok(raw);
    }
    let mut text = Vec::new();
    let decoder = flate2::read::ZlibDecoder::new(&raw[..]);
    let read = decoder.take(TEXT_MAX + 1).read_to_end(&mut text);
    match read {
        Ok(bytes) if bytes as u64 <= TEXT_MAX => Ok(text),
        other => Err(TraceError::Compressed {
            path: stream.name().to_owned(),
            format: "zlib",
            byte: text.len() as u64,
            problem: other.map_or_else(|error| error.to_string(), |_| format!("more than {TEXT_MAX} bytes of JSON")),
            remedy: REMEDY.into(),
        }),
    }
}

fn bad_json(stream: &Stream, text: &[u8], error: &serde_json::Error) -> TraceError {
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    // A file may be one line; what is shown begins a little before the fault.
    let column = error.column().saturating_sub(1).min(line.len());
    let from = column.saturating_sub(60);
    let shown = printable(&line[from..]);
    let offset = (column - from).min(shown.len());
    TraceError::Line(Box::new(BadLine {
        path: stream.name().to_owned(),
        line: error.line() as u64,
        offset,
        len: usize::from(offset < shown.len()),
        text: shown,
        field: "json",
        problem: error.to_string(),
        remedy: REMEDY.into(),
    }))
}

impl Json {
    fn target(&mut self, target: &Target) -> Result<(), TraceError> {
        let id = self.number(&target.target_id, "target_id")? as u32;
        self.tasks.meet(id, id, b"DAMON target");
        for snapshot in &target.snapshots {
            let time = self.number(&snapshot.end_time, "end_time")?;
            for region in &snapshot.regions {
                self.region(id, time, region)?;
            }
        }
        Ok(())
    }

    fn region(&mut self, task: u32, time: u64, region: &Region) -> Result<(), TraceError> {
        let (start, end) = (self.number(&region.start, "start")?, self.number(&region.end, "end")?);
        let count = self.number(&region.nr_accesses.samples, "nr_accesses.samples")?;
        self.regions += 1;
        let count = u32::try_from(count).map_err(|_| self.bad("nr_accesses.samples", format!("{count}")))?;
        if start >= end || end - start > 1 << 40 {
            return Err(self.bad("region", format!("{start} to {end}, not 1 byte to 1 TiB")));
        }
        self.skipped += u64::from(count == 0);
        let mut at = start;
        while at < end && count > 0 {
            let size = (end - at).min(u64::from(SIZE_MAX));
            self.rows.push(Reference { task, time, count, ..Reference::new(at, size as u32, Kind::Read) });
            at += size;
        }
        Ok(())
    }

    /// A number, or a string of one with commas.
    fn number(&self, value: &Value, field: &'static str) -> Result<u64, TraceError> {
        let number = match value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => super::fields::decimal(text.replace(',', "").as_bytes()),
            _ => None,
        };
        number.ok_or_else(|| self.bad(field, format!("{value}, not a whole number")))
    }

    fn bad(&self, field: &'static str, problem: String) -> TraceError {
        let path = self.stream.name().to_owned();
        TraceError::Record { path, record: self.regions, byte: 0, field, problem, remedy: REMEDY.into() }
    }
}

impl RowReader for Json {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let columns = self.columns();
        let rows = block.capacity().min(self.rows.len() - self.taken);
        for row in &self.rows[self.taken..self.taken + rows] {
            block.push_request(Reference { time: self.clock.since_start(row.time), ..*row }, columns);
        }
        self.taken += rows;
        Ok(block.end_requests(columns))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: true, task: true }
    }

    fn progress(&self) -> Progress {
        self.stream.progress(self.regions, self.skipped)
    }

    fn facts(&self) -> Facts {
        let notes = vec![NOTE.to_owned()];
        Facts { started: self.clock.start(), tasks: self.tasks.list(), notes, ..Facts::default() }
    }
}
