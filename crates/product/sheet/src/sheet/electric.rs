//! The electric part of a sheet: powers, currents and bus cycles of a memory that holds a swap area (DR.Swap, TCAD
//! 2016, table II).
//!
//! Memories on the processor's bus have `[power]` and `[bus]`; cards behind a clocked port (eMMC) have `[supply]` and
//! `[port]`.

use coldframe_core::{Bytes, MicroWatt, Ps};

use super::{Sheet, SheetError};

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

impl Sheet {
    /// The numbers of a memory on the bus. A sheet without `power.refresh` means that the memory needs none.
    pub fn bus_memory(&self) -> Result<BusMemory, SheetError> {
        let power = |field| self.number(field).map(MicroWatt);
        let time = |field| self.number(field).map(Ps);
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
            read_latency: self.number("bus.read_latency")?,
            write_latency: self.number("bus.write_latency")?,
            burst: self.number("bus.burst")?,
            width: self.number("bus.width")?,
            chip: self.capacity()?,
        })
    }

    /// The numbers of a card.
    pub fn card(&self) -> Result<Card, SheetError> {
        let millivolts = self.number("supply.voltage")?;
        // Equations 7 to 9: mV times uA are nW; rounded down to whole microwatts.
        let power = |field| Ok(MicroWatt(millivolts * self.number(field)? / 1_000));
        Ok(Card {
            rd: power("supply.read")?,
            wr: power("supply.write")?,
            standby: power("supply.standby")?,
            frequency_hz: self.number("port.frequency")?,
            read_latency: self.number("port.read_latency")?,
            write_latency: self.number("port.write_latency")?,
            read_block: self.number("port.read_block").map(Bytes)?,
            write_block: self.number("port.write_block").map(Bytes)?,
            width: self.number("port.width")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::sheet::{find, parse};

    const PCM: &str = include_str!("../../../../../data/sheets/lpddr2-pcm.toml");
    const EMMC: &str = include_str!("../../../../../data/sheets/inand-emmc.toml");

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
