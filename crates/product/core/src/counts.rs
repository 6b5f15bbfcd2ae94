//! The counters of an engine.

use crate::units::Walk;

/// What has happened so far, in counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Faults on pages that had to be loaded.
    pub true_faults: u64,
    /// Faults on pages in RAM that were not mapped.
    pub false_faults: u64,
    /// First writes to pages mapped read-only: in a buffer, or on a machine without dirty bits.
    pub write_faults: u64,
    /// True faults on pages never touched before; part of `true_faults`.
    pub cold_faults: u64,
    /// Untouched pages that came in beside those first touches.
    pub first_touch_neighbours: u64,
    /// Of these, the ones that left RAM as they came, as zeros.
    pub unfilled: u64,
    /// Pages evicted from a frame.
    pub evictions: u64,
    /// Of those evictions, the dirty ones: their pages were written.
    pub dirty_evictions: u64,
    /// Evictions forced because the search's budget was used up.
    pub forced_evictions: u64,
    /// Frames examined in all searches.
    pub walk_sum: Walk,
    /// Frames examined in the longest search.
    pub walk_max: Walk,
    /// Loads for prefetch hints. No task waited when they began.
    pub prefetches: u64,
    /// Prefetch hints for pages that were in RAM already and became as recent as pages loaded now.
    pub prefetches_present: u64,
    /// Prefetch hints that were dropped: only one ticket was free, or only pages of the running slice could have left
    /// RAM.
    pub prefetches_dropped: u64,
    /// Faults on pages that a prefetch was loading.
    pub prefetch_waits: u64,
    /// Loads started, including repeated ones.
    pub page_loads: u64,
    /// Pages moved from a buffer to a frame.
    pub page_moves: u64,
    /// Of those moves, the ones made while the device was loading another page (DDB's `N_pmdual`).
    pub page_moves_dual: u64,
    /// Transfers that the device refused.
    pub failures: u64,
    /// Swapped pages mapped in their slots, without a copy.
    pub direct_reads: u64,
    /// Pages copied from slots because they were read there often; part of `swap_ins`.
    pub read_often: u64,
    /// Pages copied from slots that are rewritten in place (`SlotsConfig`).
    pub swap_ins: u64,
    /// Pages copied to slots that are rewritten in place.
    pub swap_outs: u64,
    /// Anonymous pages written to their home slots, because all slots were taken and no task could be ended. On a
    /// machine without home slots this means that it has too little memory.
    pub homeless: u64,
    /// Tasks ended because memory was short.
    pub kills: u64,
    /// Tasks stopped because their page was lost.
    pub halts: u64,
}
