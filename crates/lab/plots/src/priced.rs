//! Prices the bytes of a live run by a device's sheet, as a simulation does: what the run would have cost on that
//! flash, or in that slow memory.

use std::collections::BTreeMap;

use coldframe_answer::run::paged::{PagedRun, Snapshot, PAGE};
use coldframe_core::{Bytes, Ps};
use coldframe_sheet::flash::{self, Moved};
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_sheet::swap_energy::{bus_energy, SwapCounts};
use coldframe_sheet::{Sheet, SheetError};
use coldframe_show::plot::short as figure;
use serde::Serialize;

/// The price of a run.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Price {
    /// With slow memory.
    Slow(Slow),
    /// On a flash.
    Flash(Flash),
}

impl Price {
    /// The price of a run by our pager.
    ///
    /// # Errors
    /// The sheet lacks a page or block size, or is not of a memory on the bus.
    pub fn of(sheet: &Sheet, run: &PagedRun) -> Result<Option<Price>, SheetError> {
        let PagedRun::Pager(run) = run else { return Ok(None) };
        let (stats, seconds) = (&run.stats, run.program.seconds);
        Ok(Some(match run.config.slow {
            Some(_) => Price::Slow(Slow::new(sheet, stats, seconds)?),
            None => Price::Flash(Flash::new(sheet, stats, run.config.backing_max, seconds)?),
        }))
    }

    /// The price in words.
    pub fn words(&self) -> String {
        match self {
            Price::Slow(slow) => slow.words(),
            Price::Flash(flash) => flash.words(),
        }
    }
}

/// Millijoules.
fn mj(picojoules: u64) -> String {
    figure(picojoules as f64 / 1e9)
}

/// The energy of a run with slow memory, by DR.Swap's equations (`coldframe_sheet::swap_energy`): of the pages that
/// were copied there and back, and of the time. What is read in place, no pager sees.
#[derive(Serialize)]
pub struct Slow {
    device: String,
    swap_ins: u64,
    swap_outs: u64,
    energy_pj: u64,
    energy_terms_pj: BTreeMap<&'static str, u64>,
    /// Of the memory, whether it is used or not.
    #[serde(skip)]
    idle_pj: u64,
}

impl Slow {
    fn new(sheet: &Sheet, stats: &Snapshot, seconds: f64) -> Result<Slow, SheetError> {
        let page = Bytes(PAGE as u64);
        let counts = SwapCounts {
            swap_ins: stats.device_bytes_read / page.0,
            swap_outs: stats.device_bytes_written / page.0,
            up_time: Ps((seconds * 1e12) as u64),
        };
        let energy = bus_energy(&sheet.bus_memory()?, page, sheet.capacity()?, &counts);
        Ok(Slow {
            device: sheet.name.clone(),
            swap_ins: counts.swap_ins,
            swap_outs: counts.swap_outs,
            energy_pj: energy.total().0,
            energy_terms_pj: energy.terms().into_iter().map(|(name, term)| (name, term.0)).collect(),
            idle_pj: (energy.background + energy.refresh).0,
        })
    }

    fn words(&self) -> String {
        format!(
            "on {}: {} pages copied there, {} back; energy {} mJ, {} of them whether used or not; without reads in \
                place\n",
            self.device,
            human_count(self.swap_outs),
            human_count(self.swap_ins),
            mj(self.energy_pj),
            mj(self.idle_pj),
        )
    }
}

/// The price of a run on a flash; `None`: the sheet does not give it.
#[derive(Serialize)]
pub struct Flash {
    device: String,
    page_loads: u64,
    page_programs: u64,
    block_erases: u64,
    time_ps: Option<u64>,
    energy_pj: Option<u64>,
    swap_area_bytes: Option<u64>,
    life_years: Option<f64>,
    /// The numbers that the sheet lacks for the other prices.
    not_in_sheet: Vec<&'static str>,
    /// Nothing was written, so that the life has no end.
    #[serde(skip)]
    unworn: bool,
}

impl Flash {
    /// `area`: the largest size of the swap file; without it, the whole device.
    fn new(sheet: &Sheet, stats: &Snapshot, area: Option<u64>, seconds: f64) -> Result<Flash, SheetError> {
        let moved = Moved { read: Bytes(stats.device_bytes_read), written: Bytes(stats.device_bytes_written) };
        let done = flash::operations(sheet, moved)?;
        let mut missing = Vec::new();
        let area = known(area.map_or_else(|| sheet.capacity(), |bytes| Ok(Bytes(bytes))), &mut missing);
        let cycles = area.and_then(|_| known(sheet.cycles(), &mut missing));
        let life = area
            .zip(cycles)
            .map(|(area, cycles)| flash::life_years(cycles, flash::erases_even(moved.written, area), seconds * 1e9));
        Ok(Flash {
            device: sheet.name.clone(),
            page_loads: done.reads,
            page_programs: done.programs,
            block_erases: done.erases,
            time_ps: known(flash::time(sheet, sheet.page()?, done), &mut missing).map(|time| time.total().0),
            energy_pj: known(flash::energy(sheet, moved), &mut missing).map(|terms| flash::total(&terms).0),
            swap_area_bytes: area.map(|area| area.0),
            life_years: life.flatten(),
            not_in_sheet: missing,
            unworn: life == Some(None),
        })
    }

    fn words(&self) -> String {
        let life = match (self.life_years, self.swap_area_bytes) {
            (Some(years), Some(area)) => {
                let (years, area) = (figure(years), human_size(area));
                format!("; life: at most {years} years of {area} of swap if it goes on like this without a pause")
            }
            _ if self.unworn => "; life: nothing was written".into(),
            _ => String::new(),
        };
        let time = self.time_ps.map(|time| format!("; time {}", human_time(Ps(time)))).unwrap_or_default();
        let energy = self.energy_pj.map(|energy| format!("; energy {} mJ", mj(energy))).unwrap_or_default();
        let mut text = format!(
            "on {}: {} page loads, {} programs, {} erases at least{time}{energy}{life}\n",
            self.device,
            human_count(self.page_loads),
            human_count(self.page_programs),
            human_count(self.block_erases),
        );
        if !self.not_in_sheet.is_empty() {
            text += &format!("not in the sheet of {}: {}\n", self.device, self.not_in_sheet.join(", "));
        }
        text
    }
}

fn known<T>(value: Result<T, SheetError>, missing: &mut Vec<&'static str>) -> Option<T> {
    match value {
        Ok(value) => Some(value),
        Err(SheetError::Missing { fields, .. }) => {
            let field = fields[0];
            if !missing.contains(&field) {
                missing.push(field);
            }
            None
        }
        Err(_) => None,
    }
}
