//! The part that text formats share: one line in, at most one access out.

use super::input::{Input, Stream};
use super::lines::{admit, Fault, Lines};
use super::options::Options;
use super::tasks::Tasks;
use super::time::Clock;
use super::{Facts, Progress, RowReader};
use coldframe_store::block::{Block, Columns};
use coldframe_store::error::{printable, BadLine, TraceError};
use coldframe_store::reference::{Kind, Reference};

pub(super) enum Parsed {
    /// An access without a known task and time.
    Access { address: u64, size: u32, kind: Kind },
    /// An access with the other fields that the format has. The time is by the format's own clock and need not begin
    /// at 0.
    Request(Reference),
    /// A line that the format tells readers to skip.
    Skip,
}

/// A text format: how to read one of its lines.
pub(super) trait Parse: Send + 'static {
    /// Reads a line. Tasks with names or address spaces of their own are noted in `tasks`.
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>>;

    /// Which optional columns [`Parsed::Request`] fills.
    fn columns(&self) -> Columns {
        Columns::default()
    }

    /// The recorded command line, once it was read.
    fn command(&self) -> Option<&str> {
        None
    }

    /// Notes for readers of results.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

struct Text<P> {
    lines: Lines,
    parser: P,
    tasks: Tasks,
    skipped: u64,
    clock: Clock,
    skip_bad: bool,
    bad: u64,
    first_bad: Option<Box<BadLine>>,
}

/// Opens a text format that needs no declarations.
pub(super) fn open<P: Parse + Default>(input: Input, options: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    Ok(read(input.stream()?, options, P::default()))
}

pub(super) fn read(stream: Stream, options: &Options, parser: impl Parse) -> Box<dyn RowReader> {
    Box::new(Text {
        lines: Lines::new(stream),
        parser,
        tasks: Tasks::default(),
        skipped: 0,
        clock: Clock::default(),
        skip_bad: options.skip_bad,
        bad: 0,
        first_bad: None,
    })
}

const GUESS_LINES: usize = 20;

/// Whether the first lines of a text are all lines of this parser's format, and one of them is an access.
pub(super) fn looks_like(mut parser: impl Parse, head: &[u8]) -> bool {
    let mut tasks = Tasks::default();
    let whole = memchr::memrchr(b'\n', head).map_or(0, |end| end + 1);
    let mut accesses = 0;
    for line in head[..whole].split(|byte| *byte == b'\n').take(GUESS_LINES) {
        match parser.parse(line.strip_suffix(b"\r").unwrap_or(line), &mut tasks) {
            Ok(Parsed::Skip) => {}
            Ok(_) => accesses += 1,
            Err(_) if line.is_empty() => {}
            Err(_) => return false,
        }
    }
    accesses > 0
}

impl<P: Parse> Text<P> {
    /// The next access, or why the line is none; `None` after the last line.
    fn request(&mut self, request: Reference) -> Result<Reference, Box<Fault>> {
        admit(&request)?;
        let time = if self.parser.columns().time { self.clock.since_start(request.time) } else { 0 };
        Ok(Reference { time, ..request })
    }

    /// Counts a bad line, or ends the reading.
    #[cold]
    fn refuse(&mut self, error: TraceError) -> Result<(), TraceError> {
        match error {
            TraceError::Line(bad) if self.skip_bad => {
                self.bad += 1;
                self.first_bad.get_or_insert(bad);
                Ok(())
            }
            error => Err(error),
        }
    }
}

impl<P: Parse> RowReader for Text<P> {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let columns = self.parser.columns();
        let mut room = block.capacity();
        while room > 0 {
            let Some(line) = self.lines.next()? else { break };
            let fault = match self.parser.parse(self.lines.line(line.clone()), &mut self.tasks) {
                Ok(Parsed::Access { address, size, kind }) => {
                    block.push_access(address, size, kind);
                    room -= 1;
                    continue;
                }
                Ok(Parsed::Request(request)) => match self.request(request) {
                    Ok(request) => {
                        block.push_request(request, columns);
                        room -= 1;
                        continue;
                    }
                    Err(fault) => fault,
                },
                Ok(Parsed::Skip) => {
                    self.skipped += 1;
                    continue;
                }
                Err(fault) => fault,
            };
            self.refuse(self.lines.bad(&line, *fault))?;
        }
        Ok(block.end_requests(columns))
    }

    fn columns(&self) -> Columns {
        self.parser.columns()
    }

    fn progress(&self) -> Progress {
        Progress { bad: self.bad, ..self.lines.stream().progress(self.lines.number(), self.skipped) }
    }

    fn facts(&self) -> Facts {
        Facts {
            command: self.parser.command().map(str::to_owned),
            started: self.clock.start(),
            tasks: self.tasks.list(),
            notes: self.parser.notes().into_iter().chain(self.clock.note()).collect(),
            first_bad: self.first_bad.as_ref().map(ToString::to_string),
            ..Facts::default()
        }
    }
}

/// A wrong piece of a line as messages show it: whole if it is short, otherwise its beginning.
pub(super) fn shown(piece: &[u8]) -> String {
    const SHOWN_MAX: usize = 24;
    match piece.len() {
        0 => "nothing".into(),
        1..=SHOWN_MAX => format!("`{}`", printable(piece)),
        _ => format!("`{}...`", printable(&piece[..SHOWN_MAX])),
    }
}

/// The value of each hexadecimal digit, and 16 for other bytes.
const HEX: [u8; 256] = {
    let mut table = [16; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

/// The hexadecimal number at the start of `text`, and its number of digits. More than 16 digits wrap; the caller checks
/// the number of digits.
#[inline]
pub(super) fn hex(text: &[u8]) -> (u64, usize) {
    let mut value = 0u64;
    let mut digits = 0;
    for &byte in text {
        let digit = HEX[byte as usize];
        if digit == 16 {
            break;
        }
        value = value << 4 | u64::from(digit);
        digits += 1;
    }
    (value, digits)
}

/// An address must have 1 to 16 digits and be followed by what `follows` accepts (`None` is the end of the line).
///
/// # Errors
/// A fault in `line[from..]`, up to the next blank or comma.
#[inline]
pub(super) fn address(
    line: &[u8],
    from: usize,
    follows: impl Fn(Option<u8>) -> bool,
    remedy: &'static str,
) -> Result<(u64, usize), Box<Fault>> {
    let (value, digits) = hex(&line[from..]);
    if (1..=16).contains(&digits) && follows(line.get(from + digits).copied()) {
        return Ok((value, from + digits));
    }
    Err(bad_address(line, from, digits, remedy))
}

#[cold]
fn bad_address(line: &[u8], from: usize, digits: usize, remedy: &'static str) -> Box<Fault> {
    let rest = &line[from..];
    let length = rest.iter().position(|byte| b" \t,".contains(byte)).unwrap_or(rest.len());
    let what = if digits > 16 { "more than 64 bits" } else { "not a hexadecimal address here" };
    let problem = format!("{}, {what}", shown(&rest[..length]));
    Box::new(Fault { field: "address", span: from..from + length, problem, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_numbers_end_at_the_first_other_byte() {
        assert_eq!(hex(b"0401ab70,3"), (0x0401_ab70, 8));
        assert_eq!(hex(b"FFFFFFFFffffffff "), (u64::MAX, 16));
        assert_eq!(hex(b"g"), (0, 0));
        assert_eq!(hex(b"10000000000000000").1, 17);
    }
}
