//! Dinero "din", as Dinero III wrote it and Dinero IV reads it with `-informat d`.
//!
//! ```text
//! 2 400100 anything      label, address in hexadecimal, the rest of the line is ignored
//! ```
//! Labels: 0 read, 1 write, 2 instruction fetch; 3 (unknown) and 4 (flush the cache) are escapes, skipped and counted.
//! There is no size: as in Dinero IV, an access covers the aligned 4 bytes around its address.

use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, shown, Parse, Parsed};
use super::Format;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::Kind;

pub(super) const FORMAT: Format = Format {
    name: "din",
    summary: "Dinero III/IV din text: label (0 read, 1 write, 2 fetch), hexadecimal address; size 4, aligned",
    example: "din:trace.din",
    fidelity: Fidelity::ExactReferences,
    skips: "escapes, blank lines",
    takes: &[],
    guess: None,
    open: text::open::<Din>,
};

/// Bytes per access: Dinero IV's, which also aligns the address to them.
const SIZE: u32 = 4;

const LABEL_REMEDY: &str =
    "a label is 0 (read), 1 (write), 2 (fetch), 3 or 4 (escapes, skipped); the letters r, w, i are \
                            extended din, which is another format";
const ADDRESS_REMEDY: &str =
    "after the label comes an address of 1 to 16 hexadecimal digits, with or without 0x, and then \
                              a blank or the end of the line";

#[derive(Default)]
struct Din;

impl Parse for Din {
    #[inline]
    fn parse(&mut self, line: &[u8], _: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let label = blanks(line, 0);
        let kind = match (line.get(label), line.get(label + 1)) {
            (None, _) => return Ok(Parsed::Skip),
            (Some(b'0'), Some(b' ' | b'\t')) => Kind::Read,
            (Some(b'1'), Some(b' ' | b'\t')) => Kind::Write,
            (Some(b'2'), Some(b' ' | b'\t')) => Kind::Fetch,
            (Some(b'3' | b'4'), Some(b' ' | b'\t') | None) => return Ok(Parsed::Skip),
            _ => return Err(bad_label(line, label)),
        };
        let from = blanks(line, label + 1);
        let digits = if matches!(line[from..], [b'0', b'x' | b'X', ..]) { from + 2 } else { from };
        let ends = |byte| matches!(byte, None | Some(b' ' | b'\t'));
        let (address, _) = text::address(line, digits, ends, ADDRESS_REMEDY)?;
        Ok(Parsed::Access { address: address & !u64::from(SIZE - 1), size: SIZE, kind })
    }
}

/// The place of the first byte from `from` on that is not blank.
#[inline]
fn blanks(line: &[u8], from: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    from + line[from..].iter().take_while(blank).count()
}

#[cold]
fn bad_label(line: &[u8], from: usize) -> Box<Fault> {
    let rest = &line[from..];
    let length = rest.iter().position(|byte| b" \t".contains(byte)).unwrap_or(rest.len());
    if length == 1 && matches!(rest[0], b'0'..=b'2') {
        let end = line.len();
        let problem = "nothing, not a hexadecimal address here".to_owned();
        return Box::new(Fault { field: "address", span: end..end, problem, remedy: ADDRESS_REMEDY });
    }
    let problem = format!("{}, not a label", shown(&rest[..length]));
    Box::new(Fault { field: "label", span: from..from + length, problem, remedy: LABEL_REMEDY })
}
