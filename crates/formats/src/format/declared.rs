//! The columns, units and kinds that a user declares, applied to the rows of a table.

use super::fields::Field;
use super::lines::Fault;
use super::options::{Options, Role, KINDS_REMEDY};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::reference::{Kind, Reference};

pub(super) struct Declared {
    pub(super) options: Options,
    /// Bytes of a step of an address, and of a size.
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) time_ps: u64,
}

impl Declared {
    /// # Errors
    /// A declaration that a table needs is missing.
    pub(super) fn new(options: &Options, format: &'static str, time_ps: u64) -> Result<Declared, TraceError> {
        options.require_addresses(format)?;
        let (size, address) = (options.size_unit(format)?, options.address_unit(format)?);
        Ok(Declared { options: options.clone(), address, size, time_ps })
    }

    /// A row before its columns are known.
    pub(super) fn row(&self) -> Reference {
        let size = if self.options.has(Role::Size) { 1 } else { self.size as u32 };
        Reference::new(0, size, Kind::Read)
    }

    /// Puts a field of text into a row.
    pub(super) fn put(&self, role: Role, field: Field<'_>, row: &mut Reference) -> Result<(), Box<Fault>> {
        let prefixed = field.text.starts_with(b"0x") || field.text.starts_with(b"0X");
        let bytes = |unit, hexadecimal: bool| match hexadecimal || prefixed {
            true => field.times(field.hexadecimal()?, unit),
            false => field.scaled(unit),
        };
        match role {
            Role::Address => row.address = bytes(self.address, self.options.address_hexadecimal)?,
            Role::Size => row.size = field.narrow(bytes(self.size, false)?)?,
            Role::Kind => row.kind = self.kind(&field)?,
            Role::Task => row.task = field.number(u64::from(u32::MAX))? as u32,
            Role::Time => row.time = field.nanoseconds(self.time_ps)?,
        }
        Ok(())
    }

    fn kind(&self, field: &Field<'_>) -> Result<Kind, Box<Fault>> {
        let kind = self.options.kind(field.text);
        kind.ok_or_else(|| Box::new(Fault { remedy: KINDS_REMEDY, ..*field.fault("is no kind of access") }))
    }

    pub(super) fn columns(&self) -> Columns {
        Columns { time: self.options.has(Role::Time), count: false, task: self.options.has(Role::Task) }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec!["columns, units and kinds as declared by the import".to_owned()];
        if !self.options.has(Role::Kind) {
            notes.push("no column was declared to hold kinds: all accesses are stored as reads".into());
        }
        notes
    }
}
