//! Declarations by the user for traces that do not describe themselves: columns, units, numbers of kinds.
//!
//! There is no default that could be wrong: without a unit that it needs, a format does not open.

use coldframe_store::error::TraceError;
use coldframe_store::reference::Kind;

/// Declarations of a user about one trace. The default declares nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which column holds what (`csv`, `tsv`).
    pub columns: Vec<(Role, Column)>,
    /// Bytes for each step of an address (a sector, an object number).
    pub address: Option<u64>,
    /// Addresses are hexadecimal without `0x`.
    pub address_hexadecimal: bool,
    /// Bytes for each step of a size. Without a size column, the size of every access.
    pub size: Option<u64>,
    /// Picoseconds of one tick of the trace's clock.
    pub time_ps: Option<u64>,
    /// Words of the kind column in addition to the usual ones.
    pub kinds: Vec<(String, Kind)>,
    /// Objects get numbers in the order of their first appearance; these are the addresses.
    pub number_objects: bool,
    /// Bad lines are skipped and counted instead of ending the reading.
    pub skip_bad: bool,
}

/// The meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// First byte touched.
    Address,
    /// Bytes touched.
    Size,
    /// Fetch, read or write.
    Kind,
    /// Task, device or volume.
    Task,
    Time,
}

const ROLES: [(&str, Role); 5] = [
    ("address", Role::Address),
    ("size", Role::Size),
    ("kind", Role::Kind),
    ("task", Role::Task),
    ("time", Role::Time),
];

impl Role {
    /// Its name, as `--columns` takes it.
    pub(super) fn name(self) -> &'static str {
        ROLES[self as usize].0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By its place, from 1.
    Number(usize),
    Name(String),
}

/// The names of all formats' options, for [`Format::takes`](super::Format::takes).
pub(super) const COLUMNS: &str = "--columns";
pub(super) const UNIT_ADDRESS: &str = "--unit address";
pub(super) const UNIT_SIZE: &str = "--unit size";
pub(super) const UNIT_TIME: &str = "--unit time";
pub(super) const KINDS: &str = "--kinds";
pub(super) const NUMBER_OBJECTS: &str = "--number-objects";
/// What to do about a word that is no kind.
pub(super) const KINDS_REMEDY: &str = "declare what it means, as in --kinds 0=read,1=write";

impl Options {
    /// Adds `ROLE=COLUMN,...`, a column by its number from 1 or by its name: `address=Offset,size=4,kind=op,time=1`.
    ///
    /// # Errors
    /// [`TraceError::Usage`] for an unknown or repeated role, or number 0.
    pub fn declare_columns(&mut self, text: &str) -> Result<(), TraceError> {
        let remedy = "write ROLE=COLUMN,... with ROLE one of address, size, kind, task, time and COLUMN a number \
                      from 1 or a name";
        for part in text.split(',') {
            let (role, column) = pair("--columns", part, remedy)?;
            let known = ROLES.iter().find(|(name, _)| *name == role).map(|(_, role)| *role);
            let role = known.ok_or_else(|| usage("--columns", format!("`{role}` is no role"), remedy))?;
            if self.columns.iter().any(|(other, _)| *other == role) {
                return Err(usage("--columns", format!("`{part}` declares a role twice"), remedy));
            }
            let column = match column.parse() {
                Ok(0) => return Err(usage("--columns", "there is no column 0".into(), remedy)),
                Ok(number) => Column::Number(number),
                Err(_) => Column::Name(column.to_owned()),
            };
            self.columns.push((role, column));
        }
        Ok(())
    }

    /// Adds `address=512B,size=1B,time=us`; an address unit may begin with `hex:`.
    ///
    /// # Errors
    /// [`TraceError::Usage`] for what is no unit.
    pub fn declare_units(&mut self, text: &str) -> Result<(), TraceError> {
        let remedy =
            "write address=[hex:]BYTES, size=BYTES or time=TIME, as in address=512B,size=1B,time=us (times: ps, ns, \
                      100ns, us, ms, s)";
        for part in text.split(',') {
            let (name, unit) = pair("--unit", part, remedy)?;
            let bad = || usage("--unit", format!("`{part}` is no unit"), remedy);
            match name {
                "address" => {
                    let bytes = unit.strip_prefix("hex:");
                    self.address_hexadecimal = bytes.is_some();
                    self.address = Some(bytes_of(bytes.unwrap_or(unit)).ok_or_else(bad)?);
                }
                "size" => self.size = Some(bytes_of(unit).ok_or_else(bad)?),
                "time" => self.time_ps = Some(picoseconds_of(unit).ok_or_else(bad)?),
                _ => return Err(bad()),
            }
        }
        Ok(())
    }

    /// Adds `WORD=KIND,...`, as in `0=write,1=read`.
    ///
    /// # Errors
    /// [`TraceError::Usage`] for a kind other than fetch, read and write.
    pub fn declare_kinds(&mut self, text: &str) -> Result<(), TraceError> {
        let remedy = "write WORD=KIND,... with KIND one of fetch, read, write, as in 0=write,1=read";
        for part in text.split(',') {
            let (word, kind) = pair("--kinds", part, remedy)?;
            let kind = match kind {
                "fetch" => Kind::Fetch,
                "read" => Kind::Read,
                "write" => Kind::Write,
                _ => return Err(usage("--kinds", format!("`{kind}` is no kind"), remedy)),
            };
            self.kinds.push((word.to_owned(), kind));
        }
        Ok(())
    }

    /// The meaning of a word in the kind column: as declared, or as usual.
    pub(super) fn kind(&self, word: &[u8]) -> Option<Kind> {
        if let Some((_, kind)) = self.kinds.iter().find(|(declared, _)| declared.as_bytes() == word) {
            return Some(*kind);
        }
        match word.to_ascii_lowercase().as_slice() {
            b"r" | b"read" | b"load" | b"get" | b"gets" => Some(Kind::Read),
            b"w" | b"write" | b"store" | b"set" | b"put" | b"add" | b"cas" | b"replace" => Some(Kind::Write),
            b"i" | b"fetch" | b"instruction" => Some(Kind::Fetch),
            _ => None,
        }
    }

    pub(super) fn has(&self, role: Role) -> bool {
        self.columns.iter().any(|(declared, _)| *declared == role)
    }

    /// Refuses declarations that `format` does not accept: a declaration without effect would mislead.
    pub(super) fn admit(&self, format: &super::Format) -> Result<(), TraceError> {
        let given = [
            (COLUMNS, !self.columns.is_empty()),
            (UNIT_ADDRESS, self.address.is_some()),
            (UNIT_SIZE, self.size.is_some()),
            (UNIT_TIME, self.time_ps.is_some()),
            (KINDS, !self.kinds.is_empty()),
            (NUMBER_OBJECTS, self.number_objects),
        ];
        match given.iter().find(|(name, given)| *given && !format.takes.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(usage(
                &format!("{name} for `{}`", format.name),
                "the format fixes this itself".into(),
                "leave it out, or read a table as csv, tsv or blanks with declared columns",
            )),
        }
    }

    /// The declared bytes of an address step, which `format` needs.
    pub(super) fn address_unit(&self, format: &str) -> Result<u64, TraceError> {
        let problem = "the trace does not say how many bytes a step of its addresses is";
        let remedy = "declare it, as in --unit address=512B (sectors) or address=4KiB (page numbers)";
        needed(self.address, format, problem, remedy)
    }

    /// The declared bytes of a step of the size column, or of every access.
    pub(super) fn size_unit(&self, format: &str) -> Result<u64, TraceError> {
        if self.number_objects {
            return self.address_unit(format);
        }
        let remedy =
            "declare the unit of the size column, as in --unit size=1B, or without such a column the size of every \
             access";
        needed(self.size, format, "nothing says how many bytes an access touches", remedy)
    }

    /// Refuses a table in which no column holds addresses.
    pub(super) fn require_addresses(&self, format: &str) -> Result<(), TraceError> {
        let problem = "no column is declared to hold addresses";
        needed(self.has(Role::Address).then_some(()), format, problem, "declare it, as in --columns address=offset")
    }

    /// The declared picoseconds of a tick, which `format` needs.
    pub(super) fn time_unit(&self, format: &str) -> Result<u64, TraceError> {
        let problem = "the trace does not say what its times count";
        needed(self.time_ps, format, problem, "declare it, as in --unit time=ns")
    }
}

fn needed<T>(declared: Option<T>, format: &str, problem: &str, remedy: &'static str) -> Result<T, TraceError> {
    declared.ok_or_else(|| usage(&format!("`{format}`"), problem.to_owned(), remedy))
}

fn pair<'a>(option: &str, part: &'a str, remedy: &'static str) -> Result<(&'a str, &'a str), TraceError> {
    let pair = part.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    pair.ok_or_else(|| usage(option, format!("`{part}` has no `=` with words around it"), remedy))
}

pub(super) fn usage(what: &str, problem: String, remedy: &'static str) -> TraceError {
    TraceError::Usage { what: what.to_owned(), problem, remedy: remedy.into() }
}

/// `512B`, `4KiB`, `1MiB`; at least 1 byte, at most 1 GiB.
fn bytes_of(text: &str) -> Option<u64> {
    scaled(text, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)], 1 << 30)
}

/// `ns`, `100ns`: a number that may be left out, and a unit.
fn picoseconds_of(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
    let one = if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "1" };
    scaled(&format!("{one}{text}"), &UNITS, 1_000_000_000_000_000)
}

/// A whole number and its unit, from 1 to `most`.
fn scaled(text: &str, units: &[(&str, u64)], most: u64) -> Option<u64> {
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|scaled| (1..=most).contains(scaled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_and_add_up() {
        let mut options = Options::default();
        options.declare_columns("address=Offset,size=4").unwrap();
        options.declare_columns("time=1").unwrap();
        options.declare_units("address=hex:512B,size=1B,time=100ns").unwrap();
        options.declare_kinds("0=write,1=read").unwrap();
        assert_eq!(options.columns[0], (Role::Address, Column::Name("Offset".into())));
        assert_eq!(options.columns[2], (Role::Time, Column::Number(1)));
        assert_eq!((options.address, options.address_hexadecimal), (Some(512), true));
        assert_eq!((options.size, options.time_ps), (Some(1), Some(100_000)));
        assert_eq!(options.kinds, [("0".into(), Kind::Write), ("1".into(), Kind::Read)]);
    }

    #[test]
    fn what_is_no_declaration_is_told_what_to_write() {
        for text in ["address", "address=", "offset=1", "address=0", "address=1,address=2", ""] {
            let error = Options::default().declare_columns(text).unwrap_err();
            assert!(error.code() == 2 && error.to_string().contains("write ROLE=COLUMN"), "{text}: {error}");
        }
        for text in ["address=512", "address=0B", "address=2GiB", "size=hex:1B", "time=1h", "time=0s", "x=1B", "time"] {
            let error = Options::default().declare_units(text).unwrap_err();
            assert!(error.code() == 2 && error.to_string().contains("write address="), "{text}: {error}");
        }
        let error = Options::default().declare_kinds("0=load").unwrap_err();
        assert!(error.to_string().contains("fetch, read, write"), "{error}");
    }
}
