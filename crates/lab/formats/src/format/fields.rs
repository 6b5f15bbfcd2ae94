//! Fields of a line and the numbers in them, each fault with its place.

use std::ops::Range;

use super::lines::Fault;
use super::text::{hex, shown};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// This byte, once; blanks around a field do not count.
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

pub(super) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    separator: Separator,
    /// The layout of a line, as the remedy of all its faults.
    layout: &'static str,
    ended: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) text: &'a [u8],
    name: &'static str,
    from: usize,
    layout: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a [u8], separator: Separator, layout: &'static str) -> Fields<'a> {
        Fields { line, at: 0, separator, layout, ended: false }
    }

    /// The next field, which is called `name` in messages.
    #[inline]
    pub(super) fn next(&mut self, name: &'static str) -> Result<Field<'a>, Box<Fault>> {
        match self.optional(name) {
            Some(field) if !field.text.is_empty() => Ok(field),
            other => {
                let at = other.map_or(self.line.len(), |field| field.from);
                Err(fault(name, at..at, "nothing here".into(), self.layout))
            }
        }
    }

    /// The next field, if there is one; between bytes it may be empty.
    #[inline]
    pub(super) fn optional(&mut self, name: &'static str) -> Option<Field<'a>> {
        if self.ended {
            return None;
        }
        let rest = &self.line[self.at..];
        let (from, to) = match self.separator {
            Separator::Byte(byte) => {
                let length = memchr::memchr(byte, rest);
                self.ended = length.is_none();
                let whole = &rest[..length.unwrap_or(rest.len())];
                self.at += whole.len() + 1;
                let from = whole.iter().take_while(blank).count();
                (from, from + whole[from..].trim_ascii_end().len())
            }
            Separator::Blanks => {
                let from = rest.iter().take_while(blank).count();
                let length = rest[from..].iter().take_while(|byte| !blank(byte)).count();
                self.at += from + length;
                self.ended = length == 0;
                if self.ended {
                    return None;
                }
                (from, from + length)
            }
        };
        let start = rest.as_ptr() as usize - self.line.as_ptr() as usize;
        Some(Field { text: &rest[from..to], name, from: start + from, layout: self.layout })
    }

    /// Refuses further fields.
    pub(super) fn end(&mut self) -> Result<(), Box<Fault>> {
        match self.optional("line") {
            None => Ok(()),
            Some(field) => Err(field.fault("is one field too many")),
        }
    }
}

fn blank(byte: &&u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

impl<'a> Field<'a> {
    /// The field without the quotes around it.
    pub(super) fn unquoted(self) -> Field<'a> {
        match self.text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) {
            Some(text) => Field { text, from: self.from + 1, ..self },
            None => self,
        }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.from..self.from + self.text.len()
    }

    #[cold]
    pub(super) fn fault(&self, what: &str) -> Box<Fault> {
        fault(self.name, self.span(), format!("{} {what}", shown(self.text)), self.layout)
    }

    /// A whole decimal number up to `most`.
    #[inline]
    pub(super) fn number(&self, most: u64) -> Result<u64, Box<Fault>> {
        match decimal(self.text) {
            Some(number) if number <= most => Ok(number),
            _ => Err(self.fault(&format!("is not a whole number up to {most}"))),
        }
    }

    /// A whole decimal number times `unit`, within 64 bits.
    #[inline]
    pub(super) fn scaled(&self, unit: u64) -> Result<u64, Box<Fault>> {
        self.times(self.number(u64::MAX)?, unit)
    }

    /// This field's number times `unit`.
    #[inline]
    pub(super) fn times(&self, number: u64, unit: u64) -> Result<u64, Box<Fault>> {
        number.checked_mul(unit).ok_or_else(|| self.fault(&format!("times {unit} bytes is more than 64 bits")))
    }

    /// A whole decimal number times `unit`, as the size of an access.
    #[inline]
    pub(super) fn size(&self, unit: u64) -> Result<u32, Box<Fault>> {
        self.narrow(self.scaled(unit)?)
    }

    /// This field's number as the size of an access.
    #[inline]
    pub(super) fn narrow(&self, bytes: u64) -> Result<u32, Box<Fault>> {
        u32::try_from(bytes).map_err(|_| self.fault("is too large for one access"))
    }

    /// A hexadecimal number, with or without `0x`.
    #[inline]
    pub(super) fn hexadecimal(&self) -> Result<u64, Box<Fault>> {
        let text = self.text.strip_prefix(b"0x").or(self.text.strip_prefix(b"0X")).unwrap_or(self.text);
        match hex(text) {
            (value, digits @ 1..=16) if digits == text.len() => Ok(value),
            _ => Err(self.fault("is not a hexadecimal number of 1 to 16 digits")),
        }
    }

    /// A decimal number, perhaps with a fraction, of ticks of `ps` picoseconds, as nanoseconds rounded down.
    #[inline]
    pub(super) fn nanoseconds(&self, ps: u64) -> Result<u64, Box<Fault>> {
        nanoseconds(self.text, ps).ok_or_else(|| self.fault("is not a time that 64 bits of nanoseconds can hold"))
    }
}

#[cold]
pub(super) fn fault(field: &'static str, span: Range<usize>, problem: String, remedy: &'static str) -> Box<Fault> {
    Box::new(Fault { field, span, problem, remedy })
}

/// Decimal digits and nothing else, within 64 bits.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Digits after the point that count: picoseconds of a second.
const FRACTION_MAX: usize = 12;

#[inline]
pub(super) fn nanoseconds(text: &[u8], ps: u64) -> Option<u64> {
    let point = memchr::memchr(b'.', text);
    let (whole, fraction) = point.map_or((text, &b"0"[..]), |at| (&text[..at], &text[at + 1..]));
    let digits = &fraction[..fraction.len().min(FRACTION_MAX)];
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let whole = u128::from(decimal(whole)?) * u128::from(ps);
    let part = u128::from(decimal(digits)?) * u128::from(ps) / 10u128.pow(digits.len() as u32);
    u64::try_from((whole + part) / 1000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_with_their_places() {
        let mut fields = Fields::new(b"a, bc ,,d", Separator::Byte(b','), "x");
        let all: Vec<_> = std::iter::from_fn(|| fields.optional("f")).map(|f| (f.text.to_vec(), f.span())).collect();
        assert_eq!(all, [(b"a".to_vec(), 0..1), (b"bc".to_vec(), 3..5), (vec![], 7..7), (b"d".to_vec(), 8..9)]);
        let mut fields = Fields::new(b"  a\tbc ", Separator::Blanks, "x");
        let all: Vec<_> = std::iter::from_fn(|| fields.optional("f")).map(|f| (f.text.to_vec(), f.span())).collect();
        assert_eq!(all, [(b"a".to_vec(), 2..3), (b"bc".to_vec(), 4..6)]);
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(nanoseconds(b"2740.171361519", 1_000_000_000_000), Some(2_740_171_361_519));
        assert_eq!(nanoseconds(b"128166372003061629", 100_000), Some(12_816_637_200_306_162_900));
        assert_eq!(nanoseconds(b"1.5", 1_000), Some(1));
        for bad in ["", ".", "1.", "-1", "1e3", "1.x", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(nanoseconds(bad.as_bytes(), 1_000), None, "{bad}");
        }
        assert_eq!(nanoseconds(b"18446744074", 1_000_000_000_000), None);
    }
}
