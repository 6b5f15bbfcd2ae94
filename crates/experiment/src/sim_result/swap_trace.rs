//! The result of a swap area under a swap trace.

use coldframe_boards::flash::{self, Operations};
use coldframe_drivers::swap::SwapResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WearMap;
use crate::resolve::SwapPlan;
use crate::slots::SlotMap;
use crate::systems;

/// The findings for a swap area under a swap trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapTrace {
    /// Counts.
    pub counts: SwapCounts,
    /// The wear of its blocks.
    pub wear: Wear,
    /// Erases over the blocks.
    pub wear_map: WearMap,
    /// The process that owned each slot.
    pub slots: SlotMap,
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

/// Counts of events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapCounts {
    /// Pages that left RAM with a write.
    pub swap_outs: u64,
    /// Pages that could not leave, since the area was full.
    pub refused: u64,
    /// Touches of pages that had left the page table.
    pub touches: u64,
    /// Of those, pages still in RAM.
    pub touches_in_ram: u64,
    /// Touches that waited for a read.
    pub swap_ins: u64,
    /// The same.
    pub demand_reads: u64,
    /// Slots read, including those read ahead.
    pub reads: u64,
    /// Slots read ahead.
    pub read_ahead: u64,
    /// Of those, used.
    pub read_ahead_hits: u64,
    /// Of those, never used.
    pub read_ahead_wasted: u64,
    /// Most pages in the swap cache at a time.
    pub swap_cache_pages_max: u64,
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots copied by collections.
    pub copies: u64,
    /// The same.
    pub erase_copies: u64,
    /// Slots copied to level wear.
    pub levelling_copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Collections.
    pub collections: u64,
    /// Copies that became invalid.
    pub invalidations: u64,
    /// Most copies at a time.
    pub valid_slots_max: u64,
    /// Events of slots without an earlier swap-out.
    pub unknown_slots: u64,
    /// Blocks that a failing device gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<u64>,
}

/// Erases over the blocks of an area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub standard_deviation: f64,
    /// Of the least worn.
    pub min: u32,
    /// Of the most worn.
    pub max: u32,
    /// Blocks.
    pub blocks: u32,
}

/// Times on the device, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTimes {
    /// Reads.
    pub reading: u64,
    /// Programming from RAM.
    pub programming: u64,
    /// Copies and erases.
    pub collecting: u64,
}

impl SwapTrace {
    pub(crate) fn new(plan: &SwapPlan, r: &SwapResult, slots: SlotMap) -> SwapTrace {
        let (flash, log) = (&r.flash, systems::of_log().1);
        let operations =
            Operations { reads: r.reads, programs: flash.programs, copies: flash.copies, erases: flash.erases };
        let wear = flash::wear(&r.erases);
        let blocks = plan.config.areas.iter().map(|area| area.blocks).sum();
        let time = flash::flash_time(&plan.sheet, log.slot, operations).ok();
        let cycles = plan.sheet.cycles().ok();
        SwapTrace {
            counts: SwapCounts::new(r),
            wear: Wear { mean: wear.mean, standard_deviation: wear.deviation, min: wear.min, max: wear.max, blocks },
            wear_map: WearMap::new(&r.erases),
            slots,
            cost: (log.cost)(&operations),
            write_amplification: flash::write_amplification(operations),
            time_ps: time.map(|t| DeviceTimes {
                reading: t.reading.0,
                programming: t.programming.0,
                collecting: t.collecting.0,
            }),
            life_years: cycles.and_then(|cycles| flash::life_years(&wear, cycles, r.duration_ns)),
            duration_ns: r.duration_ns,
        }
    }
}

impl SwapCounts {
    fn new(r: &SwapResult) -> SwapCounts {
        let f = &r.flash;
        SwapCounts {
            swap_outs: r.swap_outs,
            refused: r.refused,
            touches: r.touches,
            touches_in_ram: r.in_ram,
            swap_ins: r.demand_reads,
            demand_reads: r.demand_reads,
            reads: r.reads,
            read_ahead: r.cache.read_ahead,
            read_ahead_hits: r.cache.hits,
            read_ahead_wasted: r.cache.wasted,
            swap_cache_pages_max: r.cache.held_max,
            programs: f.programs,
            copies: f.copies,
            erase_copies: f.copies,
            levelling_copies: f.levelling_copies,
            erases: f.erases,
            collections: f.collections,
            invalidations: f.invalidations,
            valid_slots_max: r.copies_max,
            unknown_slots: r.unknown,
            bad_blocks: (f.bad_blocks > 0).then_some(f.bad_blocks),
        }
    }
}
