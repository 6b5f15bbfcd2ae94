//! Extended din, the default text input of Dinero IV (`-informat D`).
//!
//! ```text
//! r 7fff0010 8 anything      access type, address, size, both in hexadecimal; the rest of the line is ignored
//! ```
//! Types: `r` read, `w` write, `i` fetch, `m` miscellaneous (a read that triggers no prefetch); `c` (copy back) and `v`
//! (invalidate) are orders to a cache, not accesses, and are skipped.

use super::fields::{Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "xdin",
    summary: "Dinero IV extended din text: r, w, i or m, address and size in hexadecimal",
    example: "xdin:trace.xdin",
    fidelity: Fidelity::ExactReferences,
    skips: "cache orders (c, v), blank lines",
    takes: &[],
    guess: None,
    open: text::open::<Xdin>,
};

const LAYOUT: &str = "a line is r, w, i, m, c or v, then address and size in hexadecimal; labels 0 to 4 are format din";

#[derive(Default)]
struct Xdin;

impl Parse for Xdin {
    fn parse(&mut self, line: &[u8], _: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        let Some(label) = fields.optional("access type") else { return Ok(Parsed::Skip) };
        let kind = match label.text {
            b"r" | b"m" => Kind::Read,
            b"w" => Kind::Write,
            b"i" => Kind::Fetch,
            b"c" | b"v" => return Ok(Parsed::Skip),
            _ => return Err(label.fault("is no access type")),
        };
        let address = fields.next("address")?.hexadecimal()?;
        let size = fields.next("size")?;
        Ok(Parsed::Request(Reference::new(address, size.narrow(size.hexadecimal()?)?, kind)))
    }
}
