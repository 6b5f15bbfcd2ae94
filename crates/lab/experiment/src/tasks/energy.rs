//! The energy of tasks on the devices that hold their pages.

use coldframe_core::{Bytes, Pj};
use coldframe_drivers::tasks::TasksResult;
use coldframe_sheet::swap_energy::SwapCounts;
use coldframe_sheet::{Sheet, SheetError};

use crate::error::ExperimentError;
use crate::resolve::{Base, TasksPlan};
use crate::swap_prices;

/// By term: pages of the device, and those of the area with a backing. Lines read in place count with their extra cost
/// over main memory. The energy of the processor and of main memory is not included. Empty in the foreground, where
/// only the swap area's energy is known ([`super::OnPhone`]).
pub(super) fn energy(plan: &TasksPlan, r: &TasksResult) -> Result<Vec<(&'static str, Pj)>, ExperimentError> {
    let (Base::Machine(base), page) = (&plan.base, plan.page()) else { return Ok(Vec::new()) };
    let on_card = plan.backed.as_ref().is_some_and(|backed| backed.prices.swap_on_card);
    let (mut reads, mut writes) = (r.device_reads, r.device_writes);
    if on_card {
        (reads, writes) = (reads - r.counts.swap_ins.min(reads), writes - r.counts.swap_outs.min(writes));
    }
    let mut terms = device(&base.sheet, page, reads, writes)?;
    if base.area.is_some() {
        terms.extend(collected(&base.sheet, page, r)?);
    }
    if let Some(backed) = &plan.backed {
        let moved = SwapCounts { swap_ins: r.counts.swap_ins, swap_outs: r.counts.swap_outs, up_time: r.time };
        let ledger = swap_prices::energy(&backed.area, &moved);
        let standby = ledger.background + ledger.refresh;
        terms.push(("area", Pj(ledger.total().0 - standby.0)));
        terms.push(("area_standby", standby));
        let lines = backed.area.line_excess()?.max(0.0) * r.reads_in_slots as f64;
        terms.push(("area_lines", Pj(lines as u64)));
    }
    if r.xip_reads > 0 {
        terms.push(("buffer_lines", base.sheet.read_energy()? * r.xip_reads));
    }
    Ok(terms)
}

/// Loads and programs, each with its transfer.
fn device(sheet: &Sheet, page: Bytes, reads: u64, writes: u64) -> Result<Vec<(&'static str, Pj)>, SheetError> {
    let mut terms = Vec::new();
    let flash_page = sheet.page()?.0;
    let pages = page.0.div_ceil(flash_page);
    let transfer = || Ok::<_, SheetError>(Pj((sheet.transfer_energy()?.0 * page.0).div_ceil(flash_page)));
    if reads > 0 {
        terms.push(("loads", (sheet.load_energy()? * pages + transfer()?) * reads));
    }
    if writes > 0 {
        terms.push(("programs", (sheet.program_energy()? * pages + transfer()?) * writes));
    }
    Ok(terms)
}

/// The energy of collections within the device.
fn collected(sheet: &Sheet, page: Bytes, r: &TasksResult) -> Result<Vec<(&'static str, Pj)>, SheetError> {
    let Some(counts) = r.swap.as_ref().map(|done| done.counts) else { return Ok(Vec::new()) };
    let pages = page.0.div_ceil(sheet.page()?.0);
    let mut terms = Vec::new();
    if counts.copies > 0 {
        terms.push(("copies", (sheet.load_energy()? + sheet.program_energy()?) * pages * counts.copies));
    }
    if counts.erases > 0 {
        terms.push(("erases", sheet.erase_energy()? * counts.erases));
    }
    Ok(terms)
}
