//! The costs of a swap area: time for pages to and from it, energy for all of its work. Powers and times come from
//! its data sheet.

use crate::systems::backing::{Backing, Compression, Path, PAGE};
use coldframe_core::{Bytes, Pj, Ps};
use coldframe_lane::machine::{DeviceTimes, MachineConfig, Route, Stages, Way, Zeros};
use coldframe_sheet::sheet::electric::{BusMemory, Card};
use coldframe_sheet::swap_energy::{bus_energy, bus_times, card_energy, card_times, SwapCounts, SwapLedger};
use coldframe_sheet::{sheet, Sheet, StagePrices};

use crate::error::ExperimentError;
use crate::phone::MachineParameters;

/// The place of the swap area, with every number read from its sheet.
#[derive(Clone, Debug)]
pub struct PhoneArea {
    pub name: &'static str,
    /// The sheet's name; empty without an area.
    pub device: String,
    /// Bytes of it.
    pub size: Bytes,
    /// Whether swapped pages are read in their slots.
    pub direct_read: bool,
    /// Writes that a cell endures, if the sheet has the number. A card moves its cells behind its controller, so
    /// slots say nothing about them.
    pub cycles: Option<u64>,
    /// RAM that a full area takes: none, unless it holds compressed pages.
    pub takes: Bytes,
    path: Path,
    slowdown: Option<(u64, u64)>,
    compression: Option<Compression>,
    electric: Electric,
}

#[derive(Clone, Copy, Debug)]
enum Electric {
    None,
    Bus(BusMemory),
    Card(Card),
}

impl PhoneArea {
    /// `size` bytes of a backing. If another device than its own is given, copies are priced by that device's sheet.
    pub fn of(backing: &Backing, device: Option<&str>, size: Bytes) -> Result<PhoneArea, ExperimentError> {
        let none = PhoneArea {
            name: backing.name,
            device: String::new(),
            size: Bytes::ZERO,
            direct_read: false,
            cycles: None,
            takes: Bytes::ZERO,
            path: backing.path,
            slowdown: None,
            compression: backing.compression,
            electric: Electric::None,
        };
        if let Some(compression) = backing.compression {
            let takes = Bytes(((size.0 as f64 / compression.ratio) as u64).next_multiple_of(PAGE.0));
            return Ok(PhoneArea { size, takes, ..none });
        }
        let Some(own) = backing.sheet else { return Ok(none) };
        let sheet = sheet::find(device.unwrap_or(own))?;
        fits(&sheet, size)?;
        Ok(PhoneArea {
            device: sheet.name.clone(),
            size,
            direct_read: backing.direct_read,
            cycles: sheet.cycles().ok().filter(|_| backing.path != Path::BlockLayer),
            slowdown: device.is_none().then_some(backing.slowdown),
            electric: match backing.path {
                Path::BlockLayer => Electric::Card(sheet.card()?),
                Path::FakeIo | Path::Memory => Electric::Bus(sheet.bus_memory()?),
            },
            ..none
        })
    }
}

impl PhoneArea {
    /// The compression ratio; `None`: pages are not compressed.
    pub fn ratio(&self) -> Option<f64> {
        self.compression.map(|compression| compression.ratio)
    }

    /// The energy of reading one line in its slot, with an activation of its own (equations 2, 4, 5 and 13 for a line).
    pub fn line_energy(&self) -> Pj {
        match &self.electric {
            Electric::Bus(memory) => line(memory),
            Electric::None | Electric::Card(_) => Pj(0),
        }
    }

    /// The extra cost of reading one line here over DRAM; negative if DRAM costs more.
    pub fn line_excess(&self) -> Result<f64, ExperimentError> {
        let dram = sheet::find("LPDDR2-DRAM")?.bus_memory()?;
        let Electric::Bus(memory) = &self.electric else { return Ok(0.0) };
        Ok(line(memory).0 as f64 - line(&dram).0 as f64)
    }
}

/// The energy of reading a line of a memory.
fn line(memory: &BusMemory) -> Pj {
    bus_energy(memory, LINE, Bytes::ZERO, &ONE_READ).total()
}

/// A line of the processor's caches: 64 bytes in the second level, the one next to memory (2.3 GHz Qualcomm 8974, Krait
/// 400).
const LINE: Bytes = Bytes(64);

const ONE_READ: SwapCounts = SwapCounts { swap_ins: 1, swap_outs: 0, up_time: Ps::ZERO };

/// The extra time of a line from the area over one from DRAM; zero if pages are not read in place.
fn slot_read(area: &PhoneArea, dram: &BusMemory) -> Ps {
    let Electric::Bus(memory) = area.electric else { return Ps::ZERO };
    let (near, far) = (bus_times(dram, LINE, &ONE_READ), bus_times(&memory, LINE, &ONE_READ));
    match area.slowdown {
        Some((read, _)) => Ps(near.active.0 * (read - 1)),
        None => far.active.saturating_sub(near.active),
    }
}

fn fits(sheet: &Sheet, area: Bytes) -> Result<(), ExperimentError> {
    let capacity = sheet.capacity()?;
    if area <= capacity {
        return Ok(());
    }
    let show = coldframe_sheet::quantity::show_bytes;
    let (area, capacity) = (show(area), show(capacity));
    let reason = format!("{area} of swap do not fit into the {capacity} of {}; give as much or less", sheet.name);
    Err(ExperimentError::setting("swap.size", reason))
}

/// Energy of the swap area by its sheet's equations; zero without an area.
pub fn energy(area: &PhoneArea, counts: &SwapCounts) -> SwapLedger {
    match &area.electric {
        Electric::None => SwapLedger::default(),
        Electric::Card(card) => card_energy(card, PAGE, counts),
        Electric::Bus(memory) => bus_energy(memory, PAGE, area.size, counts),
    }
}

/// Times of the processor and the card of a phone.
#[derive(Clone, Copy, Debug)]
pub struct PhonePrices {
    /// Trap, page table and return, for each fault.
    pub fault: Ps,
    /// Processor time to bring a page from the swap area.
    pub swap_in: Ps,
    /// Processor time to write a page to the swap area.
    pub swap_out: Ps,
    /// Whether the swap area is on the card too. The card then does its part of each transfer.
    pub swap_on_card: bool,
    /// Extra time of a reference to a page in its slot, over a reference to DRAM.
    pub slot_read: Ps,
    /// Time in the block layer, for each page from or to a file.
    pub block_layer: Ps,
    pub card: DeviceTimes,
}

impl PhonePrices {
    /// The machine with these prices: home slots are files on the card, and a first touch of other pages brings zeros.
    pub fn machine(&self) -> MachineConfig {
        let program = self.card.program.unwrap_or(Ps::ZERO);
        let on_card = |time: Ps| self.swap_on_card.then_some(time);
        let way = |processor, device| Way { processor, device };
        MachineConfig {
            stages: Stages::AtOnce(self.fault),
            home: Route {
                load: way(self.block_layer, Some(self.card.load)),
                write: way(self.block_layer, Some(program)),
            },
            area: Route {
                load: way(self.swap_in, on_card(self.card.load)),
                write: way(self.swap_out, on_card(program)),
            },
            slot_read: self.slot_read,
            ..MachineConfig::device(StagePrices::uniform(Ps::ZERO), self.card, Zeros::Free)
        }
    }
}

fn us(us: f64) -> Ps {
    Ps((us * 1e6) as u64)
}

/// The time of copying a page from and to the area by the processor, without software. One memory is read and the
/// other written, by equations 2 and 3. The side of a memory with a slowdown takes that many times DRAM's time
/// (section V.A emulates PCM in this way).
fn copies(area: &PhoneArea, dram: &BusMemory) -> (Ps, Ps) {
    let one = SwapCounts { swap_ins: 1, swap_outs: 1, up_time: Ps::ZERO };
    if let Some(compression) = area.compression {
        return (compression.decompress, compression.compress);
    }
    let Electric::Bus(memory) = &area.electric else { return (Ps::ZERO, Ps::ZERO) };
    let (near, far) = (bus_times(dram, PAGE, &one), bus_times(memory, PAGE, &one));
    match area.slowdown {
        Some((read, write)) => (near.read * read + near.write, near.read + near.write * write),
        None => (far.read + near.write, near.read + far.write),
    }
}

/// The prices of this area on this machine. Files are on the card of DR.Swap's phone.
pub fn prices(area: &PhoneArea, m: &MachineParameters) -> Result<PhonePrices, ExperimentError> {
    let one = SwapCounts { swap_ins: 1, swap_outs: 1, up_time: Ps::ZERO };
    let dram = sheet::find("LPDDR2-DRAM")?.bus_memory()?;
    let card = match &area.electric {
        Electric::Card(card) => *card,
        _ => sheet::find("iNAND-eMMC")?.card()?,
    };
    let (read, write) = card_times(&card, PAGE, &one);
    let software = if area.path == Path::Memory { Ps::ZERO } else { us(m.block_layer_us) };
    let (copy_in, copy_out) = copies(area, &dram);
    Ok(PhonePrices {
        fault: us(m.fault_us),
        swap_in: software + copy_in,
        swap_out: software + copy_out + if area.path == Path::BlockLayer { us(m.page_out_us) } else { Ps::ZERO },
        slot_read: slot_read(area, &dram),
        swap_on_card: area.path == Path::BlockLayer,
        block_layer: us(m.block_layer_us),
        card: DeviceTimes { load: us(m.nand_read_us) + read, program: Some(us(m.nand_program_us) + write) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phone::shipped;
    use crate::systems::drswap::BACKINGS;

    fn area(i: usize, device: Option<&str>) -> PhoneArea {
        PhoneArea::of(&BACKINGS[i], device, Bytes(1 << 20)).unwrap()
    }

    #[test]
    fn an_area_larger_than_its_device_is_refused() {
        let refusal = PhoneArea::of(&BACKINGS[2], None, Bytes(2 << 30)).unwrap_err().to_string();
        assert!(
            refusal.contains("swap.size") && refusal.contains("2GiB") && refusal.contains("1GiB of LPDDR2-PCM"),
            "{refusal}"
        );
        assert!(PhoneArea::of(&BACKINGS[4], None, Bytes(2 << 30)).is_ok(), "no area is never too large");
    }

    #[test]
    fn a_card_is_no_memory_and_a_memory_no_card() {
        let refusal = PhoneArea::of(&BACKINGS[3], Some("iNAND-eMMC"), PAGE).unwrap_err().to_string();
        assert!(refusal.contains("iNAND-eMMC") && refusal.contains("power.pre_pdn"), "{refusal}");
        let refusal = PhoneArea::of(&BACKINGS[1], Some("LPDDR2-PCM"), PAGE).unwrap_err().to_string();
        assert!(refusal.contains("LPDDR2-PCM") && refusal.contains("supply.voltage"), "{refusal}");
    }

    #[test]
    fn prices_by_hand() {
        let m = shipped();
        let of = |area: PhoneArea| prices(&area, &m).unwrap();
        // 1.295 us and 3.21 us are a page read and written in DRAM; PCM twice and twelve times that.
        let nvm = of(area(3, None));
        assert_eq!((nvm.swap_in, nvm.swap_out), (Ps(2 * 1_295_000 + 3_210_000), Ps(1_295_000 + 12 * 3_210_000)));
        // By its own sheet PCM reads a page in 5.135 us and writes it in 8.965 us.
        let by_sheet = of(area(3, Some("LPDDR2-PCM")));
        assert_eq!((by_sheet.swap_in, by_sheet.swap_out), (Ps(5_135_000 + 3_210_000), Ps(1_295_000 + 8_965_000)));
        let ram_disk = of(area(0, None));
        assert_eq!(ram_disk.swap_in, us(m.block_layer_us) + Ps(1_295_000 + 3_210_000));
        let emmc = of(area(1, None));
        assert!(emmc.swap_on_card && emmc.swap_in == us(m.block_layer_us));
        // Only with the card does a task wait for a page-out.
        let waited = MachineParameters { page_out_us: 1140.0, ..m };
        let out = |i| prices(&area(i, None), &waited).unwrap().swap_out;
        assert_eq!((out(1), out(3)), (us(m.block_layer_us + 1140.0), nvm.swap_out));
    }
}
