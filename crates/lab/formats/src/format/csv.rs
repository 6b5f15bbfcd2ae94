//! Tables as text, with columns and units that the user declares.
//!
//! ```text
//! ts,op,offset,length              csv:FILE --columns time=ts,kind=op,address=offset,size=length
//! 0.5,W,4096,512                            --unit time=s,address=1B,size=1B
//! ```
//! A column given by name requires a header. Numbers are decimal, or hexadecimal with `0x` (or without it, with `--unit
//! address=hex:1B`). Kinds are the usual words; numbers need `--kinds`. With `--number-objects` addresses are keys: any
//! text, as in the traces of caches (Twitter, IBM, Meta).

use super::declared::Declared;
use super::fields::{Fields, Separator};
use super::lines::Fault;
use super::options::{self, Column, Options, Role, COLUMNS, KINDS, NUMBER_OBJECTS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME};
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::{Format, Input, RowReader};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;

pub(super) const FORMAT: Format = Format {
    name: "csv",
    summary: "commas between fields; needs --columns and --unit",
    example: "csv:trace.csv  (with --columns address=offset,size=length,kind=op --unit address=1B,size=1B)",
    fidelity: Fidelity::ExactReferences,
    skips: "the header, blank lines",
    takes: &[COLUMNS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME, KINDS, NUMBER_OBJECTS],
    guess: None,
    open: |input, options| open(input, options, "csv", Separator::Byte(b',')),
};
pub(super) const BLOCKS: Format = Format {
    name: "block-csv",
    summary: "the same, of requests that reached a block device",
    example: "block-csv:Financial1.spc  (with --columns task=1,address=2,size=3,kind=4,time=5 --unit \
              address=512B,size=1B,time=s)",
    fidelity: Fidelity::BlockOnly,
    ..FORMAT
};
pub(super) const TSV: Format = Format {
    name: "tsv",
    summary: "tabs between fields; needs --columns and --unit",
    example: "tsv:trace.tsv  (with --columns address=1,kind=2 --unit address=4KiB,size=4KiB)",
    open: |input: Input, options: &Options| open(input, options, "tsv", Separator::Byte(b'\t')),
    ..FORMAT
};
pub(super) const BLANKS: Format = Format {
    name: "blanks",
    summary: "blanks and tabs between fields, requests to a block device",
    example:
        "blanks:homes.blkparse  (with --columns time=1,address=4,size=5,kind=6 --unit time=ns,address=512B,size=512B)",
    fidelity: Fidelity::BlockOnly,
    open: |input: Input, options: &Options| open(input, options, "blanks", Separator::Blanks),
    ..FORMAT
};

const LAYOUT: &str = "a line holds the columns that --columns names; check their numbers and units, or add --skip-bad";

/// Columns beyond this are not looked at.
const COLUMNS_MAX: usize = 1024;

struct Table {
    separator: Separator,
    declared: Declared,
    /// The content of each field, once it is known: for columns named by words, after the header.
    roles: Vec<Option<Role>>,
    header: bool,
}

fn open(
    input: Input,
    options: &Options,
    format: &'static str,
    separator: Separator,
) -> Result<Box<dyn RowReader>, TraceError> {
    let stream = input.stream()?;
    let time_ps = if options.has(Role::Time) { options.time_unit(format)? } else { 0 };
    let declared = Declared::new(options, format, time_ps)?;
    let header = options.columns.iter().any(|(_, column)| matches!(column, Column::Name(_)));
    let mut table = Table { separator, declared, roles: Vec::new(), header };
    table.number_columns()?;
    Ok(text::read(stream, options, table))
}

impl Parse for Table {
    fn parse(&mut self, line: &[u8], _: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Skip);
        }
        if std::mem::take(&mut self.header) {
            return self.read_header(line);
        }
        let mut row = self.declared.row();
        let mut fields = Fields::new(line, self.separator, LAYOUT);
        for role in &self.roles {
            match role {
                Some(role) => self.declared.put(*role, fields.next(role.name())?.unquoted(), &mut row)?,
                None => drop(fields.optional("column")),
            }
        }
        Ok(Parsed::Request(row))
    }

    fn columns(&self) -> Columns {
        self.declared.columns()
    }

    fn notes(&self) -> Vec<String> {
        self.declared.notes()
    }
}

impl Table {
    fn number_columns(&mut self) -> Result<(), TraceError> {
        for (role, column) in &self.declared.options.columns {
            let Column::Number(number) = column else { continue };
            if *number > COLUMNS_MAX {
                return Err(options::usage(
                    "--columns",
                    format!("column {number}"),
                    "a table has at most 1024 columns",
                ));
            }
            place(&mut self.roles, *number - 1, *role);
        }
        Ok(())
    }

    fn read_header(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, self.separator, LAYOUT);
        let names: Vec<&[u8]> = std::iter::from_fn(|| fields.optional("header"))
            .take(COLUMNS_MAX)
            .map(|field| field.unquoted().text)
            .collect();
        for (role, column) in &self.declared.options.columns {
            let Column::Name(name) = column else { continue };
            let Some(at) = names.iter().position(|known| *known == name.as_bytes()) else {
                let problem = format!("no column `{name}` in this header");
                return Err(super::fields::fault("header", 0..line.len(), problem, LAYOUT));
            };
            place(&mut self.roles, at, *role);
        }
        Ok(Parsed::Skip)
    }
}

/// Notes that this column holds this role.
fn place(roles: &mut Vec<Option<Role>>, at: usize, role: Role) {
    if roles.len() <= at {
        roles.resize(at + 1, None);
    }
    roles[at] = Some(role);
}
