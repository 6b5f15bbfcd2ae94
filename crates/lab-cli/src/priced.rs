//! Prices the bytes of a live run by a device's sheet, as a simulation does: what the run would have cost on that
//! flash, or in that slow memory.

use coldframe_answer::run::{Run, Snapshot, PAGE};
use coldframe_boards::swap_energy::{bus_energy, SwapCounts, SwapLedger};
use coldframe_boards::used::{self, Moved};
use coldframe_core::{Bytes, Pj, Ps};
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_sheet::{Sheet, SheetError};
use coldframe_show::plot::short as figure;
use serde_json::{json, Value};

/// The price of a run by our pager, as JSON and as text.
///
/// # Errors
/// The sheet lacks a page or block size, or is not of a memory on the bus.
pub fn price(sheet: &Sheet, run: &Run) -> Result<Option<(Value, String)>, SheetError> {
    let Run::Pager(run) = run else { return Ok(None) };
    let (stats, seconds) = (&run.stats, run.program.seconds);
    Ok(Some(match run.config.slow {
        Some(_) => Slow::new(sheet, stats, seconds).map(|slow| (slow.json(), slow.words()))?,
        None => {
            Priced::new(sheet, stats, run.config.backing_max, seconds).map(|flash| (flash.json(), flash.words()))?
        }
    }))
}

/// The energy of a run with slow memory, by DR.Swap's equations (`coldframe_boards::swap_energy`): of the pages that were
/// copied there and back, and of the time. What is read in place, no pager sees.
struct Slow {
    device: String,
    counts: SwapCounts,
    energy: SwapLedger,
}

impl Slow {
    /// # Errors
    /// It is no sheet of a memory on the bus.
    pub fn new(sheet: &Sheet, stats: &Snapshot, seconds: f64) -> Result<Slow, SheetError> {
        let page = Bytes(PAGE as u64);
        let counts = SwapCounts {
            swap_ins: stats.device_bytes_read / page.0,
            swap_outs: stats.device_bytes_written / page.0,
            up_time: Ps((seconds * 1e12) as u64),
        };
        let energy = bus_energy(&sheet.bus_memory()?, page, sheet.capacity()?, &counts);
        Ok(Slow { device: sheet.name.clone(), counts, energy })
    }

    /// For `--stats` and `--format json`.
    pub fn json(&self) -> Value {
        let terms = self.energy.terms().map(|(name, term)| (name.to_string(), json!(term.0)));
        json!({
            "device": self.device,
            "swap_ins": self.counts.swap_ins,
            "swap_outs": self.counts.swap_outs,
            "energy_pj": self.energy.total().0,
            "energy_terms_pj": serde_json::Map::from_iter(terms),
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        let mj = |energy: Pj| figure(energy.0 as f64 / 1e9);
        let idle = self.energy.background + self.energy.refresh;
        format!(
            "on {}: {} pages copied there, {} back; energy {} mJ, {} of them whether used or not; without reads in place\n",
            self.device,
            human_count(self.counts.swap_outs),
            human_count(self.counts.swap_ins),
            mj(self.energy.total()),
            mj(idle),
        )
    }
}

/// The price of a run on a flash.
struct Priced {
    device: String,
    loads: u64,
    programs: u64,
    erases: u64,
    time: Option<Ps>,
    energy: Option<Pj>,
    /// Years; the inner `None`: nothing was written.
    life: Option<Option<f64>>,
    area: Option<Bytes>,
    /// The numbers that the sheet lacks for the other prices.
    missing: Vec<&'static str>,
}

impl Priced {
    /// `area`: the largest size of the swap file; without it, the whole device.
    ///
    /// # Errors
    /// The sheet lacks a page or block size.
    pub fn new(sheet: &Sheet, stats: &Snapshot, area: Option<u64>, seconds: f64) -> Result<Priced, SheetError> {
        let moved = Moved { read: Bytes(stats.device_bytes_read), written: Bytes(stats.device_bytes_written) };
        let done = used::operations(sheet, moved)?;
        let mut missing = Vec::new();
        let area = known(area.map_or_else(|| sheet.capacity(), |bytes| Ok(Bytes(bytes))), &mut missing);
        let life = area.and_then(|area| known(used::life_years(sheet, moved, area, seconds), &mut missing));
        Ok(Priced {
            device: sheet.name.clone(),
            loads: done.reads,
            programs: done.programs,
            erases: done.erases,
            time: known(used::time(sheet, moved), &mut missing),
            energy: known(used::energy(sheet, moved), &mut missing),
            life,
            area,
            missing,
        })
    }

    /// For `--stats` and `--format json`; prices that the sheet does not give are null.
    pub fn json(&self) -> Value {
        json!({
            "device": self.device,
            "page_loads": self.loads,
            "page_programs": self.programs,
            "block_erases": self.erases,
            "time_ps": self.time.map(|time| time.0),
            "energy_pj": self.energy.map(|energy| energy.0),
            "swap_area_bytes": self.area.map(|area| area.0),
            "life_years": self.life.flatten(),
            "not_in_sheet": self.missing,
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        let life = match (self.life, self.area) {
            (Some(Some(years)), Some(area)) => {
                let area = human_size(area.0);
                format!(
                    "; life: at most {} years of {area} of swap if it goes on like this without a pause",
                    figure(years)
                )
            }
            (Some(None), _) => "; life: nothing was written".into(),
            _ => String::new(),
        };
        let time = self.time.map(|time| format!("; time {}", human_time(time))).unwrap_or_default();
        let energy = self.energy.map(|e| format!("; energy {} mJ", figure(e.0 as f64 / 1e9))).unwrap_or_default();
        let mut text = format!(
            "on {}: {} page loads, {} programs, {} erases at least{time}{energy}{life}\n",
            self.device,
            human_count(self.loads),
            human_count(self.programs),
            human_count(self.erases),
        );
        if !self.missing.is_empty() {
            text += &format!("not in the sheet of {}: {}\n", self.device, self.missing.join(", "));
        }
        text
    }
}

/// The value, or the name of the missing number.
fn known<T>(value: Result<T, SheetError>, missing: &mut Vec<&'static str>) -> Option<T> {
    match value {
        Ok(value) => Some(value),
        Err(SheetError::Missing { field, .. }) => {
            if !missing.contains(&field) {
                missing.push(field);
            }
            None
        }
        Err(_) => None,
    }
}
