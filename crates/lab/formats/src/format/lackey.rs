//! Valgrind lackey, `--tool=lackey --trace-mem=yes` (checked with 3.19).
//!
//! ```text
//! I  0401ab70,3        fetch
//!  L 1fff000740,8      load
//!  S 1fff000748,8      store
//!  M 04038e10,4        modify: one reference, a write
//! ==29462== ...        tool chatter: skipped, as are lines from `--` on and blank ones
//! ```
//! Address in hexadecimal without `0x`, size in decimal bytes. No time, no task.

use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, shown, Parse, Parsed};
use super::Format;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::Kind;

pub(super) const FORMAT: Format = Format {
    name: "lackey",
    summary: "Valgrind lackey text: every fetch, load, store and modify",
    example: "lackey:trace.txt.gz  (valgrind --tool=lackey --trace-mem=yes --log-file=trace.txt PROGRAM)",
    fidelity: Fidelity::ExactReferences,
    skips: "tool chatter, blank lines",
    takes: &[],
    guess: Some(|head| text::looks_like(Lackey::default(), head)),
    open: text::open::<Lackey>,
};

/// Most bytes of one access. A cache line write is 64, an AVX-512 register too, and `xsave` with every state component
/// stays below 11 KiB (Intel SDM volume 1, chapter 13); 64 KiB leaves room and still catches a column that slipped.
const SIZE_MAX: u32 = 64 * 1024;

const KIND_REMEDY: &str =
    "a line begins with `I  `, ` L `, ` S ` or ` M `; record with --log-file, so that the program's \
                           own output stays out of the trace";
const ADDRESS_REMEDY: &str =
    "an address is 1 to 16 hexadecimal digits and a comma; record the trace again if the line is cut";
const SIZE_REMEDY: &str =
    "a size is 1 to 65536 in decimal, and ends the line; record the trace again if the line is cut";
const WRAP_REMEDY: &str = "the access must end within 64 bits of address; record the trace again";

#[derive(Default)]
struct Lackey {
    command: Option<String>,
}

impl Parse for Lackey {
    #[inline]
    fn parse(&mut self, line: &[u8], _: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let kind = match line {
            [b'I', b' ', b' ', ..] => Kind::Fetch,
            [b' ', b'L', b' ', ..] => Kind::Read,
            [b' ', b'S' | b'M', b' ', ..] => Kind::Write,
            _ => return self.other(line),
        };
        let (address, comma) = text::address(line, 3, |byte| byte == Some(b','), ADDRESS_REMEDY)?;
        let size = size(&line[comma + 1..]).ok_or_else(|| bad_size(line, comma + 1))?;
        if address.checked_add(u64::from(size) - 1).is_none() {
            return Err(wraps(line));
        }
        Ok(Parsed::Access { address, size, kind })
    }

    fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }
}

impl Lackey {
    /// A line that is not an access: chatter, blank, or an error.
    #[cold]
    fn other(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        if line.starts_with(b"==") || line.starts_with(b"--") {
            self.note_command(line);
            return Ok(Parsed::Skip);
        }
        if line.iter().all(|byte| b" \t".contains(byte)) {
            return Ok(Parsed::Skip);
        }
        let span = 0..line.len().min(3);
        let problem = format!("{}, no kind of access", shown(&line[span.clone()]));
        Err(Box::new(Fault { field: "kind", span, problem, remedy: KIND_REMEDY }))
    }

    /// Valgrind's preamble gives the command: `==1234== Command: ls -l`.
    fn note_command(&mut self, line: &[u8]) {
        const MARK: &[u8] = b"== Command: ";
        if self.command.is_none() {
            let place = memchr::memmem::find(line, MARK);
            self.command = place.map(|place| String::from_utf8_lossy(&line[place + MARK.len()..]).into_owned());
        }
    }
}

/// A whole number from 1 to [`SIZE_MAX`], and nothing after it.
#[inline]
fn size(text: &[u8]) -> Option<u32> {
    // Five digits are enough for SIZE_MAX and cannot overflow.
    if text.is_empty() || text.len() > 5 {
        return None;
    }
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    (1..=SIZE_MAX).contains(&value).then_some(value)
}

#[cold]
fn bad_size(line: &[u8], from: usize) -> Box<Fault> {
    let problem = format!("{}, not a size here", shown(&line[from..]));
    Box::new(Fault { field: "size", span: from..line.len(), problem, remedy: SIZE_REMEDY })
}

#[cold]
fn wraps(line: &[u8]) -> Box<Fault> {
    let problem = format!("{} runs past 2^64", shown(&line[3..]));
    Box::new(Fault { field: "address", span: 3..line.len(), problem, remedy: WRAP_REMEDY })
}
