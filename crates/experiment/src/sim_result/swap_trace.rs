//! The result of a swap area under a swap trace.

use coldframe_boards::flash::{self, Operations};
use coldframe_drivers::swap::SwapResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resolve::SwapPlan;
use crate::systems;

/// The findings for a swap area under a swap trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapTrace {
    /// Counts.
    pub counts: SwapCounts,
    /// The wear of its blocks.
    pub wear: Wear,
    /// Reads, copies and erases by the slides' formula.
    pub cost: u64,
    /// Writes to flash for each write from RAM; `None` without one.
    pub write_amplification: Option<f64>,
    /// Times, in picoseconds; `None`: the device's sheet lacks a time.
    pub time_ps: Option<DeviceTimes>,
    /// Years until the most worn block reaches its rated erases; `None`: nothing was erased, or the sheet has no
    /// rating.
    pub life_years: Option<f64>,
    /// Of the trace.
    pub duration_ns: u64,
}

section! {
    /// Counts of events.
    #[derive(Copy)]
    SwapCounts(r: &SwapResult) {
        /// Pages that left RAM with a write.
        swap_outs: u64 = r.swap_outs;
        /// Pages that could not leave, since the area was full.
        refused: u64 = r.refused;
        /// Touches of pages that had left the page table.
        touches: u64 = r.touches;
        /// Of those, pages still in RAM.
        touches_in_ram: u64 = r.in_ram;
        /// Touches that waited for a read.
        swap_ins: u64 = r.demand_reads;
        /// The same.
        demand_reads: u64 = r.demand_reads;
        /// Slots read, including those read ahead.
        reads: u64 = r.reads;
        /// Slots read ahead.
        read_ahead: u64 = r.cache.read_ahead;
        /// Of those, used.
        read_ahead_hits: u64 = r.cache.hits;
        /// Of those, never used.
        read_ahead_wasted: u64 = r.cache.wasted;
        /// Most pages in the swap cache at a time.
        swap_cache_pages_max: u64 = r.cache.held_max;
        /// Slots programmed from RAM.
        programs: u64 = r.flash.programs;
        /// Slots copied by collections.
        copies: u64 = r.flash.copies;
        /// The same.
        erase_copies: u64 = r.flash.copies;
        /// Slots copied to level wear.
        levelling_copies: u64 = r.flash.levelling_copies;
        /// Blocks erased.
        erases: u64 = r.flash.erases;
        /// Collections.
        collections: u64 = r.flash.collections;
        /// Copies that became invalid.
        invalidations: u64 = r.flash.invalidations;
        /// Most copies at a time.
        valid_slots_max: u64 = r.copies_max;
        /// Events of slots without an earlier swap-out.
        unknown_slots: u64 = r.unknown;
        /// Blocks that a failing device gave up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad_blocks: Option<u64> = (r.flash.bad_blocks > 0).then_some(r.flash.bad_blocks);
    }
}

section! {
    /// Erases over the blocks of an area.
    #[derive(Copy)]
    Wear(wear: &flash::Wear, blocks: u32) {
        /// Mean.
        mean: f64 = wear.mean;
        /// Standard deviation.
        standard_deviation: f64 = wear.deviation;
        /// Of the least worn.
        min: u32 = wear.min;
        /// Of the most worn.
        max: u32 = wear.max;
        /// Blocks.
        blocks: u32 = blocks;
    }
}

section! {
    /// Times on the device, in picoseconds.
    #[derive(Copy)]
    DeviceTimes(time: flash::FlashTime) {
        /// Reads.
        reading: u64 = time.reading.0;
        /// Programming from RAM.
        programming: u64 = time.programming.0;
        /// Copies and erases.
        collecting: u64 = time.collecting.0;
    }
}

impl SwapTrace {
    pub(crate) fn new(plan: &SwapPlan, r: &SwapResult) -> SwapTrace {
        let (flash, log) = (&r.flash, systems::of_log().1);
        let operations =
            Operations { reads: r.reads, programs: flash.programs, copies: flash.copies, erases: flash.erases };
        let wear = flash::wear(&r.erases);
        let blocks = plan.config.areas.iter().map(|area| area.blocks).sum();
        let time = flash::flash_time(&plan.sheet, log.slot, operations).ok();
        let cycles = plan.sheet.cycles().ok();
        SwapTrace {
            counts: SwapCounts::new(r),
            wear: Wear::new(&wear, blocks),
            cost: (log.cost)(&operations),
            write_amplification: flash::write_amplification(operations),
            time_ps: time.map(DeviceTimes::new),
            life_years: cycles.and_then(|cycles| flash::life_years(&wear, cycles, r.duration_ns)),
            duration_ns: r.duration_ns,
        }
    }
}
