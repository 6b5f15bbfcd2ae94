//! What counts cost on this machine.

use coldframe_core::Ps;
use coldframe_device::here::{Here, Spread};
use serde::{Deserialize, Serialize};

use super::machine::Counts;

/// Seconds, and between what they lie.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// With the costs of the best stretches.
    pub low: f64,
    /// With the mean costs.
    pub mean: f64,
    /// With the costs of the worst stretches.
    pub high: f64,
}

/// What paging adds to a program's own run time. Of that time it takes out what the kernel took to fill as many pages with zeros:
///
/// ```text
///   zero fills x (zero_fill - zero_fill_native) + alone x device_fault + of streams x read_ahead + of the log x memory_fault
///   + false faults x false_fault + clean victims beside no device x evict_clean + dirty victims x evict_dirty
/// ```
/// A clean victim beside a load is in the price of the load (see [`Here::device_fault`]).
pub fn paging(here: &Here, counts: &Counts, native_fills: f64) -> Seconds {
    let of = |side: fn(&Spread) -> Ps| {
        let price = |spread: &Spread| side(spread).0 as f64 / 1e12;
        counts.zero_fills * price(&here.zero_fill) - native_fills * price(&here.zero_fill_native)
            + counts.device_alone * price(&here.device_fault)
            + counts.device_ahead * price(&here.read_ahead)
            + counts.memory_loads * price(&here.memory_fault)
            + counts.false_faults * price(&here.false_fault)
            + counts.clean_exposed * price(&here.evict_clean)
            + counts.dirty * price(&here.evict_dirty)
    };
    Seconds { low: of(|s| s.low), mean: of(|s| s.mean), high: of(|s| s.high) }
}
