//! Swap traces: what a kernel swapped out and in, as CSV with a header, one row an event.
//!
//! ```text
//! ts_ns,op,slot,pid,vpn,type,flag         columns in any order; op and slot are required; other columns are ignored
//! 1290240,out,17,28009,b2e23,heap,a
//! ```
//!
//! | op | meaning |
//! |---|---|
//! | `out` | the page is written to its slot; an older copy in the slot is dead |
//! | `in` | the slot is read: flag `d` asked for, `r` read ahead, none not known. It is not freed by this |
//! | `evict` | the page leaves RAM and exists in swap only: flag `w` after a write, `c` clean |
//! | `fault` | a task touches a page that has left its page table: flag `M` it waited for a read, `m` not; `w` for a write |
//! | `free` | the slot is free: flag `x` by an exit |
//! | `alive` `fork` `exec` `exit` `mark` | about processes: skipped and counted |
//!
//! A slot number names the copy in the slot until the slot is freed. The whole trace is held in memory, 32 bytes for
//! each event.

use std::path::Path;

use super::input::Input;
use super::lines::{Fault, Lines};
use super::text::{hex, shown};
use coldframe_store::error::{TraceError, TEXT_MAX};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapOp {
    /// A page is written to its slot.
    Out,
    In,
    /// The page leaves RAM.
    Evict,
    /// The page is touched.
    Fault,
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapEvent {
    /// Nanoseconds from the start of the recording; 0 if the trace does not tell.
    pub time_ns: u64,
    /// Page number in the owner's memory; 0 if not known.
    pub page_number: u64,
    pub slot: u32,
    /// Owner of the page; 0 if not known.
    pub pid: u32,
    pub op: SwapOp,
    /// First letter of the flag; 0 if there is none.
    pub flag: u8,
    /// First three letters of the type, zero-padded.
    pub kind: [u8; 3],
}

#[derive(Clone, Debug, Default)]
pub struct SwapTrace {
    /// Its events, in order.
    pub events: Vec<SwapEvent>,
    /// Rows about processes.
    pub skipped: u64,
    /// Its recorder's notes on its limits: marks that begin with `fidelity: `.
    pub notes: Vec<String>,
}

/// Largest slot number: 64 GiB of swap in pages of 4 KiB.
pub const SLOT_MAX: u32 = (1 << 24) - 1;

impl SwapTrace {
    /// One more than the largest slot number.
    pub fn slots(&self) -> usize {
        self.events.iter().map(|e| e.slot as usize + 1).max().unwrap_or(0)
    }

    pub fn has(&self, op: SwapOp) -> bool {
        self.events.iter().any(|e| e.op == op)
    }

    /// Nanoseconds from the first event to the last.
    pub fn duration_ns(&self) -> u64 {
        match (self.events.first(), self.events.last()) {
            (Some(first), Some(last)) => last.time_ns.saturating_sub(first.time_ns),
            _ => 0,
        }
    }
}

/// Whether a text begins with the header of a swap trace.
pub(super) fn looks_like(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Header::parse(line.strip_suffix(b"\r").unwrap_or(line)).is_ok()
}

/// Reads a swap trace from a file, decompressed if need be.
///
/// # Errors
/// The file cannot be read, or a line is not as the format says; the error has line, field and remedy.
pub fn read(path: &Path) -> Result<SwapTrace, TraceError> {
    read_input(Input::Path(path.to_path_buf()))
}

/// Reads a swap trace.
///
/// # Errors
/// As [`read`].
pub fn read_input(input: Input) -> Result<SwapTrace, TraceError> {
    let path = input.name().to_owned();
    let mut lines = Lines::new(input.stream()?);
    let header = match lines.next()? {
        Some(line) => Header::parse(lines.line(line.clone())).map_err(|fault| lines.bad(&line, fault))?,
        None => return Err(empty(path, 0, 0)),
    };
    let mut trace = SwapTrace::default();
    let mut before = 0;
    while let Some(line) = lines.next()? {
        match header.row(lines.line(line.clone()), before) {
            Ok(Some(event)) => {
                before = event.time_ns;
                trace.events.push(event);
            }
            Ok(None) => {
                trace.skipped += 1;
                trace.notes.extend(limits(lines.line(line.clone())).filter(|_| trace.notes.len() < NOTES_MAX));
            }
            Err(fault) => return Err(lines.bad(&line, fault)),
        }
    }
    if trace.events.is_empty() {
        return Err(empty(path, lines.number(), trace.skipped));
    }
    Ok(trace)
}

/// Most notes kept of a trace.
const NOTES_MAX: usize = 16;

/// A recorder's note on the trace's limits, in a mark.
fn limits(line: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"fidelity: ";
    let at = memchr::memmem::find(line, MARK)?;
    Some(String::from_utf8_lossy(&line[at + MARK.len()..]).trim_end().chars().take(TEXT_MAX).collect())
}

fn empty(path: std::path::PathBuf, lines: u64, skipped: u64) -> TraceError {
    let remedy = "a swap trace has rows with op out, in, evict, fault or free; check the path".into();
    TraceError::Empty { path, lines, skipped, remedy }
}

/// Where each column that we use stands.
struct Header {
    op: usize,
    slot: usize,
    time: Option<usize>,
    pid: Option<usize>,
    page: Option<usize>,
    kind: Option<usize>,
    flag: Option<usize>,
    columns: usize,
}

const COLUMNS_MAX: usize = 64;

const HEADER_REMEDY: &str =
    "the first line names the columns, with op and slot among them: ts_ns,op,slot,pid,vpn,type,flag";
const OP_REMEDY: &str = "an op is out, in, evict, fault or free, or alive, fork, exec, exit or mark (skipped)";
const SLOT_REMEDY: &str = "a slot is a whole number from 0 to 16777215";
const TIME_REMEDY: &str = "ts_ns is a whole number of nanoseconds and never falls; sort the rows by it";
const PID_REMEDY: &str = "a pid is a whole number below 2^32, or empty";
const PAGE_REMEDY: &str = "a page number has 1 to 16 hexadecimal digits without 0x, or is empty";
const COLUMNS_REMEDY: &str = "a row has as many fields as the header; quotes are not known";

impl Header {
    fn parse(line: &[u8]) -> Result<Header, Fault> {
        let names: Vec<&[u8]> = line.split(|b| *b == b',').collect();
        let find = |name: &str| names.iter().position(|n| *n == name.as_bytes());
        let fault = |found: String| Fault { field: "header", span: 0..line.len(), found, remedy: HEADER_REMEDY };
        let must = |name: &str| find(name).ok_or_else(|| fault(format!("no column `{name}`")));
        if names.len() > COLUMNS_MAX {
            return Err(fault(format!("{} columns, more than {COLUMNS_MAX}", names.len())));
        }
        Ok(Header {
            op: must("op")?,
            slot: must("slot")?,
            time: find("ts_ns"),
            pid: find("pid"),
            page: find("vpn"),
            kind: find("type"),
            flag: find("flag"),
            columns: names.len(),
        })
    }

    /// The event of a line; `None` for one about a process.
    fn row(&self, line: &[u8], before: u64) -> Result<Option<SwapEvent>, Fault> {
        let mut fields: [&[u8]; COLUMNS_MAX] = [&[]; COLUMNS_MAX];
        let mut count = 0;
        for field in line.split(|b| *b == b',') {
            if count < self.columns {
                fields[count] = field;
            }
            count += 1;
        }
        // The last column of a recorder may be free text (a mark) with commas; only rows that we use must fit.
        let op = match fields[self.op] {
            b"out" => SwapOp::Out,
            b"in" => SwapOp::In,
            b"evict" => SwapOp::Evict,
            b"fault" => SwapOp::Fault,
            b"free" => SwapOp::Free,
            b"alive" | b"fork" | b"exec" | b"exit" | b"mark" => return Ok(None),
            other => return Err(fault(line, other, "op", "no op", OP_REMEDY)),
        };
        if count != self.columns {
            let found = format!("{count} fields, not {}", self.columns);
            return Err(Fault { field: "row", span: 0..line.len(), found, remedy: COLUMNS_REMEDY });
        }
        let slot = number(line, fields[self.slot], "slot", SLOT_MAX.into(), SLOT_REMEDY)?;
        let optional = |place: Option<usize>| place.map(|i| fields[i]).filter(|f| !f.is_empty());
        let time_ns = match self.time.map(|i| fields[i]) {
            Some(field) => number(line, field, "ts_ns", u64::MAX, TIME_REMEDY)?,
            None => 0,
        };
        if time_ns < before {
            let field = self.time.map_or(&[][..], |i| fields[i]);
            return Err(fault(line, field, "ts_ns", "earlier than the row before", TIME_REMEDY));
        }
        let pid = optional(self.pid).map(|f| number(line, f, "pid", u32::MAX.into(), PID_REMEDY)).transpose()?;
        let page_number = optional(self.page).map(|f| page(line, f)).transpose()?.unwrap_or(0);
        let mut kind = [0; 3];
        optional(self.kind).into_iter().for_each(|f| kind.iter_mut().zip(f).for_each(|(k, b)| *k = *b));
        let flag = optional(self.flag).map_or(0, |f| f[0]);
        Ok(Some(SwapEvent { time_ns, page_number, slot: slot as u32, pid: pid.unwrap_or(0) as u32, op, flag, kind }))
    }
}

fn number(line: &[u8], text: &[u8], field: &'static str, max: u64, remedy: &'static str) -> Result<u64, Fault> {
    let digit = |value: Option<u64>, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value?.checked_mul(10)?.checked_add(digit)
    };
    let value = text.iter().fold((!text.is_empty()).then_some(0), digit);
    value.filter(|v| *v <= max).ok_or_else(|| fault(line, text, field, "not such a number", remedy))
}

fn page(line: &[u8], text: &[u8]) -> Result<u64, Fault> {
    let (value, digits) = hex(text);
    if digits == text.len() && (1..=16).contains(&digits) {
        return Ok(value);
    }
    Err(fault(line, text, "vpn", "not a hexadecimal number", PAGE_REMEDY))
}

#[cold]
fn fault(line: &[u8], piece: &[u8], field: &'static str, what: &str, remedy: &'static str) -> Fault {
    // `piece` is a part of `line`, or nothing.
    let start = (piece.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
    let start = if start <= line.len() { start } else { line.len() };
    Fault { field, span: start..start + piece.len(), found: format!("{}, {what}", shown(piece)), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<SwapTrace, TraceError> {
        read_input(Input::Bytes(text.as_bytes().to_vec().into()))
    }

    #[test]
    fn columns_are_found_by_name_and_rows_about_processes_are_counted() {
        let noted = of("ts_ns,op,slot\n0,mark,fidelity: looked, now and then\n1,out,3\n").unwrap();
        assert_eq!(noted.notes, ["looked, now and then"]);
        let text = "slot,op,comm,ts_ns,vpn,flag,pid,type\n7,out,,5,b2e23,a,28,heap\n,mark,a, b,9,,,,\n7,fault,,12,b2e23,Mw,28,heap\n";
        let trace = of(text).unwrap();
        let first = SwapEvent {
            time_ns: 5,
            page_number: 0xb2e23,
            slot: 7,
            pid: 28,
            op: SwapOp::Out,
            flag: b'a',
            kind: *b"hea",
        };
        assert_eq!((trace.events.len(), trace.events[0], trace.skipped), (2, first, 1));
        assert_eq!((trace.slots(), trace.duration_ns()), (8, 7));
        assert!(trace.has(SwapOp::Fault) && !trace.has(SwapOp::Evict));
    }

    #[test]
    fn two_columns_are_enough() {
        let trace = of("op,slot\nout,3\nin,3\n").unwrap();
        assert_eq!((trace.events.len(), trace.events[1].pid, trace.events[1].time_ns), (2, 0, 0));
    }

    #[test]
    fn a_bad_line_names_line_field_and_remedy() {
        for (text, line, field, reason) in [
            ("ts,slot\n", 1, "header", "no column `op`"),
            ("op,slto\n", 1, "header", "no column `slot`"),
            ("op,slot\nuot,3\n", 2, "op", "`uot`"),
            ("op,slot\nout,x\n", 2, "slot", "`x`"),
            ("op,slot\nout,\n", 2, "slot", "nothing"),
            ("op,slot\nout,-1\n", 2, "slot", "16777215"),
            ("op,slot\nout,16777216\n", 2, "slot", "16777215"),
            ("op,slot\nout,99999999999999999999999\n", 2, "slot", "whole number"),
            ("op,slot\nout,3,4\n", 2, "row", "3 fields, not 2"),
            ("op,slot\nout\n", 2, "row", "1 fields, not 2"),
            ("op,slot,ts_ns\nout,3,5\nin,3,4\n", 3, "ts_ns", "earlier"),
            ("op,slot,ts_ns\nout,3,\n", 2, "ts_ns", "nothing"),
            ("op,slot,pid\nout,3,4294967296\n", 2, "pid", "2^32"),
            ("op,slot,vpn\nout,3,0xff\n", 2, "vpn", "hexadecimal"),
        ] {
            let error = of(text).unwrap_err();
            let TraceError::Line(bad) = &error else { panic!("{text}: {error}") };
            assert_eq!((error.code(), bad.line, bad.field), (3, line, field), "{text}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
        for text in ["", "op,slot\n", "op,slot\nmark,\n"] {
            assert!(matches!(of(text), Err(TraceError::Empty { .. })), "{text}");
        }
    }
}
