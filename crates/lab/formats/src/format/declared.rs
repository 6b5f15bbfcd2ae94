//! The columns, units and kinds that a user declares, applied to the rows of a table.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

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
    /// The number of each key met, if objects are to be numbered.
    numbers: RefCell<FxHashMap<Box<[u8]>, u64>>,
}

impl Declared {
    pub(super) fn new(options: &Options, format: &'static str, time_ps: u64) -> Result<Declared, TraceError> {
        options.require_addresses(format)?;
        let (size, address) = (options.size_unit(format)?, options.address_unit(format)?);
        Ok(Declared { options: options.clone(), address, size, time_ps, numbers: RefCell::default() })
    }

    /// A row before its columns are known.
    pub(super) fn row(&self) -> Reference {
        let size = if self.options.has(Role::Size) && !self.options.number_objects { 1 } else { self.size as u32 };
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
            Role::Address if self.options.number_objects => {
                row.address = field.times(self.number(field.text), self.address)?
            }
            // An object takes one unit, whatever its size: some caches log a size of 0 for what they do not have.
            Role::Size if self.options.number_objects => {}
            Role::Address => row.address = bytes(self.address, self.options.address_hexadecimal)?,
            Role::Size => row.size = field.narrow(bytes(self.size, false)?)?,
            Role::Kind => row.kind = self.kind(&field)?,
            Role::Task => row.task = field.number(u64::from(u32::MAX))? as u32,
            Role::Time => row.time = field.nanoseconds(self.time_ps)?,
        }
        Ok(())
    }

    /// The number of a key, which may be any text: 0, 1, ... in the order of their first appearance.
    fn number(&self, key: &[u8]) -> u64 {
        let mut numbers = self.numbers.borrow_mut();
        let next = numbers.len() as u64;
        numbers.get(key).copied().unwrap_or_else(|| *numbers.entry(key.into()).or_insert(next))
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
        if self.options.number_objects {
            let (objects, unit) = (self.numbers.borrow().len(), self.address);
            notes.push(format!(
                "{objects} objects numbered in the order of their first request; each takes {unit} bytes"
            ));
        }
        notes
    }
}
