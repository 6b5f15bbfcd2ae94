//! The part that text formats share: one line in, at most one access out.

use super::input::Input;
use super::lines::{Fault, Lines};
use super::RowReader;
use crate::block::Block;
use crate::error::{printable, TraceError};
use crate::reference::Kind;

/// What a line says.
pub(super) enum Parsed {
    Access {
        address: u64,
        size: u32,
        kind: Kind,
    },
    /// A line that the format tells readers to skip.
    Skip,
}

/// A text format: how to read one of its lines.
pub(super) trait Parse: Default + Send + 'static {
    /// # Errors
    /// A fault, if the line is not as the format says.
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>>;

    /// The recorded command line, once a line has told it.
    fn command(&self) -> Option<&str> {
        None
    }
}

/// Reads a text format.
struct Text<P> {
    lines: Lines,
    parser: P,
    skipped: u64,
}

/// Opens a text format.
pub(super) fn open<P: Parse>(input: Input) -> Result<Box<dyn RowReader>, TraceError> {
    let lines = Lines::new(input.stream()?);
    Ok(Box::new(Text { lines, parser: P::default(), skipped: 0 }))
}

impl<P: Parse> RowReader for Text<P> {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        block.begin_accesses();
        let mut room = block.capacity();
        while room > 0 {
            let Some(line) = self.lines.next()? else { break };
            match self.parser.parse(self.lines.line(line.clone())) {
                Ok(Parsed::Access { address, size, kind }) => {
                    block.push_access(address, size, kind);
                    room -= 1;
                }
                Ok(Parsed::Skip) => self.skipped += 1,
                Err(fault) => return Err(self.lines.bad(&line, *fault)),
            }
        }
        Ok(block.end_accesses())
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn lines(&self) -> u64 {
        self.lines.number()
    }

    fn position(&self) -> u64 {
        self.lines.stream().consumed()
    }

    fn length(&self) -> Option<u64> {
        self.lines.stream().length()
    }

    fn command(&self) -> Option<&str> {
        self.parser.command()
    }
}

/// What a wrong piece of a line looks like in a message: itself if it is short, else its beginning.
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

/// The hexadecimal number at the start of `text` and how many digits it has. More than 16 digits wrap: the caller looks at
/// their number.
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
    let found = format!("{}, {what}", shown(&rest[..length]));
    Box::new(Fault { field: "address", span: from..from + length, found, remedy })
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
