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
    /// Pages that left a frame.
    pub evictions: u64,
    /// Of those, pages that had to be written.
    pub dirty_evictions: u64,
    /// Evictions by an exhausted walk budget.
    pub forced_evictions: u64,
    /// Frames examined in all searches.
    pub walk_sum: Walk,
    /// Frames examined in the longest search.
    pub walk_max: Walk,
    /// Loads of pages that nobody stood still for.
    pub prefetches: u64,
    /// Wishes for pages that were in RAM and became as recent as if they had been loaded now.
    pub prefetches_present: u64,
    /// Wishes for pages that came when every ticket but one was taken, or when only pages of the running slice could have left.
    pub prefetches_dropped: u64,
    /// Faults on pages that a prefetch was loading.
    pub prefetch_waits: u64,
    /// Loads started, repeated ones included.
    pub page_loads: u64,
    /// Pages moved from a buffer to a frame.
    pub page_moves: u64,
    /// Of those, while the device was loading another page (DDB's `N_pmdual`).
    pub page_moves_dual: u64,
    /// Transfers that the device refused.
    pub failures: u64,
    /// Swapped pages mapped where they lie, without a copy.
    pub direct_reads: u64,
    /// Pages copied from slots since they were read there often; part of `swap_ins`.
    pub read_often: u64,
    /// Pages copied from slots that are rewritten in place (`SlotsConfig`).
    pub swap_ins: u64,
    /// Pages copied to them.
    pub swap_outs: u64,
    /// Anonymous pages that were written to their home slots, since all slots were taken and nobody could be ended. Where there is no
    /// such place the machine was given too little memory.
    pub homeless: u64,
    /// Tasks ended because memory was short.
    pub kills: u64,
    /// Tasks stopped because their page was lost.
    pub halts: u64,
}
