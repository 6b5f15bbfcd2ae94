//! The electric part of a sheet: powers, currents and bus cycles of a memory that holds a swap area (DR.Swap, TCAD
//! 2016, table II).
//!
//! Memories on the processor's bus have `[power]` and `[bus]`; cards behind a clocked port (eMMC) have `[supply]` and
//! `[port]`.

use coldframe_core::{Bytes, MicroWatt, Ps};
use serde::{Deserialize, Serialize};

use super::{Sheet, SheetError, Sourced};
use crate::quantity::{self, QuantityError};

/// Powers of a memory on the bus, in its states.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Background, precharge power-down.
    pub pre_pdn: Option<Sourced<String>>,
    /// Background, idle standby.
    pub pre_stby: Option<Sourced<String>>,
    /// Background, active power-down.
    pub act_pdn: Option<Sourced<String>>,
    /// Background, active standby.
    pub act_stby: Option<Sourced<String>>,
    /// Refresh of the whole chip; a memory that needs none leaves it out.
    pub refresh: Option<Sourced<String>>,
    /// Bank active.
    pub act: Option<Sourced<String>>,
    /// Burst read.
    pub rd: Option<Sourced<String>>,
    /// Burst write.
    pub wr: Option<Sourced<String>>,
    /// Driving data out.
    pub dq: Option<Sourced<String>>,
}

/// Bus cycles of a memory.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// tCK.
    pub clock: Option<Sourced<String>>,
    /// tRCD, active to access.
    pub t_rcd: Option<Sourced<String>>,
    /// tWR, write recovery.
    pub t_wr: Option<Sourced<String>>,
    /// RL, cycles from a read command to its data.
    pub read_latency: Option<Sourced<u32>>,
    /// WL, cycles from a write command to its data.
    pub write_latency: Option<Sourced<u32>>,
    /// BL, transfers of a burst; two a cycle.
    pub burst: Option<Sourced<u32>>,
    /// BW, bits of a transfer.
    pub width: Option<Sourced<u32>>,
}

/// Voltage and currents of a card.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supply {
    /// VDD.
    pub voltage: Option<Sourced<String>>,
    /// IDD1, while reading.
    pub read: Option<Sourced<String>>,
    /// IDD2, while writing.
    pub write: Option<Sourced<String>>,
    /// IDD3, standing by.
    pub standby: Option<Sourced<String>>,
}

/// Cycles of a card's port.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Clock frequency.
    pub frequency: Option<Sourced<String>>,
    /// RL, cycles before a block is read.
    pub read_latency: Option<Sourced<u32>>,
    /// WL, cycles before a block is written.
    pub write_latency: Option<Sourced<u32>>,
    /// Block of a read.
    pub read_block: Option<Sourced<String>>,
    /// Block of a write.
    pub write_block: Option<Sourced<String>>,
    /// Bits of a transfer; two transfers a cycle.
    pub width: Option<Sourced<u32>>,
}

/// The numbers of a memory on the bus, as equations 1 to 5 take them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The fields of `Power` and `Bus`, read.
pub struct BusMemory {
    pub pre_pdn: MicroWatt,
    pub pre_stby: MicroWatt,
    pub act_pdn: MicroWatt,
    pub act_stby: MicroWatt,
    pub refresh: MicroWatt,
    pub act: MicroWatt,
    pub rd: MicroWatt,
    pub wr: MicroWatt,
    pub dq: MicroWatt,
    pub clock: Ps,
    pub t_rcd: Ps,
    pub t_wr: Ps,
    pub read_latency: u64,
    pub write_latency: u64,
    pub burst: u64,
    pub width: u64,
    /// The size of the chip. Everything in the chip shares its refresh.
    pub chip: Bytes,
}

/// The numbers of a card, as equations 6 to 12 take them. Powers are voltage times current (equations 7 to 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The fields of `Supply` and `Port`, read.
pub struct Card {
    pub rd: MicroWatt,
    pub wr: MicroWatt,
    pub standby: MicroWatt,
    pub frequency_hz: u64,
    pub read_latency: u64,
    pub write_latency: u64,
    pub read_block: Bytes,
    pub write_block: Bytes,
    pub width: u64,
}

type Read = fn(&str) -> Result<u64, QuantityError>;
type Text<'a> = (&'static str, &'a Option<Sourced<String>>, Read);
type Count<'a> = (&'static str, &'a Option<Sourced<u32>>);

const POWER: Read = |s| quantity::power(s).map(|p| p.0);
const TIME: Read = |s| quantity::time(s).map(|t| t.0);
const SIZE: Read = |s| quantity::bytes(s).map(|b| b.0);

impl Sheet {
    fn electric_texts(&self) -> [Text<'_>; 19] {
        let (p, b, s, port) = (&self.power, &self.bus, &self.supply, &self.port);
        [
            ("power.pre_pdn", &p.pre_pdn, POWER),
            ("power.pre_stby", &p.pre_stby, POWER),
            ("power.act_pdn", &p.act_pdn, POWER),
            ("power.act_stby", &p.act_stby, POWER),
            ("power.refresh", &p.refresh, POWER),
            ("power.act", &p.act, POWER),
            ("power.rd", &p.rd, POWER),
            ("power.wr", &p.wr, POWER),
            ("power.dq", &p.dq, POWER),
            ("bus.clock", &b.clock, TIME),
            ("bus.t_rcd", &b.t_rcd, TIME),
            ("bus.t_wr", &b.t_wr, TIME),
            ("supply.voltage", &s.voltage, quantity::millivolts),
            ("supply.read", &s.read, quantity::microamperes),
            ("supply.write", &s.write, quantity::microamperes),
            ("supply.standby", &s.standby, quantity::microamperes),
            ("port.frequency", &port.frequency, quantity::hertz),
            ("port.read_block", &port.read_block, SIZE),
            ("port.write_block", &port.write_block, SIZE),
        ]
    }

    fn electric_counts(&self) -> [Count<'_>; 7] {
        let (b, port) = (&self.bus, &self.port);
        [
            ("bus.read_latency", &b.read_latency),
            ("bus.write_latency", &b.write_latency),
            ("bus.burst", &b.burst),
            ("bus.width", &b.width),
            ("port.read_latency", &port.read_latency),
            ("port.write_latency", &port.write_latency),
            ("port.width", &port.width),
        ]
    }

    pub(super) fn check_electric(&self, file: &str) -> Result<(), SheetError> {
        let bad = |field, reason: String| Err(SheetError::Field { file: file.into(), field, reason });
        for (field, value, read) in self.electric_texts() {
            let Some(Sourced { value, source }) = value else { continue };
            match read(value) {
                Err(error) => return bad(field, error.to_string()),
                Ok(0) => return bad(field, "is 0; leave the field out if it is not known or not there".into()),
                Ok(_) if source.trim().is_empty() => return bad(field, NO_SOURCE.into()),
                Ok(_) => {}
            }
        }
        for (field, count) in self.electric_counts() {
            let Some(Sourced { value, source }) = count else { continue };
            if *value == 0 || *value > 1 << 16 {
                return bad(field, format!("is {value}; give 1 to 65536"));
            }
            if source.trim().is_empty() {
                return bad(field, NO_SOURCE.into());
            }
        }
        Ok(())
    }

    fn electric_text(&self, field: &'static str) -> Result<u64, SheetError> {
        let (_, value, read) = *self.electric_texts().iter().find(|(name, ..)| *name == field).expect("it is listed");
        let value = value.as_ref().ok_or_else(|| self.missing(field))?;
        Ok(read(&value.value).expect("checked when read"))
    }

    fn electric_count(&self, field: &'static str) -> Result<u64, SheetError> {
        let (_, value) = *self.electric_counts().iter().find(|(name, _)| *name == field).expect("it is listed");
        Ok(value.as_ref().ok_or_else(|| self.missing(field))?.value.into())
    }

    /// The numbers of a memory on the bus. A sheet without `power.refresh` means that the memory needs none.
    ///
    /// # Errors
    /// The sheet lacks a number; the message names it.
    pub fn bus_memory(&self) -> Result<BusMemory, SheetError> {
        let power = |field| self.electric_text(field).map(MicroWatt);
        let time = |field| self.electric_text(field).map(Ps);
        Ok(BusMemory {
            pre_pdn: power("power.pre_pdn")?,
            pre_stby: power("power.pre_stby")?,
            act_pdn: power("power.act_pdn")?,
            act_stby: power("power.act_stby")?,
            refresh: if self.power.refresh.is_some() { power("power.refresh")? } else { MicroWatt::ZERO },
            act: power("power.act")?,
            rd: power("power.rd")?,
            wr: power("power.wr")?,
            dq: power("power.dq")?,
            clock: time("bus.clock")?,
            t_rcd: time("bus.t_rcd")?,
            t_wr: time("bus.t_wr")?,
            read_latency: self.electric_count("bus.read_latency")?,
            write_latency: self.electric_count("bus.write_latency")?,
            burst: self.electric_count("bus.burst")?,
            width: self.electric_count("bus.width")?,
            chip: self.capacity()?,
        })
    }

    /// The numbers of a card.
    ///
    /// # Errors
    /// The sheet lacks a number; the message names it.
    pub fn card(&self) -> Result<Card, SheetError> {
        let millivolts = self.electric_text("supply.voltage")?;
        // Equations 7 to 9: mV times uA are nW; rounded down to whole microwatts.
        let power = |field| Ok(MicroWatt(millivolts * self.electric_text(field)? / 1_000));
        Ok(Card {
            rd: power("supply.read")?,
            wr: power("supply.write")?,
            standby: power("supply.standby")?,
            frequency_hz: self.electric_text("port.frequency")?,
            read_latency: self.electric_count("port.read_latency")?,
            write_latency: self.electric_count("port.write_latency")?,
            read_block: self.electric_text("port.read_block").map(Bytes)?,
            write_block: self.electric_text("port.write_block").map(Bytes)?,
            width: self.electric_count("port.width")?,
        })
    }
}

const NO_SOURCE: &str = "has no source; say where the number comes from";

#[cfg(test)]
mod tests {
    use crate::sheet::{find, parse};

    const PCM: &str = include_str!("../../../../data/sheets/lpddr2-pcm.toml");
    const EMMC: &str = include_str!("../../../../data/sheets/inand-emmc.toml");

    #[test]
    fn a_bad_number_names_file_and_field() {
        for (good, from, to, reason) in [
            (PCM, "\"156.0mW\"", "\"-156.0mW\"", "my.toml, line 18: field `power.act`: `-156.0mW` cannot be read"),
            (PCM, "\"156.0mW\"", "\"0mW\"", "`power.act`: is 0"),
            (PCM, "act =", "porosity =", "unknown field `porosity`"),
            (PCM, "burst = { value = 8", "burst = { value = 0", "`bus.burst`: is 0"),
            (EMMC, "\"350uA\"", "\"-350uA\"", "my.toml, line 18: field `supply.standby`: `-350uA` cannot be read"),
            (EMMC, "\"26MHz\"", "\"26\"", "`port.frequency`: `26` cannot be read"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = parse("my.toml", &good.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("my.toml") && error.contains(reason), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn a_card_is_no_memory_on_the_bus() {
        let error = find("iNAND-eMMC").unwrap().bus_memory().unwrap_err().to_string();
        assert!(error.contains("iNAND-eMMC") && error.contains("power.pre_pdn"), "{error}");
    }
}
