//! The tables of a device's sheet: each number with its source, or not known.
//!
//! A quantity is kept as the text that the sheet has. A plain number is a count, and its unit does not matter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{QuantityError, Unit};

/// A value and its source.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Paper and table, data sheet and page, or a measurement and how.
    pub source: String,
}

/// A number that a sheet has.
pub(super) struct Number<'a> {
    /// Its name, `table.key`.
    pub field: &'static str,
    value: &'a dyn Value,
    unit: Unit,
    pub source: &'a str,
}

impl Number<'_> {
    pub fn read(&self) -> Result<u64, QuantityError> {
        self.value.read(&self.unit)
    }
}

trait Value {
    fn read(&self, unit: &Unit) -> Result<u64, QuantityError>;
}

impl Value for String {
    fn read(&self, unit: &Unit) -> Result<u64, QuantityError> {
        unit.read(self)
    }
}

/// Cycles, bits and buffers.
impl Value for u32 {
    fn read(&self, _: &Unit) -> Result<u64, QuantityError> {
        let expected = "a whole number from 1 to 65536";
        Some(u64::from(*self)).filter(|n| *n <= 1 << 16).ok_or(QuantityError { text: self.to_string(), expected })
    }
}

impl Value for u64 {
    fn read(&self, _: &Unit) -> Result<u64, QuantityError> {
        Ok(*self)
    }
}

macro_rules! table {
    ($(#[$about:meta])* $name:ident, $table:literal { $($(#[$doc:meta])* $field:ident: $type:ty, $unit:ident;)* }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: Option<Sourced<$type>>,)*
        }

        impl $name {
            /// The numbers that are known.
            pub(super) fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
                let all = [$(self.$field.as_ref().map(|Sourced { value, source }| {
                    let field = concat!($table, ".", stringify!($field));
                    Number { field, value, unit: Unit::$unit, source }
                }),)*];
                all.into_iter().flatten()
            }
        }
    };
}

table! {
    /// Sizes.
    Geometry, "geometry" {
        /// Unit of load and program.
        page: String, SIZE;
        /// Unit of erase.
        block: String, SIZE;
        /// The whole device.
        capacity: String, SIZE;
        /// Stopover buffers of one page each.
        buffers: u32, SIZE;
    }
}

table! {
    /// Times.
    Time, "time" {
        /// Cell array to buffer, one page.
        load: String, TIME;
        /// Buffer to host, one page.
        transfer: String, TIME;
        /// Buffer to cell array, one page.
        program: String, TIME;
        /// One block.
        erase: String, TIME;
        /// One cache block of 8 words, read in place: from a buffer, from NOR's cells, from RAM.
        read: String, TIME;
        /// One cache block of 8 words, written in place.
        write: String, TIME;
    }
}

table! {
    /// Energies.
    Energy, "energy" {
        /// Cell array to buffer, one page.
        load: String, ENERGY;
        /// Buffer to host, one page.
        transfer: String, ENERGY;
        /// One cache block of 8 words, read in place.
        read: String, ENERGY;
        /// One cache block of 8 words, written in place.
        write: String, ENERGY;
        /// Buffer to cell array, one page.
        program: String, ENERGY;
        /// One block.
        erase: String, ENERGY;
    }
}

table! {
    /// Endurance.
    Endurance, "endurance" {
        /// Erases that a block is rated for, or writes of a line of byte-addressable memory.
        cycles: u64, SIZE;
    }
}

table! {
    /// Powers of a memory on the bus, in its states.
    Power, "power" {
        /// Background, precharge power-down.
        pre_pdn: String, POWER;
        /// Background, idle standby.
        pre_stby: String, POWER;
        /// Background, active power-down.
        act_pdn: String, POWER;
        /// Background, active standby.
        act_stby: String, POWER;
        /// Refresh of the whole chip; a memory that needs none leaves it out.
        refresh: String, POWER;
        /// Bank active.
        act: String, POWER;
        /// Burst read.
        rd: String, POWER;
        /// Burst write.
        wr: String, POWER;
        /// Driving data out.
        dq: String, POWER;
    }
}

table! {
    /// Bus cycles of a memory.
    Bus, "bus" {
        /// tCK.
        clock: String, TIME;
        /// tRCD, active to access.
        t_rcd: String, TIME;
        /// tWR, write recovery.
        t_wr: String, TIME;
        /// RL, cycles from a read command to its data.
        read_latency: u32, SIZE;
        /// WL, cycles from a write command to its data.
        write_latency: u32, SIZE;
        /// BL, transfers of a burst; two a cycle.
        burst: u32, SIZE;
        /// BW, bits of a transfer.
        width: u32, SIZE;
    }
}

table! {
    /// Voltage and currents of a card.
    Supply, "supply" {
        /// VDD.
        voltage: String, VOLTAGE;
        /// IDD1, while reading.
        read: String, CURRENT;
        /// IDD2, while writing.
        write: String, CURRENT;
        /// IDD3, standing by.
        standby: String, CURRENT;
    }
}

table! {
    /// Cycles of a card's port.
    Port, "port" {
        /// Clock frequency.
        frequency: String, FREQUENCY;
        /// RL, cycles before a block is read.
        read_latency: u32, SIZE;
        /// WL, cycles before a block is written.
        write_latency: u32, SIZE;
        /// Block of a read.
        read_block: String, SIZE;
        /// Block of a write.
        write_block: String, SIZE;
        /// Bits of a transfer; two transfers a cycle.
        width: u32, SIZE;
    }
}
