//! `perf script` text of page faults.
//!
//! ```text
//! ls  5323/5323  [001]  2740.171361519: page-faults:  563085d435c0 ffffffff81752b6a       -F comm,pid,tid,cpu,time,event,addr,ip
//! ls  5323 [001]  2740.171361519: exceptions:page_fault_user: address=0x7f3a.. ip=0x7f3a.. error_code=0x14
//! ```
//! The first form does not say what the access was: it counts as a read. The second has the processor's error code
//! (Intel SDM volume 3, 4.7: bit 1 write, bit 4 instruction fetch). If `-d` was missing when recording, perf prints
//! the instruction in place of the address; a reader cannot notice that. Rows are faults on the recording machine,
//! each of one byte.

use memchr::memmem;

use super::fields::{fault, Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "perf",
    summary: "perf script text: page-faults with -d, or exceptions:page_fault_user and _kernel",
    example: "perf:faults.txt  (perf record -e page-faults -c 1 -d --sample-cpu PROGRAM; perf script -F \
              comm,pid,tid,cpu,time,event,addr,ip --ns)",
    fidelity: Fidelity::Faults,
    skips: "faults of the kernel on its own memory, comments, blank lines",
    takes: &[],
    guess: Some(|head| text::looks_like(Perf::default(), head)),
    open: text::open::<Perf>,
};

const LAYOUT: &str = "a line is COMM PID/TID [CPU] SECONDS: page-faults: ADDRESS IP; print it with perf script -F \
                      comm,pid,tid,cpu,time,event,addr,ip --ns after perf record -e page-faults -c 1 -d --sample-cpu";
const SECOND_PS: u64 = 1_000_000_000_000;
/// Error-code bits.
const WRITE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;

#[derive(Default)]
struct Perf {
    untyped: bool,
}

impl Parse for Perf {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Ok(Parsed::Skip);
        }
        let (head, tail) = halves(line)?;
        let (comm, pid, tid) = ids(line, head)?;
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        while fields.rest().len() > line.len() - tail {
            fields.next("time")?;
        }
        let time = fields.next("time")?;
        let seconds = time.text.strip_suffix(b":").ok_or_else(|| time.fault("does not end with a colon"))?;
        let time = seconds_of(seconds).ok_or_else(|| time.fault("is no time in seconds"))?;
        let event = fields.next("event")?;
        let address = fields.next("address")?;
        let (address, kind) = match event.text {
            b"page-faults:" | b"page-faults:u:" | b"minor-faults:" | b"major-faults:" => {
                self.untyped = true;
                (address.hexadecimal()?, Kind::Read)
            }
            b"exceptions:page_fault_user:" | b"exceptions:page_fault_kernel:" => {
                let digits = address.text.strip_prefix(b"address=0x");
                let value = digits.and_then(whole_hex).ok_or_else(|| address.fault("is not address=0x..."))?;
                fields.next("ip")?;
                let code = fields.next("error_code")?;
                let digits = code.text.strip_prefix(b"error_code=0x");
                (value, kind(digits.and_then(whole_hex).ok_or_else(|| code.fault("is not error_code=0x..."))?))
            }
            _ => return Err(event.fault("is no page-fault event")),
        };
        if address >> 63 == 1 {
            return Ok(Parsed::Skip);
        }
        tasks.meet(tid, pid, comm);
        Ok(Parsed::Request(Reference { task: tid, time, ..Reference::new(address, 1, kind) }))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }

    fn notes(&self) -> Vec<String> {
        let note = "perf's page-faults event does not tell reads from writes: such faults are stored as reads";
        self.untyped.then(|| note.to_owned()).into_iter().collect()
    }
}

fn kind(code: u64) -> Kind {
    match (code & FETCH != 0, code & WRITE != 0) {
        (true, _) => Kind::Fetch,
        (_, true) => Kind::Write,
        _ => Kind::Read,
    }
}

fn whole_hex(text: &[u8]) -> Option<u64> {
    let (value, digits) = text::hex(text);
    (digits == text.len() && (1..=16).contains(&digits)).then_some(value)
}

fn seconds_of(text: &[u8]) -> Option<u64> {
    super::fields::nanoseconds(text, SECOND_PS)
}

/// The end of the part before `[CPU]`, and the start of the part after it. A program's name may contain blanks, colons
/// and brackets, so the last bracket that is followed by a time counts.
fn halves(line: &[u8]) -> Result<(usize, usize), Box<Fault>> {
    let mut best = None;
    for open in memmem::find_iter(line, b" [") {
        let digits = line[open + 2..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let close = open + 2 + digits;
        if digits > 0 && line.get(close) == Some(&b']') {
            best = Some((open, close + 1));
        }
    }
    best.ok_or_else(|| fault("cpu", 0..line.len(), "no [CPU] in this line".into(), LAYOUT))
}

/// `COMM PID/TID` or `COMM TID` at the start of the line, up to `end`.
fn ids(line: &[u8], end: usize) -> Result<(&[u8], u32, u32), Box<Fault>> {
    let head = line[..end].trim_ascii_end();
    let from = head.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
    let ids = &head[from..];
    let number = |text: &[u8]| super::fields::decimal(text).and_then(|number| u32::try_from(number).ok());
    let pair = match memchr::memchr(b'/', ids) {
        Some(slash) => number(&ids[..slash]).zip(number(&ids[slash + 1..])),
        None => number(ids).map(|tid| (tid, tid)),
    };
    let (pid, tid) = pair.ok_or_else(|| fault("pid/tid", from..head.len(), "no PID/TID here".into(), LAYOUT))?;
    Ok((head[..from].trim_ascii(), pid, tid))
}
