//! One category on one backing: the same engine, another configuration.

use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Backed, Bytes, Ps, SlotsConfig};
use coldframe_device::sheet;
use coldframe_device::swap_energy::{bus_energy, bus_times, card_energy, card_times, SwapCounts, SwapLedger};
use coldframe_sim::clock::DeviceTimes;
use coldframe_sim::front_end::Spaces;
use coldframe_sim::{Foreground, ForegroundConfig, ForegroundPrices, ForegroundResult};
use coldframe_systems::drswap::{Backing, Path, PAGE};
use coldframe_trace::{Block, Provenance};

use super::workload::MachineParameters;
use crate::error::ReportError;

/// A trace to run.
pub struct Input {
    /// What it is called.
    pub name: String,
    /// Its rows.
    pub rows: Block,
    /// Its tasks and mappings.
    pub provenance: Provenance,
    /// Distinct pages, or a bound.
    pub pages: usize,
}

/// What a run came to.
pub struct Outcome {
    /// Counts and times.
    pub result: ForegroundResult,
    /// Energy of the swap area by term.
    pub energy: SwapLedger,
}

impl Outcome {
    /// Mean of the fault handling that switches back waited for; the first round only starts the applications.
    pub fn switch_delay(&self, tasks: usize) -> Ps {
        let back = self.result.switches.get(tasks..).unwrap_or_default();
        Ps(back.iter().map(|s| s.delay.0).sum::<u64>() / back.len().max(1) as u64)
    }
}

/// Runs `input` in `ram` bytes with `area` bytes of swap.
///
/// # Errors
/// A sheet lacks a number, or the area is larger than its device.
pub fn run(
    input: &Input,
    backing: &Backing,
    ram: Bytes,
    area: Bytes,
    machine: &MachineParameters,
    up_time: Ps,
) -> Result<Outcome, ReportError> {
    let area = if backing.sheet.is_some() { area } else { Bytes::ZERO };
    fits(backing, area)?;
    let config = ForegroundConfig {
        policy: PolicyChoice::parse("clock")?,
        frames: (ram.0 / PAGE.0) as usize,
        slots: SlotsConfig {
            slots: (area.0 / PAGE.0) as usize,
            files_min: (machine.files_min_mb * 1_000_000 / PAGE.0) as usize,
        },
        direct_read: backing.direct_read,
        prices: prices(backing, machine)?,
    };
    let tasks = &input.provenance.tasks;
    let spaces = Spaces(tasks.iter().map(|task| task.space).collect());
    let spaces_max = tasks.iter().map(|task| task.space as usize + 1).max().unwrap_or(1);
    let mut run = Foreground::new(&config, input.pages, spaces, spaces_max).map_err(coldframe_sim::RunError::from)?;
    let files: Vec<_> = input.provenance.mappings.iter().filter(|m| !m.name.starts_with('[')).collect();
    run.feed(&input.rows, &|address| {
        let in_file = files.iter().any(|m| (m.start..m.end).contains(&address));
        if in_file {
            Backed::File
        } else {
            Backed::Anonymous
        }
    });
    let result = run.result();
    let counts = SwapCounts { swap_ins: result.counts.swap_ins, swap_outs: result.counts.swap_outs, up_time };
    Ok(Outcome { energy: energy(backing, area, &counts)?, result })
}

fn fits(backing: &Backing, area: Bytes) -> Result<(), ReportError> {
    let Some(name) = backing.sheet else { return Ok(()) };
    let sheet = sheet::find(name)?;
    let capacity = sheet.capacity()?;
    if area > capacity {
        let show = coldframe_device::quantity::show_bytes;
        let reason = format!(
            "{} of swap do not fit into the {} of {}; give as much or less",
            show(area),
            show(capacity),
            sheet.name
        );
        return Err(ReportError::setting("swap size", reason));
    }
    Ok(())
}

/// Energy of the swap area by its sheet's equations; nothing for none.
pub fn energy(backing: &Backing, area: Bytes, counts: &SwapCounts) -> Result<SwapLedger, ReportError> {
    let Some(name) = backing.sheet else { return Ok(SwapLedger::default()) };
    let sheet = sheet::find(name)?;
    Ok(match backing.path {
        Path::BlockLayer => card_energy(&sheet.card()?, PAGE, counts),
        Path::FakeIo | Path::Memory => bus_energy(&sheet.bus_memory()?, PAGE, area, counts),
    })
}

fn us(us: f64) -> Ps {
    Ps((us * 1e6) as u64)
}

/// A copy between DRAM and a memory is a page read from one and written to the other by equations 2 and 3 of DRAM, the side of the memory
/// so many times over (section V.A: PCM is emulated so).
fn prices(backing: &Backing, m: &MachineParameters) -> Result<ForegroundPrices, ReportError> {
    let one = SwapCounts { swap_ins: 1, swap_outs: 1, up_time: Ps::ZERO };
    let dram = bus_times(&sheet::find("LPDDR2-DRAM")?.bus_memory()?, PAGE, &one);
    let (read, write) = card_times(&sheet::find("iNAND-eMMC")?.card()?, PAGE, &one);
    let path = match backing.path {
        Path::Memory => Ps::ZERO,
        Path::FakeIo | Path::BlockLayer => us(m.block_layer_us),
    };
    let on_card = backing.path == Path::BlockLayer;
    let copies = |time: Ps| if on_card { Ps::ZERO } else { time };
    Ok(ForegroundPrices {
        fault: us(m.fault_us),
        swap_in: path + copies(dram.read * backing.slowdown.0 + dram.write),
        swap_out: path + copies(dram.read + dram.write * backing.slowdown.1),
        swap_on_card: on_card,
        block_layer: us(m.block_layer_us),
        card: DeviceTimes { load: us(m.nand_read_us) + read, program: Some(us(m.nand_program_us) + write) },
        answer: Ps(m.answer_s * 1_000_000_000_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::drswap::workload::shipped;
    use coldframe_systems::drswap::BACKINGS;

    #[test]
    fn an_area_larger_than_its_device_is_refused() {
        let said = fits(&BACKINGS[2], Bytes(2 << 30)).unwrap_err().to_string();
        assert!(said.contains("2GiB") && said.contains("1GiB of LPDDR2-PCM"), "{said}");
    }

    #[test]
    fn prices_by_hand() {
        let m = shipped().machine;
        let of = |i: usize| prices(&BACKINGS[i], &m).unwrap();
        // 1.295 us and 3.21 us are a page read and written in DRAM; PCM twice and twelve times that.
        let nvm = of(3);
        assert_eq!((nvm.swap_in, nvm.swap_out), (Ps(2 * 1_295_000 + 3_210_000), Ps(1_295_000 + 12 * 3_210_000)));
        let ram_disk = of(0);
        assert_eq!(ram_disk.swap_in, us(m.block_layer_us) + Ps(1_295_000 + 3_210_000));
        assert!(of(1).swap_on_card && of(1).swap_in == us(m.block_layer_us));
    }
}
