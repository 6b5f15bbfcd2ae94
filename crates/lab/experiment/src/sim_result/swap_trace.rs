//! The result of a swap area under a swap trace.

use coldframe_drivers::swap::SwapResult;
use coldframe_sheet::flash::{self, Operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resolve::SwapPlan;
use crate::systems;

section! {
    /// The findings for a swap area under a swap trace.
    SwapTrace(plan: &SwapPlan, r: &SwapResult, done: Operations, worn: &flash::Wear) {
        /// Counts.
        counts: SwapCounts = SwapCounts::new(r);
        /// The wear of its blocks.
        wear: Wear = Wear::new(worn, plan.config.areas.iter().map(|area| area.blocks).sum());
        /// Reads, copies and erases by the slides' formula.
        cost: u64 = (systems::of_log().1.cost)(&done);
        /// Writes to flash for each write from RAM; `None` without one.
        write_amplification: Option<f64> = flash::write_amplification(done);
        /// Times, in picoseconds; `None`: the device's sheet lacks a time.
        time_ps: Option<DeviceTimes> =
            flash::time(&plan.sheet, systems::of_log().1.slot, done).ok().map(DeviceTimes::new);
        /// Years until the most worn block reaches its rated erases; `None`: nothing was erased, or the sheet has no
        /// rating.
        life_years: Option<f64> = plan
            .sheet
            .cycles()
            .ok()
            .and_then(|cycles| flash::life_years(cycles, worn.max.into(), r.duration_ns as f64));
        /// Of the trace.
        duration_ns: u64 = r.duration_ns;
    }
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
    pub(crate) fn of(plan: &SwapPlan, r: &SwapResult) -> SwapTrace {
        let flash = &r.flash;
        let done = Operations { reads: r.reads, programs: flash.programs, copies: flash.copies, erases: flash.erases };
        SwapTrace::new(plan, r, done, &flash::wear(&r.erases))
    }
}
