//! The cost of memory accesses by place, and a run's ledger by DDB's equations 1 to 3.

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_drivers::front_end::FrontEndCounts;
use coldframe_lane::LaneResult;
use coldframe_sheet::paging::{self, AccessCounts, Price};
use coldframe_sheet::{sheet, Sheet};

use crate::error::ExperimentError;
use crate::settings::Settings;
use crate::systems::front_end;

#[derive(Clone, PartialEq, Debug)]
pub struct MemoryPrices {
    /// Main memory, as the configuration names it.
    pub ram: String,
    pub times: Price<Ps>,
    /// Energies, or the number that a sheet lacks.
    pub energies: Result<Price<Pj>, String>,
}

/// The times of a page, for the clock of the run.
#[derive(Clone, Copy, Debug)]
pub struct PageTimes {
    pub load: Ps,
    /// TransHostMem.
    pub page_move: Ps,
}

/// Prices of accesses on `device` above the main memory of this name.
///
/// # Errors
/// There is no such sheet; it lacks a time; a time cannot be read; or reads in place are faster than reads from main
/// memory.
pub fn prices(
    settings: &Settings,
    ram: &str,
    device: &Sheet,
    page: Bytes,
    pages: PageTimes,
    needs_xip: bool,
) -> Result<MemoryPrices, ExperimentError> {
    let memory = sheet::find(ram)?;
    let t = &settings.time;
    let own = |field, text: &Option<String>| crate::settings::time(field, text);
    let main_read = own("time.main_read", &t.main_read)?.map_or_else(|| memory.read(), Ok)?;
    let main_write = memory.write()?;
    let xip_read = match own("time.xip_read", &t.xip_read)? {
        Some(time) => time,
        None if needs_xip => device.read()?,
        // Nothing is read in place; the price is only for comparisons.
        None => device.read().unwrap_or(main_read),
    };
    if xip_read < main_read {
        let reason = "is shorter than time.main_read; a buffer that is faster than main memory is not simulated";
        return Err(ExperimentError::setting("time.xip_read", reason));
    }
    let times = Price { page_load: pages.load, page_move: pages.page_move, main_read, xip_read, main_write };
    let energies = paging::energies(device, &memory, page).map_err(|error| error.to_string());
    let ram = if ram.ends_with(".toml") { ram.into() } else { memory.name };
    Ok(MemoryPrices { ram, times, energies })
}

/// The name of main memory, if its accesses are counted and so can have a price.
pub fn main_memory(
    settings: &Settings,
    of_system: Option<&str>,
    caches: bool,
) -> Result<Option<String>, ExperimentError> {
    match (&settings.main_memory, caches) {
        (Some(_), false) => {
            let name = front_end::names(|front_end| front_end.data_cache);
            let reason =
                format!("needs the front end {name}, which counts accesses to memory; give front_end.name={name}");
            Err(ExperimentError::setting("main_memory", reason))
        }
        (own, true) => Ok(own.clone().or(of_system.map(Into::into))),
        (None, false) => Ok(None),
    }
}

pub fn counts(front: &FrontEndCounts, lane: &LaneResult) -> AccessCounts {
    AccessCounts {
        page_loads: lane.counts.page_loads,
        page_moves: lane.counts.page_moves - lane.counts.page_moves_dual,
        page_moves_dual: lane.counts.page_moves_dual,
        main_reads: front.memory_reads - lane.xip_reads,
        xip_reads: lane.xip_reads,
        main_writes: front.memory_writes,
    }
}
