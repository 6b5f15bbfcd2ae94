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
//! | `fault` | a task touches a page that left its page table: flag `M` it waited for a read, `m` not; `w` a write |
//! | `free` | the slot is free: flag `x` by an exit |
//! | `alive` `fork` `exec` `exit` `mark` | about processes: skipped and counted |
//!
//! A slot number names the copy in the slot until the slot is freed. The whole trace is held in memory, 32 bytes for
//! each event.

use std::path::Path;

use super::fields::{fault, Field, Fields, Separator};
use super::input::Input;
use super::lines::{Fault, Lines};
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
pub fn read_input(input: Input) -> Result<SwapTrace, TraceError> {
    let path = input.name().to_owned();
    let mut lines = Lines::new(input.stream()?);
    let header = match lines.next()? {
        Some(line) => Header::parse(lines.line(line.clone())).map_err(|fault| lines.bad(&line, *fault))?,
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
            Err(fault) => return Err(lines.bad(&line, *fault)),
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

/// The columns that are used.
const COLUMNS: [&str; 7] = ["op", "slot", "ts_ns", "pid", "vpn", "type", "flag"];
const LAYOUT: &str =
    "the first line names the columns, ts_ns,op,slot,pid,vpn,type,flag in any order, op and slot among \
                      them; an op is out, in, evict, fault or free, or alive, fork, exec, exit or mark (skipped)";

/// The place in [`COLUMNS`] of each column of the trace.
struct Header(Vec<Option<usize>>);

impl Header {
    fn parse(line: &[u8]) -> Result<Header, Box<Fault>> {
        let role = |name: &[u8]| COLUMNS.iter().position(|column| column.as_bytes() == name);
        let header = Header(line.split(|byte| *byte == b',').map(role).collect());
        match (0..2).find(|needed| !header.0.contains(&Some(*needed))) {
            None => Ok(header),
            Some(lacks) => Err(fault("header", 0..line.len(), format!("no column `{}`", COLUMNS[lacks]), LAYOUT)),
        }
    }

    /// The event of a line; `None` for one about a process.
    fn row(&self, line: &[u8], before: u64) -> Result<Option<SwapEvent>, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Byte(b','), LAYOUT);
        let mut row: [Option<Field>; COLUMNS.len()] = [None; COLUMNS.len()];
        for role in &self.0 {
            match (fields.optional(role.map_or("row", |role| COLUMNS[role])), role) {
                (Some(field), Some(role)) => row[*role] = row[*role].or(Some(field)),
                (Some(_), None) => {}
                (None, _) => break,
            }
        }
        let [op, slot, time, pid, page, kind, flag] = row;
        let short =
            || fault("row", 0..line.len(), format!("fewer fields than the {} of the header", self.0.len()), LAYOUT);
        let word = op.ok_or_else(short)?;
        // The last column of a recorder may be free text (a mark) with commas; only rows that we use must fit.
        let op = match word.text {
            b"out" => SwapOp::Out,
            b"in" => SwapOp::In,
            b"evict" => SwapOp::Evict,
            b"fault" => SwapOp::Fault,
            b"free" => SwapOp::Free,
            b"alive" | b"fork" | b"exec" | b"exit" | b"mark" => return Ok(None),
            _ => return Err(word.fault("is no op")),
        };
        if self.0.iter().flatten().any(|role| row[*role].is_none()) {
            return Err(short());
        }
        fields.end()?;
        let given = |field: Option<Field<'_>>, most: u64| field.map_or(Ok(0), |field| field.number(most));
        let filled = |field: &Field<'_>| !field.text.is_empty();
        let time_ns = given(time, u64::MAX)?;
        if let Some(time) = time.filter(|_| time_ns < before) {
            return Err(time.fault("is earlier than the row before; sort the rows by time"));
        }
        let letters = |field: Option<Field<'_>>, at: usize| field.and_then(|f| f.text.get(at).copied()).unwrap_or(0);
        Ok(Some(SwapEvent {
            time_ns,
            page_number: page.filter(filled).map_or(Ok(0), |page| page.hexadecimal())?,
            slot: given(slot, SLOT_MAX.into())? as u32,
            pid: given(pid.filter(filled), u32::MAX.into())? as u32,
            op,
            flag: letters(flag, 0),
            kind: [0, 1, 2].map(|at| letters(kind, at)),
        }))
    }
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
        let text = "slot,op,comm,ts_ns,vpn,flag,pid,type\n7,out,,5,b2e23,a,28,heap\n,mark,a, \
                    b,9,,,,\n7,fault,,12,b2e23,Mw,28,heap\n";
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
            ("op,slot\nout,3,4\n", 2, "line", "one field too many"),
            ("op,slot\nout\n", 2, "row", "fewer fields than the 2"),
            ("op,slot,ts_ns\nout,3,5\nin,3,4\n", 3, "ts_ns", "earlier"),
            ("op,slot,ts_ns\nout,3,\n", 2, "ts_ns", "nothing"),
            ("op,slot,pid\nout,3,4294967296\n", 2, "pid", "4294967295"),
            ("op,slot,vpn\nout,3,0xfg\n", 2, "vpn", "hexadecimal"),
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
