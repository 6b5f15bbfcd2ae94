//! The header of libCacheSim's own format, lcs.
//!
//! ```text
//!    0 u64 magic 0x123456789abcdef0            8 char format[240]: a Python struct string, as in `<IQI`
//!  248 u8 field numbers, from 1, 0 if absent: id, size, time, last, next, operation, ttl, tenant, content; 231 reserved
//!  488 i64 requests, objects, bytes of both; 60 spare                            1000 u32 fields, u32 bytes of a record
//! 1008 u64 version    1016 u64 magic
//! ```

use super::cachesim::{self, Layout, ORACLE};
use super::lines::Fault;
use super::options::Options;
use super::records::{flaw, Records};
use super::{le, Format, Input, RowReader};
use coldframe_store::error::TraceError;

pub(super) const FORMAT: Format = Format {
    name: "lcs",
    summary: "libCacheSim lcs, records as its header says; needs --unit address=...",
    example: "lcs:trace.lcs.zst  (with --unit address=4KiB --number-objects)",
    guess: Some(|head| head.len() >= 8 && le::<8>(head, 0) == MAGIC),
    open,
    ..ORACLE
};

const HEAD: usize = 1024;
const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// Most bytes of a record; the widest of libCacheSim's own are below 100.
const RECORD_MAX: usize = 4096;
const REMEDY: &str = "this is no whole lcs trace: convert it again with libCacheSim's traceConv";

fn open(input: Input, options: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    let mut records = Records::new(input.stream()?);
    let head = records.peek(HEAD)?;
    let layout = layout(head).map_err(|flaw| records.bad(*flaw))?;
    records.take(HEAD)?;
    cachesim::open(records, layout, options, "lcs")
}

fn layout(head: &[u8]) -> Result<Layout, Box<Fault>> {
    if head.len() < HEAD || le::<8>(head, 0) != MAGIC || le::<8>(head, HEAD - 8) != MAGIC {
        return Err(flaw("magic", "not an lcs header of 1024 bytes".into(), REMEDY));
    }
    let format = head[8..248].split(|byte| *byte == 0).next().unwrap_or_default();
    let places = places(format)?;
    let length = le::<4>(head, 1004) as usize;
    let end = places.last().map_or(0, |(at, bytes)| at + bytes);
    if end != length || !(1..=RECORD_MAX).contains(&length) {
        let found = format!("{length} bytes, but the fields take {end}");
        return Err(flaw("record size", found, REMEDY));
    }
    let place = |index: usize, field: &'static str| match usize::from(head[248 + index]) {
        0 => Ok(None),
        number => match places.get(number - 1) {
            Some(place) => Ok(Some(*place)),
            None => Err(flaw(field, format!("field {number} of {}", places.len()), REMEDY)),
        },
    };
    let needed = |index, field| place(index, field)?.ok_or_else(|| flaw(field, "absent".into(), REMEDY));
    Ok(Layout {
        length,
        id: needed(0, "id")?,
        size: needed(1, "size")?,
        time: needed(2, "time")?,
        operation: place(5, "operation")?,
    })
}

/// Where each field of a Python struct string is; `<` means packed.
fn places(format: &[u8]) -> Result<Vec<(usize, usize)>, Box<Fault>> {
    let codes = format.strip_prefix(b"<").unwrap_or(format);
    let mut at = 0;
    codes
        .iter()
        .map(|code| {
            let bytes = match code {
                b'b' | b'B' => 1,
                b'h' | b'H' => 2,
                b'i' | b'I' | b'l' | b'L' => 4,
                b'q' | b'Q' => 8,
                _ => return Err(flaw("format", format!("`{}`, no integer", *code as char), REMEDY)),
            };
            at += bytes;
            Ok((at - bytes, bytes))
        })
        .collect()
}
